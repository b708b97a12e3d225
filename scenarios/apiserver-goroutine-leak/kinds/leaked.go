// Package kinds has the kinds of the scenario apiserver-goroutine-leak: checks of leaked goroutines, of the memory that
// they hold and of the calls that left them behind, and the collector and the check of etcd as its proxy sees it.
package kinds

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "leakedGoroutines",
		Doc: "Calls left goroutines behind for good: at most one for each call with a failed delete that left more " +
			"items than a channel holds.\n\n" +
			"Only quiet snapshots count: no call is in flight, and debug=1 shows as many goroutines with the " +
			"function on top of their stack as debug=2 shows in the state. The check is true if all quiet snapshots " +
			"show the very same goroutines, and if the calls explain their number: there are no more goroutines than " +
			"such calls. The log tells the number of calls from the beginning of the fault on. If the log has no " +
			"such line, the load's own record tells how many calls deleted and failed. A build that leaks in only " +
			"some of its calls leaks, too. More goroutines than calls make the answer unknown, never false.\n\n" +
			"With none, the check asks that there are no such goroutines. Without none, one quiet snapshot without " +
			"them makes the check false in the baseline.",
		Example: "name: leaked\nkind: leakedGoroutines\nphase: recovery\nspec:\n  func: " +
			"registry.(*Store).DeleteCollection\n  state: chan send\n" +
			"  inFlight: [restfulDeleteCollection]\n  snapshots: 3\n  lastAfter: 120s\n  load: deletes\n  moreThan: " +
			"256\n" +
			"  failed:\n    component: kube-apiserver\n    pattern: 'Delete object in DeleteCollection " +
			"failed.*/item-(?P<index>[0-9]+)'\n",
		Meets:   `{"func":"registry.(*Store).DeleteCollection","snapshots":2,"none":true}`,
		Differs: `{"func":"pleg.(*GenericPLEG).Relist","snapshots":2,"none":true}`,
		New:     func() check.Check { return &LeakedGoroutines{Leak: Leak{State: "chan send"}, Snapshots: 3} },
	})
}

// LeakedGoroutines checks that calls left goroutines behind that nothing will ever wake up or, with None, that there
// are no such goroutines.
type LeakedGoroutines struct {
	Leak
	Snapshots int            `json:"snapshots,omitzero" jsonschema:"how many quiet snapshots there must be, at least (1 or more)"`
	LastAfter string         `json:"lastAfter,omitempty" refers:"stretch" jsonschema:"how long after the start of the phase the last quiet snapshot must be taken, at least: a duration with its unit. Default: any time"`
	Failed    *logs.LogLines `json:"failed,omitempty" jsonschema:"log line that a call writes when one of its deletes fails. The pattern needs a group named index: the object's number in the list, counted from 0. Required unless none is given"`
	Load      string         `json:"load,omitempty" refers:"load" jsonschema:"name of the load that made the objects. Required unless none is given"`
	MoreThan  int            `json:"moreThan,omitzero" jsonschema:"how many items the channel holds at most: a call that leaves no more items than this leaves no goroutine behind (0 or more; default 0)"`
	None      bool           `json:"none,omitempty" jsonschema:"instead asks that there are no such goroutines"`
}

// Reads names both goroutine profiles, and the log in which the calls are counted. It doesn't name the load's summary,
// which the load itself writes, or the subject's identity, which every trial records.
func (c *LeakedGoroutines) Reads() []bundle.Kind {
	if c.None {
		return []bundle.Kind{bundle.Goroutines1, bundle.Goroutines2}
	}
	return []bundle.Kind{bundle.Goroutines1, bundle.Goroutines2, bundle.Logs}
}

// NeedsBaselineProcess returns true: what a restart in the fault removed can't be counted.
func (*LeakedGoroutines) NeedsBaselineProcess() bool { return true }

// Validate refuses a spec that any dump would satisfy, and a leak whose calls nobody could count.
func (c *LeakedGoroutines) Validate() error {
	errs := []error{
		c.Leak.validate(),
		question.Refuse(c.Snapshots < 1, "snapshots is %d (want at least 1)", c.Snapshots),
		question.Optional("lastAfter", c.LastAfter),
	}
	switch {
	case c.None: // failed and load are still allowed: a scenario writes both forms of its leak from one YAML anchor
	case c.Failed == nil:
		errs = append(errs, errors.New("failed is missing"))
	case c.Load == "":
		errs = append(errs, errors.New("load is empty"))
	case c.MoreThan < 0:
		errs = append(errs, fmt.Errorf("moreThan is %d (want 0 or more)", c.MoreThan))
	default:
		errs = append(errs, indexed(c.Failed))
	}
	return errors.Join(errs...)
}

