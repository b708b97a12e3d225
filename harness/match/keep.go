package match

import (
	"bytes"

	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// sampled reports whether to look at a line only to learn who writes the log, because the journal of a node has many
// writers. Lines that a check asks for are looked at anyway.
func (s *source) sampled() bool {
	return s.lines < 1000 || s.lines%64 == 0 && s.lines < 1<<17 || s.lines%1024 == 0
}

// line learns from a line who wrote the log, and keeps the line if a check asks for it. passed says that the sieve let
// the line through; no pattern matches any other line. stack is how many of the lines after last words are still to be
// kept.
func (e *evidence) line(s *source, raw []byte, passed bool, stack *int) {
	text, from, when := s.plain(raw)
	s.headed = s.headed || *stack > 0 && bytes.HasPrefix(text, []byte("goroutine "))
	s.from, s.tells = union(s.from, from), s.tells || !when.at.IsZero()
	if passed {
		s.folded = fold(s.folded, raw)
		s.announced(text, from)
		// Below the stack of one process, the next one's words begin another end.
		if (*stack == 0 || s.headed) && contains(s.folded, words) && lastWords.Match(text) {
			*stack, s.words, s.headed = dying, s.at(s.lines), false
		}
	}
	asked := *stack > 0 || passed && !s.prose && e.rules.matches(s.folded, text)
	if !asked && (!e.rules.all || s.others >= maxKept || s.size >= maxSize) {
		return
	}
	words := 0
	if *stack > 0 {
		words = s.words
	}
	*stack = max(0, *stack-1)
	switch {
	case !asked:
		s.others, s.size = s.others+1, s.size+len(text)
	case len(s.kept)-s.others >= maxKept:
		s.lost++
		return
	}
	at := when.at
	if n := len(s.kept); at.IsZero() && n > 0 {
		at = s.kept[n-1].at
	} else if at.IsZero() {
		at = s.ref
	}
	s.kept = append(s.kept, line{at, s.path, from, string(text), s.at(s.lines), words})
}

// announced takes the version from a line that has one of the texts that announce it.
func (s *source) announced(text []byte, from string) {
	if !contains(s.folded, versions) {
		return
	}
	if l, ok := klog.Parse(text, s.ref); ok && !l.Structured {
		text = []byte(l.Message)
	} else if _, rest, ok := bytes.Cut(text, []byte("] ")); ok {
		text = rest
	}
	if m := announced.FindSubmatch(text); m != nil {
		s.announce(string(m[1]), string(m[0]), from)
	}
}
