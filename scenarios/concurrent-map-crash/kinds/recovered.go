package kinds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "recovered",
		Doc: "A component recovered from a panic and logged it, with the incident's stack.\n\n" +
			"This check is like panicked, for a panic that did not end the program. The stack is parsed, and only " +
			"the frames below the panic count: they show where the panic came from, not who handled it. The stack " +
			"may be printed as the runtime does, with the same text before each line, or as a string in a line of " +
			"JSON. A panic with which the log ends doesn't count. If the log has a gap, or has something like a " +
			"stack that can't be read, the check is never false.",
		Example: "name: grew-while-encoded\nkind: recovered\nphase: fault\nspec:\n  component: kube-apiserver\n  message: " +
			"index out of range\n  frames: [json.mapEncoder.encode, 'log.(*backend).logEvent']\n",
		Differs: `{"component":"kubelet","message":"nil pointer","frames":["f"]}`,
		New:     func() check.Check { return &Recovered{} },
	})
}

// Recovered checks that a component survived a panic and logged it.
type Recovered struct {
	Component string   `json:"component" refers:"log" derives:"subject" jsonschema:"component whose log is read, such as kube-apiserver"`
	Message   string   `json:"message" jsonschema:"regular expression that the logged text before the stack must match; case does not matter"`
	Frames    []string `json:"frames" jsonschema:"functions that must all be on the stack where the panic came from, each written with at least the last element of its import path"`
}

// Reads names component logs.
func (c *Recovered) Reads() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Validate refuses a spec that any panic would satisfy.
func (c *Recovered) Validate() error { return (*logs.Panicked)(c).Validate() }

// Eval searches each log for the panic.
func (c *Recovered) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("a panic like %q in %s, logged and recovered from", c.Message,
			strings.Join(c.Frames, ", ")),
	)
	if !ok {
		return q.Finding
	}
	left := logs.ComponentLog(q, c.Component)
	q.Evidence = left.Paths
	re, _ := question.Pattern(c.Message) // Validate has compiled it
	all, these, cut := 0, 0, false
	for _, l := range logs.GroupByFile(left.Records) {
		found, unended := goroutine.Recoveries(l.Lines)
		cut = cut || unended
		for _, r := range found {
			if !question.Contains(q.Window, l.Times[r.First]) {
				continue
			}
			all++
			if why := c.differs(re, r); why != "" {
				q.Differs = append(q.Differs, question.Clock(l.Times[r.First])+": "+why)
			} else if these++; q.Detail == "" {
				q.Detail = r.Message + "\n\n" + r.Group.Text()
			}
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say(
		"%d of %d panics that %s recovered from are this one",
		question.N("panicsLikeIt", these),
		question.N("panics", all),
		c.Component,
	)
	if cut {
		return q.AnswerByCount(
			these,
			check.Doubt(
				check.Unreadable,
				"another stack has no end, can't be read, or may be its last",
			),
		)
	}
	return q.AnswerByCount(these, left.Doubt)
}

// differs says how a panic differs from the wanted one, "" if it doesn't.
func (c *Recovered) differs(re *regexp.Regexp, r goroutine.Recovery) string {
	if !re.MatchString(r.Message) {
		return fmt.Sprintf("before the stack it says %q", r.Message)
	}
	lacks := slices.IndexFunc(c.Frames, func(f string) bool {
		return !(goroutine.Match{Func: f, Closures: true}).Chooses(r.At())
	})
	if lacks >= 0 {
		return "what panicked has no " + c.Frames[lacks] + " on its stack"
	}
	return ""
}
