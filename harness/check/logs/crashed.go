package logs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "crashed",
		Doc: "The subject's container ended again and again, each time with the incident's panic in its log.\n\n" +
			"An end counts if it has the exit code, and if the log of that container has a panic or a fatal error " +
			"whose message matches. The goroutine that the runtime prints first must have all the frames on its " +
			"stack. Stacks are parsed, not searched for: a panic that a program recovered from and logged is no end. " +
			"An end with another stack, or with a log that ends without a panic, doesn't count. If a log is missing " +
			"or can't be read, the answer may be unknown.\n\n" +
			"If the count of restarts jumps, each restart is an end. Nobody saw the exit codes of these ends, so " +
			"only their logs decide. If exitCode is 2, an end with exit code 134 counts, too: a Go program that " +
			"panics with GOTRACEBACK=crash ends with 134.",
		Example: "name: panicked\nkind: crashed\nphase: fault\nspec:\n  container: kube-scheduler\n  times: 2\n  " +
			"exitCode: 2\n" +
			"  message: invalid memory address or nil pointer dereference\n  frames: " +
			"[nodevolumelimits.(*CSILimits).checkAttachableInlineVolume]\n",
		Differs: `{"container":"kubelet","message":"nil pointer","frames":["f"]}`,
		New:     func() check.Check { return &Crashed{Times: 2, ExitCode: 2} },
	})
}

// Crashed asks for ends of the subject's container that the incident explains.
type Crashed struct {
	Container string   `json:"container" refers:"status,log" derives:"subject" jsonschema:"name of the subject's container, such as kube-scheduler"`
	Times     int      `json:"times,omitzero" jsonschema:"how many such ends there must be, at least (1 or more)"`
	ExitCode  int32    `json:"exitCode,omitzero" jsonschema:"exit code that the ends must have (not 0); a Go program that panics ends with 2"`
	Message   string   `json:"message" jsonschema:"regular expression that the panic's message must match; case does not matter"`
	Frames    []string `json:"frames" jsonschema:"functions that must all be on the stack of the goroutine that panicked, each written with at least the last element of its import path"`
}

// Reads names container statuses and logs.
func (c *Crashed) Reads() []bundle.Kind { return []bundle.Kind{bundle.Statuses, bundle.Logs} }

// Validate refuses empty fields, numbers out of range, and a message that is no regular expression.
func (c *Crashed) Validate() error {
	return errors.Join(
		question.Chooses("message", c.Message),
		question.Refuse(c.Container == "", "container is empty"),
		question.Refuse(c.Times < 1, "times is %d (want at least 1)", c.Times),
		question.Refuse(c.ExitCode == 0, "exitCode is 0, which is no crash's"),
		question.Refuse(len(c.Frames) == 0 || slices.Contains(c.Frames, ""),
			"frames has none, or an empty one, which any stack would have"),
	)
}

// Eval finds the ends of the window, and reads the log that each container left.
func (c *Crashed) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("at least %d ends of %s with exit code %d, each with a panic like %q in %s",
			c.Times, c.Container, c.ExitCode, c.Message, strings.Join(c.Frames, ", ")),
	)
	if !ok {
		return q.Finding
	}
	st := ReadStatuses(q)
	logs := ComponentLog(q, c.Container)
	q.Evidence = slices.Concat(st.Paths, logs.Paths)
	ends := endsOf(st.Records, c.Container, q.Window)
	left := GroupByFile(logs.Records)
	ends = append(ends, unseenEnds(st.Records, c.Container, q.Window, giveLogs(ends, left))...)
	slices.SortStableFunc(ends, func(a, b ContainerEnd) int { return a.At.Compare(b.At) })
	var counted []string // the times of the ends that count
	silent, firstSilent := 0, time.Time{}
	for _, e := range ends {
		why, unread := c.differs(q, e)
		switch {
		case why == "":
			if counted = append(counted, question.Clock(e.At)); len(counted) == 1 {
				q.Ended = e.At
			}
		case unread:
			silent, firstSilent = silent+1, cmp.Or(firstSilent, e.At)
			fallthrough
		default:
			q.Differs = append(q.Differs, e.Describe()+": "+why)
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say(
		"%d such ends among %d",
		question.N("endsLikeIt", len(counted)),
		question.N("ends", len(ends)),
	)
	if len(counted) > 0 {
		q.Add(
			", at %s, the first %s after %s began",
			strings.Join(question.FirstAndLast(counted), ", "),
			question.Rounded("firstAfterSeconds", q.Ended.Sub(q.Began), time.Second),
			q.Phase,
		)
	}
	doubt := cmp.Or(st.Doubt, logs.Doubt)
	switch {
	case len(counted) >= c.Times:
		q.Met = check.True
	case silent > 0 && len(counted)+silent >= c.Times:
		return c.unknown(
			q,
			ends[0].At,
			check.Doubt(check.NotRecorded, "%s, and of %d the log is not known", q.Seen, silent),
		)
	case doubt != nil && len(ends) > 0:
		return c.unknown(q, ends[0].At, fmt.Errorf("%s; %w", q.Seen, doubt))
	case doubt != nil:
		return q.UnknownAfter(doubt)
	case !slices.ContainsFunc(st.Records, func(r bundle.ContainerStatus) bool { return r.Container == c.Container }):
		return q.UnknownAfter(check.Doubt(check.NotRecorded, "no status of %s was recorded", c.Container))
	default: // further ends may follow those that count, or may count
		q.Met, q.Ended = check.False, cmp.Or(q.Ended, firstSilent)
	}
	return q.Finding
}

// unknown returns the finding if nobody can tell whether the incident ended the process, which ended at the given time.
func (c *Crashed) unknown(q *question.Question, at time.Time, doubt error) check.Finding {
	f := q.Unknown(doubt)
	f.Ended, f.Differs = at, q.Differs
	return f
}

// differs says why an end is not the incident's, "" if it is. unread says that the container's log is missing or can't
// be read.
func (c *Crashed) differs(q *question.Question, e ContainerEnd) (why string, unread bool) {
	if !e.unseen && e.Code != c.ExitCode && !(c.ExitCode == panics && e.Code == aborts) {
		return fmt.Sprintf("want exit code %d", c.ExitCode), false
	}
	if e.log == nil {
		return "no log of that container was recorded", true
	}
	stack, why, unread := e.log.died(c.Message, c.Frames)
	if q.Detail == "" {
		q.Detail = stack
	}
	return why, unread
}

// The exit codes of a Go program that panics: as a rule, and with GOTRACEBACK=crash, where it ends by SIGABRT.
const (
	panics = 2
	aborts = 134
)
