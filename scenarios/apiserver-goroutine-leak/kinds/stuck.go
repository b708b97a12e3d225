package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "nothingStuck",
		Doc: "Failed calls left no goroutine behind for good, in any function and any wait state.\n\n" +
			"A fix may only move a leak. A build that blocks in a function of another name, or in another state, " +
			"passes a check that asks for the incident's goroutines. So this check looks at all goroutines, and " +
			"knows them by their ids: a goroutine is left for good if every one of the last dumps shows it.\n\n" +
			"In one of the states that `states` lists, a single goroutine is too many, unless the baseline showed " +
			"it.\n\n" +
			"With failed, goroutines in any state are compared with the baseline, because goroutines come and go " +
			"with clients. Goroutines with the same entry function and the same creator form a group, and a group " +
			"may have as many goroutines as the most that the baseline had. All goroutines above that, together, " +
			"must be fewer than the given share of the calls that failed; three are always allowed. The number of " +
			"failed calls is the larger of two counts: by the log, where a collection counts as one call however " +
			"many lines are about it, and by what the load saw. If the number may be larger, and that matters, the " +
			"answer is unknown.\n\n" +
			"The functions in `own` have no tolerance: a goroutine that one of them started, or that is in one of " +
			"them, is too many in any state, unless the baseline showed it.",
		Example: "name: nothing-stuck\nkind: nothingStuck\nphase: recovery\nspec:\n  states: [chan send]\n  dumps: " +
			"3\n  lastAfter: 120s\n" +
			"  failed:\n    component: kube-apiserver\n    pattern: Delete object in DeleteCollection failed\n  " +
			"share: 50%\n",
		New: func() check.Check { return &NothingStuck{Dumps: 3, Share: "50%"} },
	})
}

// NothingStuck checks that failed calls left no goroutine behind.
type NothingStuck struct {
	States    []string       `json:"states,omitempty" jsonschema:"states in which a single goroutine is too many, as a dump prints them: chan send. Give states, failed or both"`
	Own       []string       `json:"own,omitempty" jsonschema:"functions of the incident, without arguments; the start of the import path may be left out. A single goroutine that one of them or its closures started, or that is in one of them, is too many in any state"`
	Dumps     int            `json:"dumps,omitzero" jsonschema:"how many of the last dumps must all show a goroutine that was left for good. There must be this many (2 or more)"`
	LastAfter string         `json:"lastAfter,omitempty" refers:"stretch" jsonschema:"how long after the start of the phase the last dump must be taken, at least: a duration with its unit. Default: any time"`
	Failed    *logs.LogLines `json:"failed,omitempty" jsonschema:"log line that each failed call writes, counted from the beginning of the fault. Each failed call may have left a goroutine, with any stack and in any state"`
	Share     string         `json:"share,omitempty" jsonschema:"share of the failed calls: fewer goroutines than this may be left (above 0%, up to 100%)"`
	Load      string         `json:"load,omitempty" refers:"load" jsonschema:"name of the load that made the calls. The check then counts no more failed calls than the load made, and no fewer than the load saw delete and fail. Needs failed"`
}

// Reads names debug=2 dumps, and the log in which the failed calls are counted. It doesn't name the subject's identity,
// which every trial records.
func (c *NothingStuck) Reads() []bundle.Kind {
	return append([]bundle.Kind{bundle.Goroutines2}, c.Failed.Reads()...)
}

// NeedsBaselineProcess returns true: the subject is compared with its baseline.
func (*NothingStuck) NeedsBaselineProcess() bool { return true }

// states refuses states that no dump prints.
func states(all []string) (errs []error) {
	for i, state := range all {
		errs = append(errs, question.State(fmt.Sprintf("states[%d]", i), state))
	}
	return errs
}

// Validate refuses a spec that any dump would satisfy.
func (c *NothingStuck) Validate() error {
	errs := []error{
		question.Refuse(len(c.States) == 0 && c.Failed == nil || slices.Contains(c.States, ""),
			"states is %q (want at least one or failed, none of them empty)", c.States),
		errors.Join(states(c.States)...),
		question.Refuse(slices.Contains(c.Own, ""), "own is %q (want functions, none of them empty)", c.Own),
		question.Refuse(c.Dumps < 2, "dumps is %d (want at least 2: one can't tell stuck from busy)", c.Dumps),
		question.Optional("lastAfter", c.LastAfter),
		question.Refuse(
			c.Load != "" && c.Failed == nil,
			"load is %q, and failed is missing",
			c.Load,
		),
	}
	if c.Failed != nil {
		_, err := c.Failed.Compile()
		share, bad := question.Percent("share", c.Share)
		errs = append(errs, err, cmp.Or(
			bad,
			question.Refuse(
				share <= 0 || share > 1,
				"share is %s (want above 0%% and up to 100%%)",
				c.Share,
			),
		))
	}
	return errors.Join(errs...)
}

func (c *NothingStuck) wanted() string {
	var parts []string
	if len(c.States) > 0 {
		parts = append(
			parts,
			fmt.Sprintf(
				"no goroutine [%s] in each of the last %d dumps that the baseline didn't have",
				strings.Join(c.States, ", "),
				c.Dumps,
			),
		)
	}
	if len(c.Own) > 0 {
		parts = append(
			parts,
			fmt.Sprintf(
				"none, in any state, that %s made or that is in it",
				strings.Join(c.Own, ", "),
			),
		)
	}
	if c.Failed != nil {
		parts = append(
			parts,
			fmt.Sprintf(
				"fewer goroutines in each of the last %d dumps that the baseline didn't have, in any state, "+
					"than %s of the failed calls",
				c.Dumps,
				c.Share,
			),
		)
	}
	return strings.Join(parts, "; ")
}

