package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "retainedHeap",
		Doc: "How much memory that was allocated below a function is still in use, by the heap profiles of the " +
			"window, each taken after a garbage collection.\n\n" +
			"With atLeast, every profile of the window must have at least that much of this memory; with below, " +
			"every profile must have less. One profile that doesn't makes the check false.\n\n" +
			"With overBaseline, the check compares the last profiles with the baseline, for each place that " +
			"allocated memory. A place counts by how much every one of the last profiles has above the most in the " +
			"baseline. The sum over all places must be less than overBaseline. func may then be left out, for all of " +
			"the heap. The runtime samples allocations, so a place that grew by less than a mebibyte doesn't count.",
		Example: "name: retained\nkind: retainedHeap\nphase: recovery\nspec:\n  func: " +
			"registry.(*Store).DeleteCollection\n  atLeast: 16Mi\n  snapshots: 2\n  lastAfter: 120s\n",
		Meets:   `{"func":"pleg.(*GenericPLEG).Relist","atLeast":"16Mi","snapshots":2}`,
		Differs: `{"func":"pleg.(*GenericPLEG).Relist","atLeast":"1Gi","snapshots":2}`,
		New:     func() check.Check { return &RetainedHeap{Snapshots: 1} },
	})
}

// RetainedHeap checks how much memory that was allocated below a function is still in use.
type RetainedHeap struct {
	Func         string   `json:"func,omitempty" jsonschema:"part of a function's name: memory that was allocated below this function counts. Required without overBaseline; with overBaseline the default is the whole heap"`
	AtLeast      string   `json:"atLeast,omitempty" jsonschema:"the least that each profile must have: bytes with a suffix (16Mi). Give one of atLeast, below and overBaseline"`
	Below        string   `json:"below,omitempty" jsonschema:"instead of atLeast: each profile must have less than this"`
	OverBaseline string   `json:"overBaseline,omitempty" jsonschema:"instead of atLeast: less than this may be left in addition to what the baseline had"`
	Except       []string `json:"except,omitempty" jsonschema:"with overBaseline: parts of functions' names. Memory that was allocated below such a function doesn't count, for example what profiling itself holds, or a cache that has a limit"`
	Snapshots    int      `json:"snapshots,omitzero" jsonschema:"how many profiles there must be, at least (1 or more). With overBaseline, this many of the last profiles are compared with the baseline"`
	LastAfter    string   `json:"lastAfter,omitempty" refers:"stretch" jsonschema:"how long after the start of the phase the last profile must be taken, at least: a duration with its unit. Default: any time"`
}

// Reads names heap profiles.
func (c *RetainedHeap) Reads() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// NeedsBaselineProcess returns that the subject must be the process of the baseline, if little memory is asked for: after a restart
// that says nothing.
func (c *RetainedHeap) NeedsBaselineProcess() bool { return c.AtLeast == "" }

// Validate refuses a limit that any profile would satisfy, and an answer that needs no profile.
func (c *RetainedHeap) Validate() error {
	_, err := c.limit()
	return errors.Join(
		cmp.Or(
			question.Refuse(
				question.CountTrue(c.AtLeast != "", c.Below != "", c.OverBaseline != "") != 1,
				"want one of atLeast, below and overBaseline",
			),
			question.Refuse(
				c.Func == "" && c.OverBaseline == "",
				"func is empty, which all memory would match",
			),
			err,
		),
		question.Refuse(
			len(c.Except) > 0 && c.OverBaseline == "" || slices.Contains(c.Except, ""),
			"except is %q (want names, none of them empty, and overBaseline with them)",
			c.Except,
		),
		question.Refuse(c.Snapshots < 1, "snapshots is %d (want at least 1)", c.Snapshots),
		question.Optional("lastAfter", c.LastAfter),
	)
}

