package logs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "panicked",
		Doc: "A component's log shows that a panic or a fatal error ended the component, with the incident's stack.\n\n" +
			"Use this check instead of crashed if the evidence has no container statuses. The runtime prints the " +
			"panic as it ends the program. A panic that a program recovered from and logged itself doesn't begin " +
			"like that.",
		Example: "name: died-of-it\nkind: panicked\nphase: fault\nspec:\n  component: kube-scheduler\n  message: " +
			"nil pointer dereference\n  frames: [nodevolumelimits.(*CSILimits).checkAttachableInlineVolume]\n",
		Differs: `{"component":"kubelet","message":"nil pointer","frames":["f"]}`,
		New:     func() check.Check { return &Panicked{} },
	})
}

// Panicked checks that a panic ended a component.
type Panicked struct {
	Component string   `json:"component" refers:"log" derives:"subject" jsonschema:"component whose log is read, such as kube-scheduler"`
	Message   string   `json:"message" jsonschema:"regular expression that the panic's message must match; case does not matter"`
	Frames    []string `json:"frames" jsonschema:"functions that must all be on the stack of the goroutine that panicked, each written with at least the last element of its import path"`
}

// Reads names component logs.
func (c *Panicked) Reads() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Validate refuses a spec that any end would satisfy.
func (c *Panicked) Validate() error {
	return errors.Join(question.Chooses("message", c.Message), question.Refuse(c.Component == "", "component is empty"),
		question.Refuse(len(c.Frames) == 0 || slices.Contains(c.Frames, ""),
			"frames has none, or an empty one, which any stack would have"))
}

// Eval searches the log that each container left for the panic.
func (c *Panicked) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("a log of %s with a panic like %q in %s", c.Component, c.Message,
			strings.Join(c.Frames, ", ")),
	)
	if !ok {
		return q.Finding
	}
	logs := ComponentLog(q, c.Component)
	q.Evidence = logs.Paths
	left, n := GroupByFile(logs.Records), 0
	var unread error
	for _, l := range left {
		if !question.Contains(q.Window, l.last) {
			continue
		}
		stack, why, bad := l.died(c.Message, c.Frames)
		goesOn := ""
		if stack != "" {
			goesOn = l.goesOn()
		}
		switch {
		case goesOn != "":
			unread, q.Detail = check.Doubt(
				check.NotConclusive,
				"%s",
				goesOn,
			), cmp.Or(
				q.Detail,
				stack,
			)
			q.Differs = append(q.Differs, question.Clock(l.last)+": "+goesOn)
		case stack != "":
			n, q.Detail = n+1, stack
		case bad:
			unread = errors.New(why)
			fallthrough
		default:
			q.Differs = append(q.Differs, question.Clock(l.last)+": "+why)
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say(
		"%d of %d logs of %s have it",
		question.N("logsLikeIt", n),
		question.N("logs", len(left)),
		c.Component,
	)
	switch {
	case n > 0:
		q.Met = check.True
	case unread != nil:
		q.Doubt(unread)
	case logs.Doubt != nil:
		return q.Unknown(logs.Doubt)
	default:
		q.Met = check.False
	}
	return q.Finding
}

// Lines returns no pattern: the last words of a program, which are all that the check needs, are kept for every check.
func (c *Panicked) Lines() []string { return nil }
