package check

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	register(kind{
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
		New:     func() Check { return &Crashed{Times: 2, ExitCode: 2} },
	})
}

// Crashed asks for ends of the subject's container that the incident explains.
type Crashed struct {
	Container string   `json:"container" jsonschema:"name of the subject's container, such as kube-scheduler"`
	Times     int      `json:"times,omitzero" jsonschema:"how many such ends there must be, at least (1 or more)"`
	ExitCode  int32    `json:"exitCode,omitzero" jsonschema:"exit code that the ends must have (not 0); a Go program that panics ends with 2"`
	Message   string   `json:"message" jsonschema:"regular expression that the panic's message must match; case does not matter"`
	Frames    []string `json:"frames" jsonschema:"functions that must all be on the stack of the goroutine that panicked, each written with at least the last element of its import path"`
}

// Reads names container statuses and logs.
func (c *Crashed) Reads() []bundle.Kind { return []bundle.Kind{bundle.Statuses, bundle.Logs} }

// Validate refuses empty fields, numbers out of range, and a message that is no regular expression.
func (c *Crashed) Validate() error {
	_, err := pattern(c.Message)
	return errors.Join(
		err,
		refuse(c.Container == "", "container is empty"),
		refuse(c.Times < 1, "times is %d (want at least 1)", c.Times),
		refuse(c.ExitCode == 0, "exitCode is 0, which is no crash's"),
		refuse(len(c.Frames) == 0 || slices.Contains(c.Frames, ""),
			"frames has none, or an empty one, which any stack would have"),
	)
}

// Eval finds the ends of the window, and reads the log that each container left.
func (c *Crashed) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, fmt.Sprintf("at least %d ends of %s with exit code %d, each with a panic like %q in %s",
		c.Times, c.Container, c.ExitCode, c.Message, strings.Join(c.Frames, ", ")))
	if !ok {
		return q.Finding
	}
	st := statuses(q)
	logs := componentLog(q, c.Container)
	q.Evidence = slices.Concat(st.paths, logs.paths)
	ends := endsOf(st.records, c.Container, q.window)
	left := logsLeft(logs.records)
	ends = append(ends, unseenEnds(st.records, c.Container, q.window, ends, left)...)
	slices.SortStableFunc(ends, func(a, b end) int { return a.at.Compare(b.at) })
	var counted []string // the times of the ends that count
	silent := 0
	for _, e := range ends {
		why, unread := c.differs(q, e, left)
		switch {
		case why == "":
			if counted = append(counted, clock(e.at)); len(counted) == 1 {
				q.Ended = e.at
			}
		case unread:
			silent++
			fallthrough
		default:
			q.Differs = append(q.Differs, e.describe()+": "+why)
		}
	}
	q.Differs = firstAndLast(q.Differs)
	q.Seen = fmt.Sprintf("%d such ends among %d", len(counted), len(ends))
	if len(counted) > 0 {
		q.Seen += fmt.Sprintf(", at %s, the first %s after %s began", strings.Join(firstAndLast(counted), ", "),
			q.Ended.Sub(q.began).Round(time.Second), q.phase)
	}
	doubt := cmp.Or(st.doubt, logs.doubt)
	switch {
	case len(counted) >= c.Times:
		q.Met = True
	case silent > 0 && len(counted)+silent >= c.Times:
		return c.unknown(q, ends[0].at, fmt.Sprintf("%s, and of %d the log is not known", q.Seen, silent))
	case doubt != "" && len(ends) > 0:
		return c.unknown(q, ends[0].at, q.Seen+"; "+doubt)
	case doubt != "":
		return q.unknown(q.Seen + "; " + doubt)
	default:
		q.Met, q.Ended = False, time.Time{}
	}
	return q.Finding
}

// unknown returns the finding if nobody can tell whether the incident ended the process, which ended at the given time.
func (c *Crashed) unknown(q *question, at time.Time, why string) Finding {
	f := q.unknown(why)
	f.Ended, f.Differs = at, q.Differs
	return f
}