// limit returns the limit in bytes.
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
func (c *RetainedHeap) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	limit, _ := c.limit() // Validate has read it
	now := goroutines.ReadProfiles(q, c.Func)
	q.Evidence, q.Differs = now.Paths, question.FirstAndLast(now.Notes)
	q.Say("%d profiles", question.N("profiles", len(now.In)))
	if len(now.In) > 0 {
		byBytes := func(a, b goroutines.Retention) int { return cmp.Compare(a.Bytes, b.Bytes) }
		least, most := slices.MinFunc(now.In, byBytes), slices.MaxFunc(now.In, byBytes)
		q.Add(
			" with %s to %s%s",
			question.Bytes("leastBytes", least.Bytes),
			question.Bytes("mostBytes", most.Bytes),
			q.LastAt(now.Last),
		)
	}
	if c.OverBaseline != "" {
		c.judgeBack(q, now, limit)
		return q.Finding
	}
	as := 0
	for _, p := range now.In {
		if p.Bytes >= limit {
			q.Detail = p.Describe()
		}
		if p.Bytes >= limit == (c.Below == "") {
			as++
		}
	}
	switch {
	case as < len(now.In):
		q.Met = check.False
	case now.Missing != nil:
		q.Doubt(now.Missing)
	case len(now.In) < c.Snapshots || !q.Reached(c.LastAfter, now.Last):
		q.DoubtBy(check.TooFew, ": too few to answer by")
	default:
		q.Met = check.True
	}
	// After a restart, little memory says nothing about what was retained before.
	if little := check.Of(c.Below != ""); q.Met == little {
		if doubt := q.SinceFault().Restarted(); doubt != nil {
			q.Doubt(doubt)
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
	out := fmt.Sprintf(
		"%s retained%s in every one of at least %d heap profiles",
		limit,
		below,
		c.Snapshots,
	)
	if c.OverBaseline != "" {
		out = fmt.Sprintf(
			"less than %s more retained%s in each of the last %d heap profiles than in the baseline",
			c.OverBaseline,
			below,
			c.Snapshots,
		)
		if len(c.Except) > 0 {
			out += ", but for what is below " + strings.Join(c.Except, ", ")
		}
	}
	return out + question.LastWanted(c.LastAfter)
}

// judgeBack answers whether the heap is back to what it was in the baseline. It compares place by place, because
// buffers that come and go change the total by more than a leak does. Memory counts as left for good if every one of
// the last profiles has it, above the baseline's most for the same place.
func (c *RetainedHeap) judgeBack(
	q *question.Question,
	now question.Snapshots[goroutines.Retention],
	limit int64,
) {
	before, doubt := q.Baseline()
	if doubt != nil {
		q.Doubt(doubt)
		return
	}
	was := goroutines.ReadProfiles(q.Over(before), c.Func)
	q.Evidence = slices.Concat(was.Paths, q.Evidence)
	q.Differs = question.FirstAndLast(slices.Concat(was.Notes, now.Notes))
	doubt = cmp.Or(
		now.Missing,
		was.Missing,
		q.Over(bundle.Window{Start: before.Start, End: q.Window.End}).Restarted(),
	)
	switch {
	case doubt != nil:
		q.Doubt(doubt)
	case len(was.In) == 0:
		q.DoubtBy(check.TooFew, "; there is none of the baseline to compare with")
	case len(now.In) < c.Snapshots || !q.Reached(c.LastAfter, now.Last):
		q.DoubtBy(check.TooFew, ": too few to answer by")
	default:
		all, most, place := goroutines.GrowthSince(
			was.In,
			now.In[len(now.In)-c.Snapshots:],
			c.Except,
		)
		q.Met = check.Of(all < limit)
		q.Add(
			"; each of the last %d has %s more than the %d of the baseline",
			c.Snapshots,
			question.Bytes("moreBytes", all),
			len(was.In),
		)
		if all > 0 {
			q.Detail = fmt.Sprintf(
				"%s more, of which %s were allocated in\n\t%s",
				question.Mebibytes(all),
				question.Mebibytes(most),
				place,
			)
		}
		if q.Met == check.False && len(was.Notes) > 0 {
			q.DoubtBy(check.Unreadable, "; a profile of the baseline is missing")
		}
	}
}
