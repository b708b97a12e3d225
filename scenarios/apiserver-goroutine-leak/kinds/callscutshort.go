package kinds

import (
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "callsCutShort",
		Doc: "Calls of a deleteCollection load ended while they were deleting, with more items left than a channel " +
			"holds.\n\n" +
			"With failed, the calls are counted by the log lines that they write. A build may write many lines for " +
			"one call, so each collection that the lines name counts as one call. If there are enough lines but too " +
			"few collections, the answer is unknown, because several of the calls may have written the lines.\n\n" +
			"Without failed, the calls are counted by the load's own record, whatever the build logs. A call counts " +
			"if one of its workers was deleting when the round began, if the API server ended the call, and if some " +
			"of the collection, but not all, was left once the number of objects stood still. Whether the API server " +
			"answered with success or with a failure does not matter. The record doesn't say which of the calls " +
			"deleted, so the least possible number counts: of 20 calls of which 18 deleted and 19 were ended, 17 " +
			"count. A call that ended while it listed leaves all objects, and a call that finished leaves none: " +
			"neither counts. The load needs `still` and `by: calls`, and the API server needs one worker for each " +
			"call.\n\n" +
			"The finding says how many items were left: an arm is only shown to survive that many.",
		Example: "name: deletes-failed\nkind: callsCutShort\nphase: fault\nspec:\n  load: deletes\n  atLeast: 10\n  " +
			"moreThan: 256\n",
		Meets:   `{"load":"deletes","atLeast":20,"moreThan":256}`,
		Differs: `{"load":"deletes","atLeast":21}`,
		New:     func() check.Check { return &CallsCutShort{AtLeast: 1} },
	})
}

// CallsCutShort asks for calls of a load that ended while they were deleting a collection.
type CallsCutShort struct {
	Load     string         `json:"load" refers:"load" jsonschema:"name of the load that made the objects and the calls"`
	Failed   *logs.LogLines `json:"failed,omitempty" jsonschema:"log line that a call writes when one of its deletes fails. The pattern needs a group named index: the object's number in the list, counted from 0. Default: none, and the check reads the load's own record"`
	AtLeast  int            `json:"atLeast,omitzero" jsonschema:"how many such calls there must be, at least (1 or more)"`
	MoreThan int            `json:"moreThan,omitzero" jsonschema:"a call counts only if it left more items than this: the most that the channel holds (0 or more; default 0)"`
}

// Reads names the log if Failed is given. No collector makes the load's summary: the load writes it.
func (c *CallsCutShort) Reads() []bundle.Kind { return c.Failed.Reads() }

// Validate refuses a missing load, numbers out of range, and a pattern that doesn't name the object.
func (c *CallsCutShort) Validate() error {
	return errors.Join(
		question.Refuse(c.Load == "", "load is empty"),
		question.Refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast),
		question.Refuse(c.MoreThan < 0, "moreThan is %d (want 0 or more)", c.MoreThan),
		indexed(c.Failed),
	)
}

// indexed refuses a pattern without the group index, which says which object a line is about. A nil l is valid.
func indexed(l *logs.LogLines) error {
	if l == nil {
		return nil
	}
	re, err := l.Compile()
	if err != nil {
		return err
	}
	return question.Refuse(re.SubexpIndex("index") < 0, "failed.pattern has no group index")
}

// Eval counts the calls of the window.
func (c *CallsCutShort) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s,
		fmt.Sprintf("at least %d calls of load %s that failed while they deleted, with more than %d items left",
			c.AtLeast, c.Load, c.MoreThan))
	if !ok {
		return q.Finding
	}
	var calls calls
	if c.Failed != nil {
		calls = callsLogged(q, *c.Failed, c.Load, c.MoreThan)
	} else {
		calls = callsSeen(q, c.Load, c.MoreThan)
	}
	if calls.items == 0 { // the load left no record
		return q.Unknown(calls.doubt)
	}
	q.Evidence = calls.paths
	calls.addTo(q, c.MoreThan)
	switch {
	case calls.over >= c.AtLeast:
		q.Met, q.Tried = check.True, calls.describeTried()
	case calls.doubt != nil:
		q.Doubt(calls.doubt)
	case !calls.seen && calls.upto >= c.AtLeast:
		q.DoubtBy(check.NotConclusive, ": one call may have written several of the lines")
	default:
		q.Met = check.False
	}
	return q.Finding
}

