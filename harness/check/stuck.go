package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "nothingStuck",
		Doc: "No goroutine that is blocked for good in a wait state, in whichever function, beyond those of the baseline.\n\n" +
			"A fix may only move a leak: a build that blocks in a function of another name passes a check that asks for the incident's own. Goroutines are " +
			"told by their ids: blocked for good are those that every one of the last dumps shows in the state, and no dump of the baseline.",
		Example: "name: nothing-stuck\nkind: nothingStuck\nphase: recovery\nspec:\n  states: [chan send]\n  dumps: 3\n  lastAfter: 120s\n",
		New:     func() Check { return &NothingStuck{Dumps: 3} },
	})
}

// NothingStuck asks that no goroutine was left blocked.
type NothingStuck struct {
	States    []string `json:"states" jsonschema:"wait states as a dump prints them: chan send"`
	Dumps     int      `json:"dumps,omitzero" jsonschema:"how many of the last dumps must show a goroutine for it to be blocked for good, and how many there must be"`
	LastAfter string   `json:"lastAfter,omitempty" jsonschema:"how long after the start of the phase the last of them must lie: a duration with its unit"`
}

// Reads names debug=2 dumps. The subject's identity is in every trial.
func (c *NothingStuck) Reads() []bundle.Kind { return []bundle.Kind{bundle.Goroutines2} }

// Validate refuses what any dump would meet.
func (c *NothingStuck) Validate() error {
	var errs []error
	if len(c.States) == 0 || slices.Contains(c.States, "") {
		errs = append(errs, fmt.Errorf("states is %q (want at least one, none of them empty)", c.States))
	}
	if c.Dumps < 2 {
		errs = append(errs, fmt.Errorf("dumps is %d (want at least 2: one can't tell stuck from busy)", c.Dumps))
	}
	if c.LastAfter != "" {
		errs = append(errs, positive("lastAfter", c.LastAfter))
	}
	return errors.Join(errs...)
}

// Eval reads the last dumps of the window and those of the baseline.
func (c *NothingStuck) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("no goroutine [%s] in each of the last %d dumps that the baseline didn't have", strings.Join(c.States, ", "), c.Dumps)
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	before, ok := v.Phase(s.Cell, Baseline)
	if !ok || before.End.IsZero() {
		return unknown(wanted, "the baseline, which it is compared with, has not ended", nil)
	}
	was, now := c.blocked(v, s.Cell, before), c.blocked(v, s.Cell, w)
	f := Finding{Wanted: wanted, Evidence: slices.Concat(was.paths, now.paths), Differs: few(slices.Concat(was.notes, now.notes))}
	f.Seen = fmt.Sprintf("%d dumps, and %d of the baseline", len(now.in), len(was.in))
	began := w.Start.Add(-s.After)
	doubt := now.missing
	if doubt == "" {
		doubt = restarted(v, s.Cell, bundle.Window{Start: before.Start, End: w.End})
	}
	switch {
	case doubt != "":
		f.Seen += "; " + doubt
		return f
	case len(was.in) == 0:
		f.Seen += ": nothing to compare with"
		return f
	case len(now.in) < c.Dumps || !reached(c.LastAfter, now.last, began):
		f.Seen += fmt.Sprintf(", the last %s after %s began: too few to answer by", now.last.Sub(began).Round(time.Second), s.Phase)
		return f
	}
	stuck := now.in[len(now.in)-1]
	for _, earlier := range now.in[len(now.in)-c.Dumps:] {
		stuck = both(stuck, earlier)
	}
	for _, normal := range was.in {
		maps.DeleteFunc(stuck, func(id uint64, _ string) bool { _, had := normal[id]; return had })
	}
	f.Met = Of(len(stuck) == 0)
	f.Seen += fmt.Sprintf("; %d goroutines stay blocked", len(stuck))
	for _, id := range slices.Sorted(maps.Keys(stuck)) {
		f.Detail = stuck[id]
		break
	}
	return f
}

// blockedIn are the blocked goroutines of the dumps of a window, in order of time: id -> stack.
type blockedIn struct {
	in      []map[uint64]string
	last    time.Time
	missing string
	notes   []string
	paths   []string
}

func (c *NothingStuck) blocked(v bundle.View, cell string, w bundle.Window) (out blockedIn) {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Cell: cell, From: w.Start, To: w.End}) {
		if a.Error != "" {
			out.notes = append(out.notes, fmt.Sprintf("the dump of %s failed: %s", clock(a.Time), a.Error))
			continue
		}
		d, err := whole(v, a)
		if err != nil {
			out.missing = err.Error()
			continue
		}
		ids := map[uint64]string{}
		for _, g := range d.Groups {
			if !slices.Contains(c.States, g.State) {
				continue
			}
			stack := text(g)
			for _, id := range g.IDs {
				ids[id] = stack
			}
		}
		out.in, out.last, out.paths = append(out.in, ids), a.Time, append(out.paths, a.Path)
	}
	return out
}

// both are the entries of a that b has, too.
func both(a, b map[uint64]string) map[uint64]string {
	out := map[uint64]string{}
	for id, stack := range a {
		if _, ok := b[id]; ok {
			out[id] = stack
		}
	}
	return out
}
