package match

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
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
	s.around(text)
	s.headed = s.headed || *stack > 0 && bytes.HasPrefix(text, []byte("goroutine "))
	if !s.tells && !when.at.IsZero() { // what is above the first time is no younger
		for i := range s.kept {
			s.kept[i].at = when.at
		}
	}
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
		if (*stack == 0 || s.headed) && (contains(s.folded, words) && lastWords.Match(text) || s.observed()) {
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
	s.kept = append(s.kept, line{
		at, s.path, from, string(text), s.at(s.lines), words, s.section(), when.at.IsZero(),
	})
}

// announced takes the version from a line that has one of the texts that announce it. A line that nothing shows to be
// logged only says a version: a person may have written it.
func (s *source) announced(text []byte, from string, at time.Time) {
	if !contains(s.folded, versions) {
		return
	}
	unsure := ""
	l, logged := klog.Parse(text, s.ref)
	switch program, version := inJSON(text); {
	case version != "":
		text, from = []byte(version), cmp.Or(program, from)
	case logged && !l.Structured:
		text = []byte(l.Message)
	default:
		_, rest, cut := bytes.Cut(text, []byte("] "))
		if cut {
			text = rest
		} else if !logged && from == "" {
			unsure = asTextSays
		}
	}
	if s.chosen {
		unsure = asTextSays
	}
	if m := announced.FindSubmatch(text); m != nil {
		s.starting++
		s.announce(string(m[1]), string(m[0]), from, cmp.Or(unsure, s.earlier(from, at)))
	}
}

// inJSON returns the version that a program announces in a line of JSON, as klog's text has it, and the program's name if
// only its lines are like that; "" for any other line.
func inJSON(text []byte) (program, announces string) {
	if len(text) == 0 || text[0] != '{' {
		return "", ""
	}
	var l map[string]any
	if json.Unmarshal(text, &l) != nil {
		return "", ""
	}
	field := func(name string) string { s, _ := l[name].(string); return s }
	message := field("msg")
	if v := field("etcd-version"); v != "" {
		return "etcd", "starting etcd version=v" + strings.TrimPrefix(v, "v")
	}
	if v := cmp.Or(field("kubeletVersion"), field("version")); v != "" && !strings.Contains(message, "=") {
		return "", message + " version=" + v
	}
	return "", message
}

// doubtPicked marks the versions that a log announces as unsure if somebody took these lines out of it: what else there
// was may be of another process, or of another file.
func (s *source) doubtPicked() {
	if !s.picked {
		return
	}
	for i := range s.versions {
		s.versions[i].unsure = cmp.Or(s.versions[i].unsure, asPicked)
	}
}

// asPicked is why a version that a line announces may not be that of what else there is.
const asPicked = "in a line that was taken out of its log"

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
