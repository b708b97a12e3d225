package probes

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "loadCalls",
		Doc: "How many calls of a load were answered with a code, by the load's own record.\n\n" +
			"The number says how much the cluster was given to do, which is the same whatever the subject made of " +
			"it. If the load left no record, or if one of its rounds began outside the window, the answer is " +
			"unknown.",
		Example: "name: changed\nkind: loadCalls\nphase: fault\nspec:\n  load: changes\n  code: 200\n  atLeast: 40\n",
		Meets:   `{"load":"deletes","code":504,"atLeast":20}`,
		Differs: `{"load":"deletes","code":504,"atLeast":21}`,
		New:     func() check.Check { return &LoadCalls{AtLeast: 1} },
	})
}

// LoadCalls checks how many calls of a load were answered with a code.
type LoadCalls struct {
	Load    string `json:"load" jsonschema:"name of the load"`
	Code    int    `json:"code" jsonschema:"HTTP status code that the calls were answered with (100 to 599)"`
	AtLeast int    `json:"atLeast,omitzero" jsonschema:"how many such calls there must be, at least (1 or more)"`
}

// Reads names nothing: the load's summary comes from the load itself.
func (*LoadCalls) Reads() []bundle.Kind { return nil }

// Needs names the load.
func (c *LoadCalls) Needs() check.Needs { return check.Needs{Loads: []string{c.Load}} }

// Validate refuses a spec that any load would satisfy, and a code that isn't an HTTP status.
func (c *LoadCalls) Validate() error {
	return errors.Join(
		question.Refuse(c.Load == "", "load is empty"),
		question.Refuse(c.Code < 100 || c.Code > 599, "code is %d (want 100 to 599)", c.Code),
		question.Refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast),
	)
}

// Eval counts the calls of a load with the wanted answer. A load of which a round began outside the window is unknown.
func (c *LoadCalls) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("at least %d calls of load %s answered with %d", c.AtLeast, c.Load, c.Code))
	if !ok {
		return q.Finding
	}
	load, path, err := question.LoadOf(q, c.Load)
	if err != nil {
		return q.Unknown(err)
	}
	q.Evidence = []string{path}
	calls := 0
	for _, r := range load.Rounds {
		if !question.Contains(q.Window, r.Start) {
			return q.Unknown(check.Doubt(check.NotConclusive, "round %d of load %s began at %s, not in %s", r.Round, c.Load, question.Clock(r.Start),
				question.Span(q.Window)))
		}
		calls += r.Calls
	}
	n := load.Codes[strconv.Itoa(c.Code)]
	q.Say("%d of %d", question.N("callsLikeIt", n), question.N("calls", calls))
	q.Met = check.Of(n >= c.AtLeast)
	return q.Finding
}
