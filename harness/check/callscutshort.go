package check

import (
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "callsCutShort",
		Doc: "Calls of a deleteCollection load whose workers had begun to delete and did not come to the end, with more items left than a channel holds.\n\n" +
			"With failed, they are told by the line that each writes. Without it, by what the load saw, whatever a build logs: a worker of the call deleted when " +
			"the round began, the API server ended the call with a failure, and some of the collection, not all of it, was still there when it had stood still " +
			"for a while. Which of the calls deleted isn't known then, so of 20 calls of which 18 deleted and 19 failed, 17 count. A call that died in its list leaves " +
			"all, one that succeeded leaves none. The load has to have `still` and `by: calls`, and the API server one worker a call. The finding states how many items were " +
			"left: an arm is only shown to survive so many.",
		Example: "name: deletes-failed\nkind: callsCutShort\nphase: fault\nspec:\n  load: deletes\n  atLeast: 10\n  moreThan: 256\n",
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
func (c *CallsCutShort) Reads() []bundle.Kind {
	if c.Failed == nil {
		return nil
	}
	return []bundle.Kind{bundle.Logs}
}

// NeedsLoads names the load.
func (c *CallsCutShort) NeedsLoads() []string { return []string{c.Load} }

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
	q, ok := ask(c, v, s, fmt.Sprintf("at least %d calls of load %s that failed while they deleted, with more than %d items left", c.AtLeast, c.Load, c.MoreThan))
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
	q.Seen, q.Evidence = calls.said(c.MoreThan), calls.paths
	switch {
	case calls.over >= c.AtLeast:
		q.Met, q.Tried = Met, calls.tried()
	case calls.doubt != "":
		q.Seen += "; " + calls.doubt
	default:
		q.Met = NotMet
	}
	return q.Finding
}

// tried is what an arm was exposed to.
func (c calls) tried() string {
	if c.seen || c.lo == c.hi {
		return fmt.Sprintf("%d failed calls that left at least %d of %d items each", c.n, c.lo, c.items)
	}
	return fmt.Sprintf("%d failed calls that left %d to %d of %d items each", c.n, c.lo, c.hi, c.items)
}
