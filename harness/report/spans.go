package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// slowest is how many of a component's traces a report shows.
const slowest = 5

// Spans are the traces that a component logged in a cell.
type Spans struct {
	Cell, Component string
	Count           int
	Slowest         []klog.Span // at most a handful, the slowest first
}

// tracesOf reads the traces in a component's log. A component that logged none gives no Spans.
func tracesOf(v bundle.View, a bundle.Artifact) (Spans, error) {
	out := Spans{Cell: a.Cell, Component: a.Component}
	r, err := v.Open(a)
	if err != nil {
		return out, err
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for s := range klog.Spans(logTexts(lines, &err)) {
		out.Count++
		at, _ := slices.BinarySearchFunc(out.Slowest, s.Total, func(have klog.Span, took time.Duration) int {
			if have.Total >= took {
				return -1
			}
			return 1
		})
		out.Slowest = slices.Insert(out.Slowest, at, s)
		out.Slowest = out.Slowest[:min(len(out.Slowest), slowest)]
	}
	if err == nil {
		err = lines.Err()
	}
	if err != nil {
		return out, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return out, nil
}

// logTexts are the lines of a log as their component wrote them, up to one that is none.
func logTexts(lines *bufio.Scanner, err *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for lines.Scan() {
			var l bundle.LogLine
			if *err = json.Unmarshal(lines.Bytes(), &l); *err != nil || !yield(l.Text) {
				return
			}
		}
	}
}

// traces shows the slowest operations of each component, by its own account.
func (p *printer) traces(t Trial) {
	if len(t.Spans) == 0 {
		return
	}
	p.say("#### Slowest operations, by the components' own traces\n\n| cell | component | took | operation | request | start | its slowest step |\n|---|---|---|---|---|---|---|\n")
	for _, c := range t.Spans {
		for _, s := range c.Slowest {
			request, _ := s.Get("url")
			took := s.Total.Round(time.Millisecond).String()
			if s.Incomplete {
				took += " (lines are missing)"
			}
			p.say("| %s | %s | %s | %s | %s | %s | %s |\n", cell(cmp.Or(c.Cell, bundle.Shared)), cell(c.Component), took,
				cell(s.Name), cell(request), clock(s.Start), cell(slowestStep(s)))
		}
	}
	p.say("\n")
	for _, c := range t.Spans {
		p.say("- %s of %s logged %d traces\n", cell(c.Component), cell(cmp.Or(c.Cell, bundle.Shared)), c.Count)
	}
	p.say("\n")
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("15:04:05.000")
}

// slowestStep names the step that took longest, with the nested spans that it is in.
func slowestStep(s klog.Span) string {
	name, took := "", time.Duration(-1)
	var walk func(klog.Span, []string)
	walk = func(s klog.Span, in []string) {
		for _, step := range s.Steps {
			if step.Took > took {
				name, took = strings.Join(append(slices.Clone(in), step.Name), ": "), step.Took
			}
		}
		for _, n := range s.Nested {
			walk(n, append(slices.Clone(in), n.Name))
		}
	}
	walk(s, nil)
	if took < 0 {
		return ""
	}
	return fmt.Sprintf("%s, %s", name, took.Round(time.Millisecond))
}
