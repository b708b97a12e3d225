package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "panicked",
		Doc: "A component's log shows that a panic or a fatal error ended the component, with the incident's stack.\n\n" +
			"Use this check instead of crashed if the evidence has no container statuses. The runtime prints the " +
			"panic as it ends the program. A panic that a program recovered from and logged itself doesn't begin " +
			"like that.",
		Example: "name: died-of-it\nkind: panicked\nphase: fault\nspec:\n  component: kube-scheduler\n  message: " +
			"nil pointer dereference\n  frames: [nodevolumelimits.(*CSILimits).checkAttachableInlineVolume]\n",
		Differs: `{"component":"kubelet","message":"nil pointer","frames":["f"]}`,
		New:     func() Check { return &Panicked{} },
	})
}

// Panicked checks that a panic ended a component.
type Panicked struct {
	Component string   `json:"component" jsonschema:"component whose log is read, such as kube-scheduler"`
	Message   string   `json:"message" jsonschema:"regular expression that the panic's message must match; case does not matter"`
	Frames    []string `json:"frames" jsonschema:"functions that must all be on the stack of the goroutine that panicked, each written with at least the last element of its import path"`
}

// Reads names component logs.
func (c *Panicked) Reads() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Validate refuses a spec that any end would satisfy.
func (c *Panicked) Validate() error {
	_, err := pattern(c.Message)
	return errors.Join(err, refuse(c.Component == "", "component is empty"),
		refuse(len(c.Frames) == 0 || slices.Contains(c.Frames, ""),
			"frames has none, or an empty one, which any stack would have"))
}

// Eval searches the log that each container left for the panic.
func (c *Panicked) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, fmt.Sprintf("a log of %s with a panic like %q in %s", c.Component, c.Message,
		strings.Join(c.Frames, ", ")))
	if !ok {
		return q.Finding
	}
	logs := componentLog(q, c.Component)
	q.Evidence = logs.paths
	left, n, unread := logsLeft(logs.records), 0, ""
	for _, l := range left {
		if !contains(q.window, l.last) {
			continue
		}
		stack, why, bad := l.died(c.Message, c.Frames)
		switch {
		case stack != "":
			n, q.Detail = n+1, stack
		case bad:
			unread = why
			fallthrough
		default:
			q.Differs = append(q.Differs, clock(l.last)+": "+why)
		}
	}
	q.Differs = firstAndLast(q.Differs)
	q.Seen = fmt.Sprintf("%d of %d logs of %s have it", n, len(left), c.Component)
	switch {
	case n > 0:
		q.Met = True
	case unread != "":
		q.Seen += "; " + unread
	case logs.doubt != "":
		return q.unknown(logs.doubt)
	default:
		q.Met = False
	}
	return q.Finding
}

// Lines asks for the runtime's last words and the stacks below them.
func (c *Panicked) Lines() Lines { return Lines{Ends: true} }
