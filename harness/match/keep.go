package match

import (
	"bytes"
	"cmp"
	"slices"
	"time"

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
	if _, ok := s.firsts[from]; !ok && !when.at.IsZero() {
		if s.firsts == nil {
			s.firsts = map[string]time.Time{}
		}
		s.firsts[from] = when.at
	}
	if passed {
		s.folded = fold(s.folded, raw)
		s.announced(text, from, when.at)
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

// announced takes the version from a line that has one of the texts that announce it. A line that nothing shows to be
// logged only says a version: a person may have written it.
func (s *source) announced(text []byte, from string, at time.Time) {
	if !contains(s.folded, versions) {
		return
	}
	unsure := ""
	if l, ok := klog.Parse(text, s.ref); ok && !l.Structured {
		text = []byte(l.Message)
	} else if _, rest, cut := bytes.Cut(text, []byte("] ")); cut {
		text = rest
	} else if !ok && from == "" {
		unsure = asTextSays
	}
	if s.chosen {
		unsure = asTextSays
	}
	if m := announced.FindSubmatch(text); m != nil {
		s.announce(string(m[1]), string(m[0]), from, cmp.Or(unsure, s.earlier(from, at)))
	}
}

// earlier says that there is something in a log from before the start of a process of the program from, "" if there is
// nothing. What a process logs before its version takes less than a minute.
func (s *source) earlier(from string, at time.Time) string {
	if slices.ContainsFunc(s.versions, func(v announcement) bool { return v.start && (from == "" || v.by == from) }) {
		return "" // the process before has said its own
	}
	first, ok := s.firsts[from]
	if len(s.dumps) > 0 || s.inside || ok && at.Sub(first) > time.Minute {
		return "which began later than what is above it"
	}
	return ""
}
