package kinds

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "emptiedAsAnswered",
		Doc: "No call of a deleteCollection load was answered with success and left objects behind, by the load's " +
			"own record.\n\n" +
			"A build may give up on a collection and not say so. Then its calls leave nothing in the API server, and " +
			"the clients believe that the collection is gone. So the answer of a call has to agree with what a list " +
			"shows once the number of objects stands still. Calls that were answered with a failure may leave any " +
			"number of objects. If a round has a call that was answered with success and nobody knows how many " +
			"objects were left, the answer is unknown; the load needs `still`. If the namespace controller deletes " +
			"the collections, no answer to the load says anything about them, and the check is true.",
		Example: "name: no-false-success\nkind: emptiedAsAnswered\nspec:\n  load: deletes\n",
		Meets:   `{"load":"deletes"}`,
		New:     func() check.Check { return &EmptiedAsAnswered{} },
	})
}

// EmptiedAsAnswered asks that a collection is empty if a call to delete it was answered with success.
type EmptiedAsAnswered struct {
	Load string `json:"load" refers:"load" jsonschema:"name of the load that had the collections deleted"`
}

// Reads returns nothing. No collector makes the load's summary: the load writes it.
func (*EmptiedAsAnswered) Reads() []bundle.Kind { return nil }

// Validate refuses a load without a name.
func (c *EmptiedAsAnswered) Validate() error { return question.Refuse(c.Load == "", "load is empty") }

// Eval compares the answers in each of the load's rounds, in whichever phase, with the objects that the round left.
func (c *EmptiedAsAnswered) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf(
			"no call of load %s that was answered with success and left objects behind",
			c.Load,
		),
	)
	if !ok {
		return q.Finding
	}
	load, path, err := question.LoadOf(q, c.Load)
	if err != nil {
		return q.Unknown(err)
	}
	q.Evidence = []string{path}
	switch {
	case len(load.Rounds) == 0:
		return q.Unknown(check.Doubt(check.NotRecorded, "load %s made no round", c.Load))
	case load.Way == bundle.ByNamespaceController:
		return q.Answer(
			check.True,
			"the namespace controller deleted the collections, and no answer to the load says anything of them",
		)
	}
	met, said := check.True, []string{}
	for _, r := range load.Rounds {
		is, what := c.round(load, r)
		met, said = check.All(met, is), append(said, what)
	}
	if met == check.Unknown {
		q.Code = check.NotRecorded
	}
	return q.Answer(met, strings.Join(question.FirstAndLast(said), "; "))
}

// round answers for one round, and says in words what the answer rests on.
func (c *EmptiedAsAnswered) round(load bundle.Load, r bundle.LoadRound) (check.Truth, string) {
	codes := r.Codes
	if codes == nil && len(load.Rounds) == 1 { // an earlier version counted only by load, not by round
		codes = load.Codes
	}
	if codes == nil {
		return check.Unknown, fmt.Sprintf(
			"what the calls of round %d were answered was not counted",
			r.Round,
		)
	}
	claimed := 0
	for code, n := range codes {
		if number, err := strconv.Atoi(code); err == nil && bundle.Success(number) {
			claimed += n
		}
	}
	said := fmt.Sprintf(
		"%d of %d calls of round %d were answered with success",
		claimed,
		r.Calls,
		r.Round,
	)
	if r.Cut == nil || r.Cut.Left == nil {
		met := check.Unknown
		if claimed == 0 {
			met = check.True
		}
		return met, said + ", and how many objects they left is not known"
	}
	said += fmt.Sprintf(", and %d of %d objects are left", *r.Cut.Left, load.Objects)
	return check.Of(claimed == 0 || *r.Cut.Left == 0), said
}
