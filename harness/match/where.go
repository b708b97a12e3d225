package match

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// shown leaves out of a result what stands for what pastes have lost: it was read, and never written.
func (r Result) shown() {
	for _, i := range r.Incidents {
		for _, j := range i.Subjects {
			for n := range j.Signs {
				j.Signs[n].Detail = pasted.Shown(j.Signs[n].Detail)
			}
		}
	}
	frames := func(all []string) {
		for i := range all {
			all[i] = pasted.Shown(all[i])
		}
	}
	for _, g := range slices.Concat(r.Unexplained.Goroutines, r.Unexplained.Running) {
		frames(g.Frames)
	}
	for _, c := range r.Unexplained.Compared {
		for _, u := range c.Unusual {
			frames(u.Frames)
		}
	}
}

// where returns up to three places that a finding rests on. If the finding rests on a line or on a goroutine, that is its
// file and line number.
func (sub *subject) where(f check.Finding) []string {
	if f.Detail != "" && f.Met != check.False {
		first, _, _ := strings.Cut(f.Detail, "\n")
		for _, l := range sub.lines {
			if strings.TrimSpace(l.text) == strings.TrimSpace(first) {
				return []string{fmt.Sprintf("%s:%d", l.path, l.n)}
			}
		}
		v, ours := sub.view.(*foreign)
		id, is := firstGoroutine(f.Detail)
		for _, dump := range f.Evidence {
			if ours && is && v.heads[dump][id] > 0 {
				return []string{
					fmt.Sprintf("%s:%d", lineOf.ReplaceAllString(dump, ""), v.heads[dump][id]),
				}
			}
		}
	}
	return f.Evidence[:min(len(f.Evidence), 3)]
}

// firstGoroutine returns the id of the first goroutine in a text of stacks.
func firstGoroutine(text string) (id uint64, ok bool) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "goroutine ") {
			return goroutineOf([]byte(line))
		}
	}
	return 0, false
}

// maxHeads bounds the goroutines of a dump whose lines are kept.
const maxHeads = 20_000

// head keeps the number of the current line if a goroutine's header is in it.
func (s *source) head(raw []byte) {
	if len(s.heads) >= maxHeads || !bytes.HasSuffix(raw, []byte("]:")) {
		return
	}
	if id, ok := goroutineOf(raw); ok {
		if s.heads == nil {
			s.heads = map[uint64]int{}
		}
		s.heads[id] = s.at(s.lines)
	}
}

// goroutineOf returns the id in a line with a goroutine's header.
func goroutineOf(line []byte) (id uint64, ok bool) {
	_, rest, is := bytes.Cut(line[:min(len(line), maxHeader)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	id, err := strconv.ParseUint(string(digits), 10, 64)
	return id, is && err == nil
}

// maxHeader is how many bytes of a line may lie before the end of a goroutine's id.
const maxHeader = 300
