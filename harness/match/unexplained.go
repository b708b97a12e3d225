package match

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/match/healthy"
)

// Unexplained is what stands out, whether a scenario knows it or not. It decides nothing.
type Unexplained struct {
	Compared   []Comparison `json:"compared" jsonschema:"dumps with what healthy processes don't have, the most unusual first"`
	AsUsual    []string     `json:"asUsual" jsonschema:"dumps that were compared and have nothing unusual"`
	Goroutines []Group      `json:"goroutines" jsonschema:"the largest groups, the largest first"`
	Running    []Group      `json:"running" jsonschema:"groups that ran or could run, without the writer of the dump"`
	Restarts   []Restart    `json:"restarts" jsonschema:"of containers, the most restarts first"`
	Warnings   []Warning    `json:"warnings" jsonschema:"from events, the most frequent first"`
	Loops      []Loop       `json:"loops" jsonschema:"lines that a log has again and again, the most frequent first"`
}

// Warning is what events warn of, and how often.
type Warning struct {
	Reason  string `json:"reason"`
	About   string `json:"about"`
	Count   int    `json:"count"`
	Message string `json:"message"`
	Path    string `json:"path"`
}

// Loop is a place in a program that has logged a large share of a log.
type Loop struct {
	Where string `json:"where" jsonschema:"the log"`
	At    string `json:"at" jsonschema:"the source's file and line"`
	Lines int    `json:"lines"`
	Of    int    `json:"of" jsonschema:"how many lines the log has"`
	First string `json:"first" jsonschema:"the first of these lines"`
}

// Group is the goroutines of a dump that have the same stack.
type Group struct {
	Where   string   `json:"where"`
	Count   int      `json:"count"`
	State   string   `json:"state,omitempty"`
	Minutes int      `json:"minutes,omitempty" jsonschema:"how long the longest of them has waited, as far as the dump says"`
	Frames  []string `json:"frames" jsonschema:"the innermost functions"`
}

// Restart is a container that was restarted, and how it last ended, if that is known.
type Restart struct {
	Container string    `json:"container"`
	Place     string    `json:"place"`
	Restarts  int       `json:"restarts"`
	Reason    string    `json:"reason,omitempty"`
	ExitCode  int32     `json:"exitCode,omitempty"`
	At        time.Time `json:"at,omitzero"`
	Path      string    `json:"path"`
}

// How much is reported: a few groups and restarts are enough to go on from.
const (
	maxGroups   = 5
	maxFrames   = 4
	maxRestarts = 10
)

func (e *evidence) unexplained(well []*healthy.Baseline) Unexplained {
	out := Unexplained{Compared: []Comparison{}, AsUsual: []string{}, Goroutines: []Group{}, Running: []Group{},
		Restarts: append([]Restart{}, e.restarts...), Warnings: append([]Warning{}, e.warnings...), Loops: []Loop{}}
	compared, usual := e.compareWithHealthy(well)
	out.Compared, out.AsUsual = append(out.Compared, compared...), append(out.AsUsual, usual...)
	for _, s := range e.sources {
		if n := len(s.dumps); n > 0 { // only the last dump
			out.add(fmt.Sprintf("%s:%d", s.path, s.dumps[n-1].Line), s.dumps[n-1].Dump)
		}
		out.loops(s)
	}
	for _, t := range e.trials {
		all := t.view.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Arm: t.arm})
		if len(all) == 0 {
			continue
		}
		last := all[len(all)-1]
		if d := dumpOf(t.view, last); d != nil { // an unreadable dump is reported by the check that asks for it
			out.add(t.place+", "+last.Path, d)
		}
	}
	slices.SortStableFunc(
		out.Goroutines,
		func(a, b Group) int { return cmp.Compare(b.Count, a.Count) },
	)
	slices.SortStableFunc(
		out.Restarts,
		func(a, b Restart) int { return cmp.Compare(b.Restarts, a.Restarts) },
	)
	slices.SortStableFunc(
		out.Warnings,
		func(a, b Warning) int { return cmp.Compare(b.Count, a.Count) },
	)
	slices.SortStableFunc(out.Loops, func(a, b Loop) int { return cmp.Compare(b.Lines, a.Lines) })
	out.Goroutines, out.Running = first(out.Goroutines, maxGroups), first(out.Running, maxGroups)
	out.Restarts, out.Warnings = first(out.Restarts, maxRestarts), first(out.Warnings, maxGroups)
	out.Loops = first(out.Loops, maxGroups)
	return out
}

func first[T any](all []T, n int) []T { return all[:min(len(all), n)] }

// add takes from a dump the groups of several goroutines, and those that ran. The number of goroutines in a group
// doesn't show whether they ran or waited.
func (u *Unexplained) add(where string, d *goroutine.Dump) {
	one := func(g goroutine.Group) Group {
		out := Group{
			Where:   where,
			Count:   g.Count,
			State:   g.State,
			Minutes: int(g.MaxWait / time.Minute),
			Frames:  []string{},
		}
		for _, f := range first(g.Frames, maxFrames) {
			out.Frames = append(out.Frames, fmt.Sprintf("%s %s:%d", f.Func, f.File, f.Line))
		}
		return out
	}
	for _, g := range d.Groups {
		if g.Count > 1 {
			u.Goroutines = append(u.Goroutines, one(g))
		}
	}
	for _, g := range d.Ranked() {
		if !g.Ready() {
			break
		}
		if !writesDump(g) {
			u.Running = append(u.Running, one(g))
		}
	}
}

// writesDump reports whether a goroutine runs only because it writes the dump, or is a thread's own stack.
func writesDump(g goroutine.Group) bool {
	return slices.Contains(g.IDs, 0) ||
		slices.ContainsFunc(g.Frames, func(f goroutine.Frame) bool {
			return strings.HasPrefix(f.Func, "runtime/pprof.write") ||
				f.Func == "runtime/debug.Stack" ||
				f.Func == "runtime.Stack"
		})
}

// A place is reported if it has logged at least loopLines lines and one in loopShare lines of a log.
const (
	loopLines = 200
	loopShare = 3 // one in three
	maxPlaces = 2000
)

func (u *Unexplained) loops(s *source) {
	for at, p := range s.places {
		if p.lines >= loopLines && p.lines*loopShare >= s.log {
			u.Loops = append(
				u.Loops,
				Loop{Where: s.path, At: at, Lines: p.lines, Of: s.log, First: p.first},
			)
		}
	}
}

// place is a place in a program that logs.
type place struct {
	lines int
	first string
}

// logged counts a line for the place in the program that logged it: file.go:123, before the bracket that ends klog's
// header.
func (s *source) logged(raw []byte) {
	head := raw[:min(len(raw), 160)]
	end := bytes.Index(head, []byte("] "))
	if end < 0 {
		return
	}
	at := head[bytes.LastIndexByte(head[:end], ' ')+1 : end]
	if !bytes.Contains(at, []byte(".go:")) {
		return
	}
	if p := s.places[string(at)]; p != nil {
		p.lines++
	} else if len(s.places) < maxPlaces {
		if s.places == nil {
			s.places = map[string]*place{}
		}
		s.places[string(at)] = &place{1, string(raw[:min(len(raw), 300)])}
	}
}
