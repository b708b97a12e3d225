package check

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "retainedHeap",
		Doc: "Memory that was allocated below a function and is still in use, by the heap profiles of the window, each taken after a garbage collection.\n\n" +
			"Met when every profile of the window has at least so much of it, or with below, less: one that doesn't is decisive. With overBaseline, one of the last " +
			"profiles must be back at what the baseline's largest had, give or take that much; func may then be left out, for all of the heap. The runtime " +
			"samples allocations, so that amounts far below a mebibyte say little.",
		Example: "name: retained\nkind: retainedHeap\nphase: recovery\nspec:\n  func: registry.(*Store).DeleteCollection\n  atLeast: 16Mi\n  snapshots: 2\n  lastAfter: 120s\n",
		New:     func() Check { return &RetainedHeap{Snapshots: 1} },
	})
}

// RetainedHeap asks how much memory a function's callees retain.
type RetainedHeap struct {
	Func         string `json:"func,omitempty" jsonschema:"part of the name of the function below which the memory was allocated"`
	AtLeast      string `json:"atLeast,omitempty" jsonschema:"how much each profile must have: bytes with a suffix (16Mi)"`
	Below        string `json:"below,omitempty" jsonschema:"what no profile may reach, instead of atLeast"`
	OverBaseline string `json:"overBaseline,omitempty" jsonschema:"what the last profiles may not have more than the baseline's largest, instead of atLeast"`
	Snapshots    int    `json:"snapshots,omitzero" jsonschema:"how many profiles the answer must rest on, at least; with overBaseline, the last so many"`
	LastAfter    string `json:"lastAfter,omitempty" jsonschema:"how long after the start of the phase the last of them must lie: a duration with its unit"`
}

// Reads names heap profiles.
func (c *RetainedHeap) Reads() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// Validate refuses a limit that any profile would meet, and an answer that rests on none.
func (c *RetainedHeap) Validate() error {
	errs := []error{}
	limits := 0
	for _, given := range []string{c.AtLeast, c.Below, c.OverBaseline} {
		if given != "" {
			limits++
		}
	}
	switch {
	case limits != 1:
		errs = append(errs, errors.New("want one of atLeast, below and overBaseline"))
	case c.Func == "" && c.OverBaseline == "":
		errs = append(errs, errors.New("func is empty, which all memory would match"))
	default:
		_, err := c.limit()
		errs = append(errs, err)
	}
	if c.Snapshots < 1 {
		errs = append(errs, fmt.Errorf("snapshots is %d (want at least 1)", c.Snapshots))
	}
	if c.LastAfter != "" {
		errs = append(errs, positive("lastAfter", c.LastAfter))
	}
	return errors.Join(errs...)
}

// limit is what is compared with, in bytes.
func (c *RetainedHeap) limit() (int64, error) {
	field, text := "atLeast", c.AtLeast
	switch {
	case c.Below != "":
		field, text = "below", c.Below
	case c.OverBaseline != "":
		field, text = "overBaseline", c.OverBaseline
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is %q (want bytes with a suffix: 16Mi)", field, text)
	case q.Value() <= 0:
		return 0, fmt.Errorf("%s is %s (want above 0)", field, text)
	}
	return q.Value(), nil
}

// Eval reads every profile of the window.
func (c *RetainedHeap) Eval(v bundle.View, s Scope) Finding {
	wanted := c.wanted()
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	limit, _ := c.limit() // Validate has read it
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	now := c.profiles(v, s.Cell, w)
	f := Finding{Wanted: wanted, Evidence: now.paths, Differs: few(now.notes)}
	began := w.Start.Add(-s.After)
	f.Seen = fmt.Sprintf("%d profiles", len(now.in))
	if len(now.in) > 0 {
		f.Seen += fmt.Sprintf(" with %s to %s, the last %s after %s began", mebi(now.least().bytes), mebi(now.most().bytes), now.last.Sub(began).Round(time.Second), s.Phase)
	}
	if c.OverBaseline != "" {
		c.back(&f, v, s, w, now, limit)
		return f
	}
	as := 0
	for _, p := range now.in {
		if p.bytes >= limit {
			f.Detail = p.largestSaid()
		}
		if p.bytes >= limit == (c.Below == "") {
			as++
		}
	}
	switch {
	case as < len(now.in):
		f.Met = NotMet
	case now.missing != "":
		f.Seen += "; " + now.missing
	case len(now.in) < c.Snapshots || !reached(c.LastAfter, now.last, began):
		f.Seen += ": too few to answer by"
	default:
		f.Met = Met
	}
	if little := Of(c.Below != ""); f.Met == little { // as after a restart, which says nothing about the memory that was retained before
		if why := restarted(v, s.Cell, sinceFault(v, s.Cell, w)); why != "" {
			f.Met, f.Seen = Unknown, f.Seen+"; "+why
		}
	}
	return f
}

// back answers whether the heap is where it was in the baseline. What is retained stays, so that of the last profiles the one with the least tells;
// of the baseline the one with the most is normal.
func (c *RetainedHeap) back(f *Finding, v bundle.View, s Scope, w bundle.Window, now profiles, limit int64) {
	before, ok := v.Phase(s.Cell, Baseline)
	if !ok || before.End.IsZero() {
		f.Seen += "; the baseline, which it is compared with, has not ended"
		return
	}
	was := c.profiles(v, s.Cell, before)
	f.Evidence = slices.Concat(was.paths, f.Evidence)
	f.Differs = few(slices.Concat(was.notes, now.notes))
	if doubt := firstOf(now.missing, was.missing, restarted(v, s.Cell, bundle.Window{Start: before.Start, End: w.End})); doubt != "" {
		f.Seen += "; " + doubt
		return
	}
	switch {
	case len(was.in) == 0:
		f.Seen += "; there is none of the baseline to compare with"
		return
	case len(now.in) < c.Snapshots || !reached(c.LastAfter, now.last, w.Start.Add(-s.After)):
		f.Seen += ": too few to answer by"
		return
	}
	now.in = now.in[len(now.in)-c.Snapshots:]
	least, most := now.least(), was.most()
	f.Met = Of(least.bytes-most.bytes < limit)
	f.Seen += fmt.Sprintf("; of the last %d the least has %s, against %s in the baseline", c.Snapshots, mebi(least.bytes), mebi(most.bytes))
	if f.Met == NotMet {
		f.Detail = least.grewSaid(most)
	}
}

func (c *RetainedHeap) wanted() string {
	limit, below := "at least "+c.AtLeast, " below "+c.Func
	if c.Below != "" {
		limit = "below " + c.Below
	}
	if c.Func == "" {
		below = " in all"
	}
	out := fmt.Sprintf("%s retained%s in every one of at least %d heap profiles", limit, below, c.Snapshots)
	if c.OverBaseline != "" {
		out = fmt.Sprintf("less than %s more retained%s than in the baseline, in one of the last %d heap profiles", c.OverBaseline, below, c.Snapshots)
	}
	if c.LastAfter != "" {
		out += ", the last at least " + c.LastAfter + " into the phase"
	}
	return out
}
