package report

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/plan"
)

// maxDecisive is how many lines of a decisive stack a report shows; the rest is in the evidence.
const maxDecisive = 12

// stackLine is a line of a stack. Hit marks the call that a check asks for.
type stackLine struct {
	Text string
	Hit  bool
}

// asks returns the goroutines that checks ask for, by the check's name.
func asks(list []plan.Check) map[string]goroutine.Match {
	out := map[string]goroutine.Match{}
	for _, c := range list {
		if f, ok := c.Spec.(check.Figured); ok && f.Figure().Goroutines != (goroutine.Match{}) {
			out[c.Name] = f.Figure().Goroutines
		}
		for name, m := range asks(c.AnyOf) {
			out[name] = m
		}
	}
	return out
}

// excerpt returns at most about `most` lines of a stack or a log, with the call that m is about among them.
func excerpt(text string, m goroutine.Match, most int) []stackLine {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r", ""), "\n"), "\n")
	hit := m.Line(lines)
	var out []stackLine
	for i, l := range lines {
		out = append(out, stackLine{l, i == hit})
	}
	return cut(out, most)
}

// stackOf returns a group's stack, the innermost call first, with the call that m is about among its lines.
func stackOf(g goroutine.Group, m goroutine.Match) []stackLine {
	var out []stackLine
	for i, f := range g.Frames {
		out = append(out, stackLine{f.Func, i == m.Frame(g)})
		if f.File != "" {
			out = append(
				out,
				stackLine{Text: fmt.Sprintf("    %s:%d", path.Base(f.File), f.Line)},
			)
		}
	}
	out = cut(out, 2*maxDecisive)
	if g.CreatedBy != "" {
		out = append(out, stackLine{Text: "created by " + g.CreatedBy})
	}
	return out
}

// cut leaves out lines, so that about `most` remain: the first ones, and the marked one with the line after it, which
// says where it is.
func cut(lines []stackLine, most int) []stackLine {
	if len(lines) <= most {
		return lines
	}
	hit := -1
	for i, l := range lines {
		if l.Hit {
			hit = i
		}
	}
	head, tail := lines[:most], []stackLine{}
	if hit >= most-1 {
		head, tail = lines[:max(1, most-3)], lines[hit:min(hit+2, len(lines))]
	}
	out := append([]stackLine{}, head...)
	if n := hit - len(head); len(tail) > 0 && n > 0 {
		out = append(out, stackLine{Text: fmt.Sprintf("… %d lines left out", n)})
	}
	out = append(out, tail...)
	if n := len(lines) - max(len(head), hit+len(tail)); n > 0 {
		out = append(out, stackLine{Text: fmt.Sprintf("… %d lines more", n)})
	}
	return out
}

// ageOf says how long the goroutines of a group have waited.
func ageOf(g goroutine.Group) string {
	lo, hi := g.MinWait/time.Minute, g.MaxWait/time.Minute
	switch {
	case g.State == "":
		return "not in this kind of dump"
	case hi == 0:
		return "not printed: under a minute, or not yet seen by a garbage collection"
	case lo == hi:
		return fmt.Sprintf("waiting for %d min", hi)
	}
	return fmt.Sprintf("waiting for %d to %d min", lo, hi)
}
