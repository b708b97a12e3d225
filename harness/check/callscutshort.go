package check

import (
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "callsCutShort",
		Doc: "Calls of a deleteCollection load whose workers had begun to delete and did not come to the end, with " +
			"more items left than a channel holds.\n\n" +
			"With failed, they are told by the lines that they write. A build may write many for one call, so only " +
			"the collections that the lines are about count, each as one call; where more of the calls may have " +
			"written them, too few collections are unknown. Without it, by what the load saw, whatever a build " +
			"logs: a worker of the call deleted when the round began, the API server ended the call, and some of " +
			"the collection, not all of it, was still there when it had stood still for a while. It doesn't matter " +
			"whether it said that the call had failed. Which of the calls deleted isn't known then, so of 20 calls " +
			"of which 18 deleted and 19 were ended, 17 count. A call that died in its list leaves all, one that came " +
			"to its end leaves none. The load has to have `still` and `by: calls`, and the API server one worker a " +
			"call. The finding states how many items were left: an arm is only shown to survive so many.",
		Example: "name: deletes-failed\nkind: callsCutShort\nphase: fault\nspec:\n  load: deletes\n  atLeast: 10\n  " +
			"moreThan: 256\n",
		Meets:   `{"load":"deletes","atLeast":20,"moreThan":256}`,
		Differs: `{"load":"deletes","atLeast":21}`,
		New:     func() Check { return &CallsCutShort{AtLeast: 1} },
	})
}

// CallsCutShort asks for calls that failed while they deleted.
type CallsCutShort struct {
	Load     string    `json:"load" jsonschema:"the name of the load that made the calls and their objects"`
	Failed   *LogLines `json:"failed,omitempty" jsonschema:"the line that a call with a failed delete writes; its group index is the object's number in the list. Without it the load's own record is asked"`
	AtLeast  int       `json:"atLeast,omitzero" jsonschema:"how many calls"`
	MoreThan int       `json:"moreThan,omitzero" jsonschema:"only calls with more items left than this count: what the channel holds at most"`
}

// Reads names the log, if it is asked. The load's summary comes from the load itself.
func (c *CallsCutShort) Reads() []bundle.Kind { return c.Failed.reads() }

// Needs names the load.
func (c *CallsCutShort) Needs() Needs { return Needs{Loads: []string{c.Load}} }

// Validate refuses what any load would meet.
func (c *CallsCutShort) Validate() error {
	return errors.Join(
		refuse(c.Load == "", "load is empty"),
		refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast),
		refuse(c.MoreThan < 0, "moreThan is %d (want 0 or more)", c.MoreThan),
		c.Failed.indexed(),
	)
}

// indexed refuses a pattern that doesn't say which object a line is about. None at all is fine.
func (l *LogLines) indexed() error {
	if l == nil {
		return nil
	}
	re, err := l.compile()
	if err != nil {
		return err
	}
	return refuse(re.SubexpIndex("index") < 0, "failed.pattern has no group index")
}

// Eval counts the calls of the window.
func (c *CallsCutShort) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s,
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
		return q.unknown(calls.doubt)
	}
	q.Seen, q.Evidence = calls.describe(c.MoreThan), calls.paths
	switch {
	case calls.over >= c.AtLeast:
		q.Met, q.Tried = True, calls.describeTried()
	case calls.doubt != "":
		q.Seen += "; " + calls.doubt
	case !calls.seen && calls.upto >= c.AtLeast:
		q.Seen += ": one call may have written several of the lines"
	default:
		q.Met = False
	}
	return q.Finding
}

// describeTried is what an arm was exposed to.
func (c calls) describeTried() string {
	if c.seen || c.lo == c.hi {
		return fmt.Sprintf("%d failed calls that left at least %d of %d items each", c.n, c.lo, c.items)
	}
	return fmt.Sprintf("%d failed calls that left %d to %d of %d items each", c.n, c.lo, c.hi, c.items)
}