// Eval reads the last dumps of the window and those of the baseline.
func (c *NothingStuck) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	return question.CompareWithBaseline(
		q,
		"dumps",
		c.Dumps,
		c.LastAfter,
		goroutines.ReadDumps,
		func(before, last []goroutines.ByID) check.Truth {
			return check.All(
				c.blocked(q, before, last),
				c.owned(q, before, last),
				c.grown(q, before, last),
			)
		},
	)
}

// blocked answers for the states in which a single goroutine is too many.
func (c *NothingStuck) blocked(q *question.Question, before, last []goroutines.ByID) check.Truth {
	if len(c.States) == 0 {
		return check.True
	}
	stuck := goroutines.Remaining(last, c.States)
	for _, normal := range before {
		for id, g := range normal {
			if slices.Contains(c.States, g.State) {
				delete(stuck, id)
			}
		}
	}
	q.Add("; %d goroutines stay blocked", question.N("blockedGoroutines", len(stuck)))
	if len(stuck) > 0 {
		q.Detail = stuck.Largest().Example.Text()
	}
	return check.Of(len(stuck) == 0)
}

// owned answers for goroutines of the incident's own functions. Any that the baseline didn't show is too many.
func (c *NothingStuck) owned(q *question.Question, before, last []goroutines.ByID) check.Truth {
	if len(c.Own) == 0 {
		return check.True
	}
	stay := goroutines.Remaining(last, nil).Minus(before)
	maps.DeleteFunc(stay, func(id uint64, _ *goroutine.Group) bool {
		return !slices.ContainsFunc(last, func(d goroutines.ByID) bool { return c.owns(*d[id]) })
	})
	q.Add(
		"; %d goroutines that %s made or that are in it stay",
		question.N("ownGoroutines", len(stay)),
		strings.Join(c.Own, ", "),
	)
	if len(stay) > 0 && q.Detail == "" {
		q.Detail = stay.Largest().Example.Text()
	}
	return check.Of(len(stay) == 0)
}

// owns reports whether one of the incident's own functions made a goroutine, or is on its stack.
func (c *NothingStuck) owns(g goroutine.Group) bool {
	g.Frames = append(slices.Clone(g.Frames), goroutine.Frame{Func: g.CreatedBy})
	return slices.ContainsFunc(c.Own, func(name string) bool {
		return goroutine.Match{Func: name, FoldCase: true, Closures: true}.Chooses(g)
	})
}

// alwaysAllowed is how many added goroutines are no leak however few calls failed: a client's new connection or watch
// brings some.
const alwaysAllowed = 3

// grown answers for goroutines in any state, by how much the groups that stay are larger than in the baseline.
func (c *NothingStuck) grown(q *question.Question, before, last []goroutines.ByID) check.Truth {
	if c.Failed == nil {
		return check.True
	}
	failed, doubt := c.calls(q)
	if failed.most < 0 {
		q.Doubt(doubt)
		return check.Unknown
	}
	share, _ := question.Percent("share", c.Share) // Validate has read it
	limit := func(calls int) int { return max(alwaysAllowed+1, int(math.Ceil(share*float64(calls)))) }
	least, most := limit(failed.least), limit(failed.most)
	all, largest := goroutines.GrowthByGroup(before, last)
	q.Add("; %s calls failed, and %d goroutines more than in the baseline stay, of fewer than %s",
		failed, question.N("moreGoroutines", all), bounds{least, most})
	if largest.N > 0 {
		q.Add(", most of them, %d, in %s", largest.N, largest.Name())
	}
	switch {
	case all < least:
		return check.True
	case all < most:
		q.DoubtBy(check.NotConclusive, "; how many calls failed is not known")
		return check.Unknown
	case doubt != nil: // with more calls, more goroutines would be allowed
		q.Doubt(doubt)
		return check.Unknown
	}
	if q.Detail == "" {
		q.Detail = largest.Example.Text()
	}
	return check.False
}

// bounds is a number of which only the least and the most are known.
type bounds struct{ least, most int }

func (b bounds) String() string {
	if b.least == b.most {
		return strconv.Itoa(b.least)
	}
	return fmt.Sprintf("%d to %d", b.least, b.most)
}

// calls counts the calls that failed since the fault began, by the log and by what the load saw. If n.most is below 0
// the number is unknown, and doubt says why. Otherwise doubt says why there may have been more calls than n.
func (c *NothingStuck) calls(q *question.Question) (n bounds, doubt error) {
	since := q.SinceFault()
	logged := c.Failed.Find(since)
	q.Evidence = append(q.Evidence, logged.Paths...)
	lines := len(logged.Found)
	switch {
	case logged.Doubt != nil:
		return bounds{most: -1}, logged.Doubt
	case c.Load == "":
		return bounds{min(1, lines), lines}, nil
	}
	load, path, err := question.LoadOf(since, c.Load)
	if err != nil {
		return bounds{most: -1}, err
	}
	q.Evidence = append(q.Evidence, path)
	counted := calls{
		n:    len(collections(logged.Found, c.Load)),
		most: lines,
	}.limitedToLoad(
		load,
		since.Window,
	)
	seen := callsSeen(since, c.Load, 0)
	n = bounds{max(counted.n, seen.n), max(counted.most, seen.most)}
	if lines > 0 {
		return n, nil
	}
	q.Add("; the log has no line of a failed call, and the load tells their number")
	return n, seen.doubt
}