// differs says why an end is not the incident's, "" if it is. unread says that the container's log is missing or can't
// be read.
func (c *Crashed) differs(q *question, e end, left []*leftLog) (why string, unread bool) {
	if !e.unseen && e.code != c.ExitCode && !(c.ExitCode == panics && e.code == aborts) {
		return fmt.Sprintf("want exit code %d", c.ExitCode), false
	}
	l := e.log
	if !e.unseen {
		l = logOf(left, e.at)
	}
	if l == nil {
		return "no log of that container was recorded", true
	}
	stack, why, unread := l.died(c.Message, c.Frames)
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

// died returns the message and the stack of the panic that ended a container. If there is none, if the message does not
// match like, or if the stack lacks one of frames, why says so. unread says that the panic can't be read.
func (l *leftLog) died(like string, frames []string) (stack, why string, unread bool) {
	message, d, err := l.panicked()
	switch {
	case err != nil:
		return "", err.Error(), true
	case message == "":
		return "", "its log ends without a panic", false
	}
	re, _ := pattern(like) // Validate has compiled it
	if !re.MatchString(message) {
		return "", fmt.Sprintf("it says %q", message), false
	}
	for _, f := range frames {
		if !(goroutine.Match{Func: f, Closures: true}).Chooses(d.Groups[0]) {
			return "", "the goroutine that panicked has no " + f, false
		}
	}
	return message + "\n\n" + text(d.Groups[0]), "", false
}

// endsOf returns the ends of a container in a window, in order of time, each once. The time of an end comes from the
// statuses recorded after it.
func endsOf(all []bundle.ContainerStatus, container string, w bundle.Window) (out []end) {
	seen := map[string]bool{}
	for _, r := range all {
		e := end{container: container, id: r.LastID, at: r.LastFinished, reason: r.LastReason, code: r.LastExitCode}
		// The kubelet tells the time of an end in whole seconds.
		if r.Container != container || e.id == "" || seen[e.id] || e.at.Before(w.Start.Truncate(time.Second)) ||
			e.at.After(w.End) {
			continue
		}
		seen[e.id] = true
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b end) int { return a.at.Compare(b.at) })
	return out
}

// leftLog is the log of one container. Several containers may have had the same name.
type leftLog struct {
	first, last time.Time
	lines       []string
	times       []time.Time // of each line
}

// logsLeft groups the lines of a component by log file. Each container had one file.
func logsLeft(lines []bundle.LogLine) (out []*leftLog) {
	of := map[string]*leftLog{}
	for _, l := range lines {
		one := of[l.File]
		if one == nil {
			one = &leftLog{first: l.Time}
			of[l.File] = one
			out = append(out, one)
		}
		one.last, one.lines, one.times = l.Time, append(one.lines, l.Text), append(one.times, l.Time)
	}
	return out
}

// endLag is how long before or after a container's end its last line may lie. The line may lie after the end because
// the kubelet tells the time of an end in whole seconds.
const endLag = 5 * time.Second

// logOf returns the log that ends when a container did, nil if there is none. Of several, logOf returns the log whose
// last line is nearest to the second of the end. The next container may begin in that same second, so of two logs that
// are equally near, logOf returns the earlier one.
func logOf(all []*leftLog, ended time.Time) (found *leftLog) {
	off := func(l *leftLog) time.Duration {
		return max(0, ended.Sub(l.last), l.last.Sub(ended.Add(time.Second)))
	}
	for _, l := range all {
		if l.first.Before(ended.Add(time.Second)) && l.last.Sub(ended).Abs() <= endLag && (found == nil ||
			cmp.Or(cmp.Compare(off(l), off(found)), l.first.Compare(found.first)) < 0) {
			found = l
		}
	}
	return found
}

// panicked returns the message with which the runtime ended the program, and the goroutines that the runtime printed.
// The message is "" if the log has none.
func (l *leftLog) panicked() (message string, d *goroutine.Dump, err error) {
	at := lastWords(l.lines)
	if at < 0 {
		return "", nil, nil
	}
	text := strings.Join(l.lines[at:], "\n")
	message, _, _ = strings.Cut(text, "\ngoroutine ")
	if d, err = goroutine.Read(strings.NewReader(text + "\n")); err != nil {
		return "", nil, fmt.Errorf("reading what it printed as it ended: %w", err)
	}
	return strings.TrimSpace(message), d, nil
}

// running matches the first line of a running goroutine, which the runtime prints first when it ends a program.
var running = regexp.MustCompile(`^goroutine \d+ .*\[running`)

// lastWords returns the index of the line in which the runtime says why it ends the program, -1 if there is none. Of
// several lines that look alike, lastWords returns the last one after which the first stack is that of a running
// goroutine, or else the last one. The lines before were printed by a handler that went on.
func lastWords(lines []string) int {
	found, withStack := -1, false
	for at := 0; at < len(lines); at++ {
		next := goroutine.LastWords(lines[at:])
		if next < 0 {
			break
		}
		at += next
		first := slices.IndexFunc(lines[at:], func(l string) bool { return strings.HasPrefix(l, "goroutine ") })
		if ran := first >= 0 && running.MatchString(lines[at+first]); ran || !withStack {
			found, withStack = at, ran
		}
	}
	return found
}
