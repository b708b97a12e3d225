package probes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "etcdMembers",
		Doc: "What etcd said that a member is, in its answers to steps of a load etcd, by the load's own record.\n\n" +
			"A member learns or votes, or is missing in the list. Where the load's time was up, or a step had no answer or an error of the server's (5xx), nobody " +
			"knows what etcd would have said: the check answers only if that could not change the answer. If the load left no " +
			"whole record, or if a round began outside the window, the answer is unknown. In the baseline, a load that began " +
			"only after it asked nothing.",
		Example: "name: promoted\nkind: etcdMembers\nphase: fault\nspec: {load: members, step: listed, is: voter, atLeast: 5}\n",
		Meets:   `{"load":"members","step":"listed","is":"learner","peer":"http://two.invalid","atLeast":1}`,
		Differs: `{"load":"members","step":"listed","is":"voter","atLeast":1}`,
		New:     func() check.Check { return &EtcdMembers{} },
	})
}

// EtcdMembers counts the answers of a load by what they say of a member.
type EtcdMembers struct {
	Load    string `json:"load" refers:"load" jsonschema:"name of a load of the kind etcd"`
	Step    string `json:"step" jsonschema:"the step whose answers are asked about: one of addMember, updateMember, removeMember and members"`
	Is      string `json:"is" jsonschema:"what the member is in the answers that count"`
	Peer    string `json:"peer,omitempty" jsonschema:"only answers count in which the member has this address. Default: any"`
	AtLeast int    `json:"atLeast" jsonschema:"how many answers must count, at least (1 or more)"`
}

var memberIs = []string{bundle.EtcdLearner, bundle.EtcdVoter, bundle.EtcdMissing}

// Reads names nothing: the record comes from the load itself.
func (*EtcdMembers) Reads() []bundle.Kind { return nil }

// Choices lists what a member can be.
func (*EtcdMembers) Choices() map[string][]string { return map[string][]string{"is": memberIs} }

// Validate refuses a question that any load would satisfy, and one that no answer could.
func (c *EtcdMembers) Validate() error {
	return cmp.Or(
		question.Refuse(c.Load == "", "load is empty"),
		question.Refuse(c.Step == "", "step is empty"),
		question.Refuse(
			!slices.Contains(memberIs, c.Is),
			"is is %q (want one of %s)",
			c.Is,
			strings.Join(memberIs, ", "),
		),
		question.Refuse(
			c.Is == bundle.EtcdMissing && c.Peer != "",
			"peer stands beside is missing (want one of them)",
		),
		question.Refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast),
	)
}

// Describe says in words what is asked.
func (c *EtcdMembers) Describe() string {
	out := fmt.Sprintf(
		"at least %d answers to %s of load %s in which the member is a %s",
		c.AtLeast,
		c.Step,
		c.Load,
		c.Is,
	)
	if c.Is == bundle.EtcdMissing {
		out = fmt.Sprintf(
			"at least %d answers to %s of load %s in which the member is missing",
			c.AtLeast,
			c.Step,
			c.Load,
		)
	}
	if c.Peer != "" {
		out += " at " + c.Peer
	}
	return out
}

// Eval counts the answers.
func (c *EtcdMembers) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.Describe())
	if !ok {
		return q.Finding
	}
	all, open, err := etcdRecord(q, c.Load)
	if err != nil {
		return q.Unknown(err)
	}
	like, asked := 0, 0
	for _, a := range all {
		if a.Step != c.Step {
			continue
		}
		asked++
		switch m := a.Member; {
		case m == nil && a.Unanswered():
			open++
		case m == nil:
			q.Differs = append(q.Differs, fmt.Sprintf("round %d: %s", a.Round, a.Error))
		case m.Is == c.Is && (c.Peer == "" || slices.Contains(m.Peers, c.Peer)):
			like++
		default:
			q.Differs = append(
				q.Differs,
				fmt.Sprintf(
					"round %d: %s is %s",
					a.Round,
					m.ID,
					strings.TrimSpace(m.Is+" "+strings.Join(m.Peers, " ")),
				),
			)
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say("%d of %d", question.N("answersLikeIt", like), question.N("answers", asked))
	return enough(q, like, open, c.AtLeast)
}