// describeTried says in words how many calls an arm was exposed to, and how many items they left.
func (c calls) describeTried() string {
	if c.seen || c.lo == c.hi {
		return fmt.Sprintf("%d failed calls that left at least %d of %d items each", c.n, c.lo, c.items)
	}
	return fmt.Sprintf("%d failed calls that left %d to %d of %d items each", c.n, c.lo, c.hi, c.items)
}

// alsoListed is how many objects a list of a load's namespace has in addition to the load's own: kube-root-ca.crt,
// which Kubernetes puts into every namespace and which sorts after the load's objects.
const alsoListed = 1

// calls counts the calls that ended while a worker was deleting, by the log or by the load's record. Both give only
// bounds for how many there were. By the log, a call left the items that its list has after the object whose delete
// failed: by default, kube-apiserver has one worker for each call. The load's record has the least that each call left.
type calls struct {
	n      int  // calls, at least
	most   int  // calls, at most
	over   int  // calls with more items left than the channel holds, at least
	upto   int  // the same, at most
	lo, hi int  // the fewest and the most items that any of the calls left
	items  int  // in the list of one call; 0 if the load left no record
	seen   bool // counted by the load's record, not by the log
	paths  []string
	doubt  error // why the numbers can't be relied on; nil if they can
}

// callsSeen counts the calls of the window's rounds by the load's record. A call counts if it was deleting when the
// round began, if the API server ended it, with a failure or not, and if some of its collection, but not all, was left
// once the collection had stood still for a while. Such a call never came to the end of its list. Each call left at
// least the objects that a list still shows, because every object that a worker has passed is gone.
func callsSeen(q *question.Question, name string, moreThan int) (out calls) {
	load, path, err := question.LoadOf(q, name)
	if err != nil {
		return calls{doubt: err}
	}
	out = calls{items: load.Objects + alsoListed, seen: true, paths: []string{path}}
	for _, r := range load.Rounds {
		switch {
		case !question.Contains(q.Window, r.Start):
		case r.Cut == nil:
			out.doubt = check.Doubt(
				check.NotRecorded,
				"in how many calls of round %d of load %s a worker deleted was not seen",
				r.Round,
				name,
			)
		case r.Cut.Ended() == 0 || r.Cut.Deleting == 0 && r.Cut.Left != nil: // no call ended, or none was seen to delete
		case r.Cut.Left == nil:
			out.doubt = check.Doubt(
				check.NotRecorded,
				"how many objects round %d of load %s left is not known",
				r.Round,
				name,
			)
		case *r.Cut.Left > 0 && *r.Cut.Left < load.Objects:
			out.add(r.Cut.AtLeast(), r.Cut.Ended(), *r.Cut.Left, moreThan)
		}
	}
	if len(load.Rounds) == 0 {
		out.doubt = check.Doubt(check.NotRecorded, "load %s made no round", name)
	}
	return out
}

// add counts between least and most calls, which left the given number of items. The load's record has only the least
// that a call left, so by that record any of the calls may have left more than the channel holds.
func (c *calls) add(least, most, left, moreThan int) {
	if c.most == 0 {
		c.lo, c.hi = left, left
	}
	c.n, c.most, c.lo, c.hi = c.n+least, c.most+most, min(c.lo, left), max(c.hi, left)
	if left > moreThan {
		c.over += least
	}
	if left > moreThan || c.seen {
		c.upto += most
	}
}

// explains reports whether n goroutines can come from these calls: at most one from each call that left more items
// than the channel holds. Fewer goroutines than calls are explained, too: a build may leave one behind only now and
// then.
func (c calls) explains(n int) bool { return 0 < n && n <= c.upto }

// addTo tells a question how many calls there were.
func (c calls) addTo(q *question.Question, moreThan int) {
	if n := question.N("failedCalls", c.n); c.seen {
		q.Add("%d calls that deleted and failed, as the load saw them", n)
	} else {
		q.Add("%d calls with a failed delete", n)
	}
	if c.most > c.n {
		q.Add(" (%d at most)", c.most)
	}
	if c.most > 0 {
		q.Add(
			", %d of them with more than %d items left (%s)",
			question.N("callsWithMoreLeft", c.over),
			moreThan,
			c.describeRemaining(),
		)
	}
}

// describeRemaining says in words how many items the calls left.
func (c calls) describeRemaining() string {
	if c.seen {
		return fmt.Sprintf("at least %d of %d", c.lo, c.items)
	}
	return fmt.Sprintf("%d..%d of %d", c.lo, c.hi, c.items)
}
