package check

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/heap"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "retainedHeap",
		Doc: "Memory that was allocated below a function and is still in use, by the heap profiles of the window, each taken after a garbage collection.\n\n" +
			"Met when every profile of the window has at least so much of it, or with below, less: one that doesn't is decisive. The runtime samples " +
			"allocations, so that amounts far below a mebibyte say little.",
		Example: "name: retained\nkind: retainedHeap\nphase: recovery\nspec:\n  func: registry.(*Store).DeleteCollection\n  atLeast: 16Mi\n  snapshots: 2\n  lastAfter: 120s\n",
		New:     func() Check { return &RetainedHeap{Snapshots: 1} },
	})
}

// RetainedHeap asks how much memory a function's callees retain.
type RetainedHeap struct {
	Func      string `json:"func" jsonschema:"part of the name of the function below which the memory was allocated"`
	AtLeast   string `json:"atLeast,omitempty" jsonschema:"how much each profile must have: bytes with a suffix (16Mi)"`
	Below     string `json:"below,omitempty" jsonschema:"what no profile may reach, instead of atLeast"`
	Snapshots int    `json:"snapshots,omitzero" jsonschema:"how many profiles the answer must rest on, at least"`
	LastAfter string `json:"lastAfter,omitempty" jsonschema:"how long after the start of the phase the last of them must lie: a duration with its unit"`
}

// Reads names heap profiles.
func (c *RetainedHeap) Reads() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// Validate refuses a limit that any profile would meet, and an answer that rests on none.
func (c *RetainedHeap) Validate() error {
	errs := []error{}
	switch {
	case c.Func == "":
		errs = append(errs, errors.New("func is empty, which all memory would match"))
	case (c.AtLeast == "") == (c.Below == ""):
		errs = append(errs, errors.New("want one of atLeast and below"))
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
	if c.Below != "" {
		field, text = "below", c.Below
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
	f := Finding{Wanted: wanted}
	var last time.Time
	var lo, hi int64
	missing, read, as := "", 0, 0
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Heap, Cell: s.Cell, From: w.Start, To: w.End}) {
		if a.Error != "" {
			f.Differs = append(f.Differs, fmt.Sprintf("the profile of %s failed: %s", clock(a.Time), a.Error))
			continue
		}
		bytes, stack, err := retainedIn(v, a, c.Func)
		if err != nil {
			missing = err.Error()
			continue
		}
		if read == 0 {
			lo, hi = bytes, bytes
		}
		read, last, lo, hi = read+1, a.Time, min(lo, bytes), max(hi, bytes)
		f.Evidence = append(f.Evidence, a.Path)
		if bytes >= limit {
			f.Detail = stack
		}
		if bytes >= limit == (c.Below == "") {
			as++
		}
	}
	f.Differs = few(f.Differs)
	began := w.Start.Add(-s.After)
	f.Seen = fmt.Sprintf("%d profiles", read)
	if read > 0 {
		f.Seen += fmt.Sprintf(" with %s to %s, the last %s after %s began", mebi(lo), mebi(hi), last.Sub(began).Round(time.Second), s.Phase)
	}
	switch {
	case as < read:
		f.Met = NotMet
	case missing != "":
		f.Seen += "; " + missing
	case read < c.Snapshots || !reached(c.LastAfter, last, began):
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

func (c *RetainedHeap) wanted() string {
	limit := "at least " + c.AtLeast
	if c.Below != "" {
		limit = "below " + c.Below
	}
	out := fmt.Sprintf("%s retained below %s in every one of at least %d heap profiles", limit, c.Func, c.Snapshots)
	if c.LastAfter != "" {
		out += ", the last at least " + c.LastAfter + " into the phase"
	}
	return out
}

// retention is what a heap profile says of what was allocated under a function.
type retention struct {
	bytes, objects int64
	largest        []heap.Stack
}

// retainedIn reads how many bytes a heap profile shows in use below a function, and the largest stack of them.
func retainedIn(v bundle.View, a bundle.Artifact, function string) (bytes int64, stack string, err error) {
	if a.Missing {
		return 0, "", errors.New(broken(a))
	}
	kept, err := v.Remember(a, "retained in "+function, func(_ any, r io.Reader) (any, error) {
		var out retention
		var err error
		out.bytes, out.objects, out.largest, err = heap.Retained(r, function)
		return out, err
	})
	if err != nil {
		return 0, "", fmt.Errorf("reading %s: %w", a.Path, err)
	}
	k := kept.(retention)
	if len(k.largest) > 0 {
		stack = fmt.Sprintf("%s in %d objects, of which %s were allocated in\n\t%s", mebi(k.bytes), k.objects, mebi(k.largest[0].Bytes),
			strings.Join(k.largest[0].Frames, "\n\t"))
	}
	return k.bytes, stack, nil
}
