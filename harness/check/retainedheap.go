package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "retainedHeap",
		Doc: "Memory that was allocated below a function and is still in use, by the heap profiles of the window, each taken after a garbage collection.\n\n" +
			"Met when every profile of the window has at least so much of it, or with below, less: one that doesn't is decisive. With overBaseline, " +
			"what every one of the last profiles has above the baseline's most, added up over the places that allocated it, must be less than that; func may then be " +
			"left out, for all of the heap. The runtime samples allocations: a place that grew by less than a mebibyte isn't counted.",
		Example: "name: retained\nkind: retainedHeap\nphase: recovery\nspec:\n  func: registry.(*Store).DeleteCollection\n  atLeast: 16Mi\n  snapshots: 2\n  lastAfter: 120s\n",
		New:     func() Check { return &RetainedHeap{Snapshots: 1} },
	})
}

// RetainedHeap asks how much memory a function's callees retain.
type RetainedHeap struct {
	Func         string   `json:"func,omitempty" jsonschema:"part of the name of the function below which the memory was allocated"`
	AtLeast      string   `json:"atLeast,omitempty" jsonschema:"how much each profile must have: bytes with a suffix (16Mi)"`
	Below        string   `json:"below,omitempty" jsonschema:"what no profile may reach, instead of atLeast"`
	OverBaseline string   `json:"overBaseline,omitempty" jsonschema:"less than this may stay that the baseline didn't have, instead of atLeast"`
	Except       []string `json:"except,omitempty" jsonschema:"with overBaseline: parts of names of functions below which memory doesn't count: what looking holds, and caches with bounds of their own"`
	Snapshots    int      `json:"snapshots,omitzero" jsonschema:"how many profiles the answer must rest on, at least; with overBaseline, the last so many"`
	LastAfter    string   `json:"lastAfter,omitempty" jsonschema:"how long after the start of the phase the last of them must lie: a duration with its unit"`
}

// Reads names heap profiles.
func (c *RetainedHeap) Reads() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// Validate refuses a limit that any profile would meet, and an answer that rests on none.
func (c *RetainedHeap) Validate() error {
	_, err := c.limit()
	return errors.Join(
		cmp.Or(
			refuse(given(c.AtLeast != "", c.Below != "", c.OverBaseline != "") != 1, "want one of atLeast, below and overBaseline"),
			refuse(c.Func == "" && c.OverBaseline == "", "func is empty, which all memory would match"),
			err),
		refuse(len(c.Except) > 0 && c.OverBaseline == "" || slices.Contains(c.Except, ""), "except is %q (want names, none of them empty, and overBaseline with them)", c.Except),
		refuse(c.Snapshots < 1, "snapshots is %d (want at least 1)", c.Snapshots),
		optional("lastAfter", c.LastAfter),
	)
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
	q, ok := ask(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	limit, _ := c.limit() // Validate has read it
	now := c.profiles(v, q.cell, q.window)
	q.Evidence, q.Differs = now.paths, few(now.notes)
	q.Seen = fmt.Sprintf("%d profiles", len(now.in))
	if len(now.in) > 0 {
		q.Seen += fmt.Sprintf(" with %s to %s, the last %s after %s began", mebi(now.least().bytes), mebi(now.most().bytes), now.last.Sub(q.began).Round(time.Second), q.phase)
	}
	if c.OverBaseline != "" {
		c.back(q, now, limit)
		return q.Finding
	}
	as := 0
	for _, p := range now.in {
		if p.bytes >= limit {
			q.Detail = p.largestSaid()
		}
		if p.bytes >= limit == (c.Below == "") {
			as++
		}
	}
	switch {
	case as < len(now.in):
		q.Met = NotMet
	case now.missing != "":
		q.Seen += "; " + now.missing
	case len(now.in) < c.Snapshots || !reached(c.LastAfter, now.last, q.began):
		q.Seen += ": too few to answer by"
	default:
		q.Met = Met
	}
	if little := Of(c.Below != ""); q.Met == little { // as after a restart, which says nothing about the memory that was retained before
		if why := restarted(v, q.cell, sinceFault(v, q.cell, q.window)); why != "" {
			q.Met, q.Seen = Unknown, q.Seen+"; "+why
		}
	}
	return q.Finding
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
		out = fmt.Sprintf("less than %s more retained%s in each of the last %d heap profiles than in the baseline", c.OverBaseline, below, c.Snapshots)
		if len(c.Except) > 0 {
			out += ", but for what is below " + strings.Join(c.Except, ", ")
		}
	}
	if c.LastAfter != "" {
		out += ", the last at least " + c.LastAfter + " into the phase"
	}
	return out
}