// alsoListed is how many objects a list of a load's namespace has beside the load's own: kube-root-ca.crt, which
// Kubernetes puts into every namespace and which sorts after them.
const alsoListed = 1

// calls are the calls in which a worker got as far as a failed delete, by the log or by the load. Both only know
// bounds of how many there were. With one worker for each call, kube-apiserver's default, what its list has behind the
// object whose delete failed is left; the load knows the least that each left.
type calls struct {
	n      int // calls, at least
	most   int // calls, at most
	over   int // those with more items left than the channel holds, at least
	upto   int // and at most
	lo, hi int // items left, of any of them
	items  int // in a list
	seen   bool
	paths  []string
	doubt  string
}

// callsSeen counts the calls of the window's rounds by what the load saw: they were deleting when the round began,
// the API server ended them, with a failure or not, and when their collection had stood still for a while, some of it
// was left, but not all. Such a call never came to the end of its list, and what the list of all shows is in the rest
// of each: every worker has behind it only what is gone.
func callsSeen(q *question, name string, moreThan int) (out calls) {
	load, path, err := loadOf(q, name)
	if err != nil {
		return calls{doubt: err.Error()}
	}
	out = calls{items: load.Objects + alsoListed, seen: true, paths: []string{path}}
	for _, r := range load.Rounds {
		switch {
		case !contains(q.window, r.Start):
		case r.Cut == nil:
			out.doubt = fmt.Sprintf("in how many calls of round %d of load %s a worker deleted was not seen", r.Round,
				name)
		case r.Cut.Ended() == 0 || r.Cut.Deleting == 0 && r.Cut.Left != nil: // none that ended had been seen to delete
		case r.Cut.Left == nil:
			out.doubt = fmt.Sprintf("how many objects round %d of load %s left is not known", r.Round, name)
		case *r.Cut.Left > 0 && *r.Cut.Left < load.Objects:
			out.add(r.Cut.AtLeast(), r.Cut.Ended(), *r.Cut.Left, moreThan)
		}
	}
	if len(load.Rounds) == 0 {
		out.doubt = fmt.Sprintf("load %s made no round", name)
	}
	return out
}

// add counts calls that left so many items. What the load saw is the least that they left, so any of them may have
// left more than the channel holds.
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

// explains says whether so many goroutines can come from these calls, one from each that left more than the channel
// holds. A build may leave some of them behind only now and then.
func (c calls) explains(n int) bool { return 0 < n && n <= c.upto }

func (c calls) describe(moreThan int) string {
	out := fmt.Sprintf("%d calls with a failed delete", c.n)
	if c.seen {
		out = fmt.Sprintf("%d calls that deleted and failed, as the load saw them", c.n)
	}
	if c.most > c.n {
		out += fmt.Sprintf(" (%d at most)", c.most)
	}
	if c.most > 0 {
		out += fmt.Sprintf(", %d of them with more than %d items left (%s)", c.over, moreThan, c.describeRemaining())
	}
	return out
}

// describeRemaining is how many items the calls left.
func (c calls) describeRemaining() string {
	if c.seen {
		return fmt.Sprintf("at least %d of %d", c.lo, c.items)
	}
	return fmt.Sprintf("%d..%d of %d", c.lo, c.hi, c.items)
}

// loadOf reads what a load said of itself, by its name.
func loadOf(q *question, name string) (found bundle.Load, path string, err error) {
	for _, a := range q.view.Artifacts(bundle.Query{Kind: bundle.LoadSummary, Arm: q.arm}) {
		one, err := document[bundle.Load](q.view, a, "a load's summary")
		if err != nil {
			return found, "", err
		}
		if one.Name == name {
			found, path = one, a.Path
		}
	}
	if path == "" {
		return found, "", fmt.Errorf("no load %s summed up what it did", name)
	}
	return found, path, nil
}