// Eval reads every snapshot of the window. It reads the log only if the snapshots show goroutines whose number the log
// has to explain.
func (c *LeakedGoroutines) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	look := c.observe(q)
	q.Evidence, q.Differs = look.Paths, question.FirstAndLast(look.Notes)
	look.addTo(q)
	if len(look.quiet) > 0 {
		q.Add("%s", q.LastAt(look.newest().at))
	}
	doubt := cmp.Or(look.Missing, q.SinceFault().Restarted())
	switch {
	case doubt != nil:
		q.Doubt(doubt)
	case len(look.quiet) == 0:
		q.DoubtBy(check.TooFew, ": nothing to answer by")
	case look.newest().blocked == 0:
		c.absent(q, look)
	case c.None:
		q.Met, q.Detail = check.False, look.newest().stack
	default:
		c.showWhere(q, look)
	}
	return q.Finding
}

func (c *LeakedGoroutines) wanted() string {
	many := fmt.Sprintf("at least %d quiet snapshots", c.Snapshots) + question.LastWanted(c.LastAfter)
	if c.None {
		return fmt.Sprintf("no goroutine [%s] in %s in %s", c.State, c.Func, many)
	}
	return fmt.Sprintf(
		"the same goroutines [%s] in %s in %s, no more than the calls with a failed delete and more "+
			"than %d items left",
		c.State,
		c.Func,
		many,
		c.MoreThan,
	)
}

// absent answers for a window whose last quiet snapshot shows no leaked goroutine. Goroutines that only earlier
// snapshots show were not left for good.
func (c *LeakedGoroutines) absent(q *question.Question, look observed) {
	switch {
	case q.Phase == check.Baseline && !c.None: // no fault yet: one snapshot without leaked goroutines is enough
		q.Met = check.False
	case look.without() < c.Snapshots || !q.Reached(c.LastAfter, look.newest().at):
		q.DoubtBy(check.TooFew, ": too few to answer by")
	default:
		q.Met = check.Of(c.None)
	}
}

// showWhere answers for a window whose last quiet snapshot shows leaked goroutines. The answer is True if every quiet
// snapshot shows the same ones and the failed calls explain their number.
func (c *LeakedGoroutines) showWhere(q *question.Question, look observed) {
	newest := look.newest()
	q.Detail = newest.stack
	fault, ok := q.View.Phase(q.Arm, check.Fault)
	switch {
	case !ok || !fault.Start.Before(q.Window.End):
		q.DoubtBy(check.NotConclusive, ": they are there before any fault")
		return
	case !look.same():
		q.DoubtBy(check.NotConclusive, ": they are not the same ones in each")
		return
	case len(look.quiet) < c.Snapshots || !q.Reached(c.LastAfter, newest.at):
		q.DoubtBy(check.TooFew, ": too few to answer by")
		return
	}
	since := q.Over(bundle.Window{Start: fault.Start, End: q.Window.End})
	calls := callsLogged(since, *c.Failed, c.Load, c.MoreThan)
	if calls.n == 0 && calls.doubt == nil { // this build may log a failed delete in other words
		if seen := callsSeen(since, c.Load, c.MoreThan); seen.n > 0 && seen.doubt == nil {
			seen.paths = calls.paths // a log without such lines is evidence, too
			calls = seen
		}
	}
	q.Evidence = append(q.Evidence, calls.paths...)
	q.Add("; ")
	calls.addTo(q, c.MoreThan)
	if calls.most > 0 {
		q.Detail += "\nitems left: " + calls.describeRemaining()
	}
	switch {
	case calls.doubt != nil:
		q.Doubt(calls.doubt)
	case !calls.explains(newest.blocked): // something else blocks goroutines too, so the answer is no clear no
		q.DoubtBy(
			check.NotConclusive,
			": the numbers differ, %d goroutines and %d such calls",
			newest.blocked,
			calls.upto,
		)
	default:
		q.Met = check.True
	}
}
