package goroutines

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// StartPoint names the moment from which a check counts, and the stretch of time that begins there. It has one of these
// sources:
//
//   - log: lines that the subject repeats, each of which says since when something has lasted. The stretch is that of
//     the lines about one beginning.
//   - node: the stretch in which the arm's node is not Ready with a message that matches.
//   - flood: from plus after the first delivery of a containerFlood to the end of the window.
type StartPoint struct {
	Log   *StartLine        `json:"log,omitempty" jsonschema:"lines that the subject repeats for as long as something lasts. Give one of log, node and flood"`
	Node  string            `json:"node,omitempty" jsonschema:"instead of log: regular expression that the message of the arm's node must match while the node is not Ready; case matters"`
	Flood string            `json:"flood,omitempty" jsonschema:"instead of log: name of a containerFlood, whose first delivery counts"`
	Plus  question.Quantity `json:"plus,omitzero" jsonschema:"with flood: how long after the first delivery the stretch begins, a duration or a constant. Default: at once"`
}

// StartLine selects lines that say for how long something has lasted.
type StartLine struct {
	Pattern string `json:"pattern" jsonschema:"regular expression that the message must match, with a group named age that is a duration; case does not matter"`
	Exceeds string `json:"exceeds" jsonschema:"name of a group of the pattern, also a duration, that age must exceed: the limit that the line itself states"`
}

// stretchFound is the stretch that a StartPoint names, or why there is none.
type stretchFound struct {
	bundle.Window
	Said  string // what shows the stretch
	Short string // why there was no such moment; "" if there was one
	Doubt string // which data is missing; "" if none is
	Paths []string
}

// After returns the stretch's beginning, as text to add to what is wanted.
func (s stretchFound) After() string {
	if s.Start.IsZero() {
		return " from then on"
	}
	return " after " + question.Clock(s.Start)
}

// startAt narrows the question to the stretch that m names; nil changes nothing. If there is no such stretch, ok is
// false and the question's finding is the answer.
func startAt(q *question.Question, m *StartPoint) (ok bool) {
	if m == nil {
		return true
	}
	mark := m.Resolve(q)
	q.Evidence = mark.Paths
	if mark.Doubt != "" {
		q.Seen = mark.Doubt
		return false
	}
	q.Wanted += mark.After()
	if mark.Short != "" {
		q.Met, q.Seen = check.False, mark.Short
		return false
	}
	q.Window = bundle.Window{Start: question.LaterOf(q.Window.Start, mark.Start), End: mark.End}
	return true
}

// Resolve finds the stretch of the window that begins where the spec says.
func (m *StartPoint) Resolve(q *question.Question) stretchFound {
	switch {
	case m.Log != nil:
		return m.Log.resolve(q)
	case m.Node != "":
		return m.resolveNode(q)
	}
	return m.resolveFlood(q)
}

func (m *StartPoint) resolveFlood(q *question.Question) stretchFound {
	plus := 0.0
	if m.Plus != (question.Quantity{}) {
		var err error
		if plus, err = m.Plus.Value(q.View, q.Arm); err != nil {
			return stretchFound{Doubt: err.Error()}
		}
	}
	rec, found, st := NewestFlood(q, m.Flood)
	if !found || len(rec.Delivered) == 0 {
		return stretchFound{Doubt: st.Doubt, Short: "nothing of " + m.Flood + " was delivered", Paths: st.Paths}
	}
	first := time.Unix(0, rec.Delivered[0].From)
	return stretchFound{Window: bundle.Window{Start: first.Add(time.Duration(plus)), End: q.Window.End}, Paths: st.Paths,
		Said: "the first delivery was at " + question.Clock(first)}
}

// resolveNode returns the longest stretch in which the node is not Ready with a message that matches. The stretch is
// never too long, because the API server learns of it after it begins.
func (m *StartPoint) resolveNode(q *question.Question) (out stretchFound) {
	st := question.Read[bundle.NodeStatus](q, bundle.Nodes)
	re := regexp.MustCompile(m.Node) // Validate has compiled it
	var open *bundle.NodeStatus
	end := func(at time.Time) {
		if open != nil && at.Sub(open.Time) > question.Length(out.Window) {
			out.Window = bundle.Window{Start: open.Time, End: at}
			out.Said = "the node was not Ready: " + open.Message
		}
	}
	for _, r := range objects.NodeStatesIn(st.Records, q.Window) {
		ill := r.Status == "False" && re.MatchString(r.Message)
		switch {
		case ill && open == nil:
			open = &r
		case !ill:
			end(r.Time)
			open = nil
		}
	}
	end(q.Window.End)
	out.Paths = st.Paths
	if out.Said == "" {
		out.Doubt, out.Short = st.Doubt, fmt.Sprintf("the node was never not Ready with a message like %q", m.Node)
	}
	return out
}

// maxPause is the longest pause between two lines: kubelet's sync loop logs at least every 5 s that it skips.
const maxPause = 5 * time.Second

// sameBeginning is how far apart two lines may put a beginning and still be about the same one.
const sameBeginning = 3 * time.Second

// overdue is a line whose age exceeds the limit that the line itself states. If suppressed isn't 0, it is that many
// dropped lines instead.
type overdue struct {
	at         time.Time
	age, limit time.Duration
	suppressed int
}

// began returns since when, according to the line, something has lasted.
func (o overdue) began() time.Time { return o.at.Add(-o.age) }

// lines returns the overdue lines of the whole journal, and its notes of dropped lines. It is called every two seconds
// while the journal grows, so it reads only what is new.
func (l StartLine) lines(q *question.Question) question.Stream[overdue] {
	re := regexp.MustCompile("(?i)" + l.Pattern) // Validate has compiled it
	type found struct {
		lines []overdue
		err   error // the first error
	}
	return question.ReadWith(q, bundle.Query{Kind: bundle.Journal, Arm: q.Arm},
		func(v bundle.View, a bundle.Artifact) ([]overdue, error) {
			all, err := question.Remember(v, a, "lines above their "+l.Exceeds+" like "+l.Pattern,
				func(out found, r io.Reader) (found, error) {
					for e, err := range klog.ReadJournal(r) {
						if err != nil {
							out.err = cmp.Or(out.err, fmt.Errorf("reading %s: %w", a.Path, err))
							continue
						}
						if e.Suppressed > 0 {
							out.lines = append(out.lines, overdue{at: e.Time, suppressed: e.Suppressed})
							continue
						}
						m := re.FindStringSubmatch(e.Message)
						if m == nil {
							continue
						}
						age, err := time.ParseDuration(m[re.SubexpIndex("age")])
						limit, err2 := time.ParseDuration(m[re.SubexpIndex(l.Exceeds)])
						if err == nil && err2 == nil && age > limit {
							out.lines = append(out.lines, overdue{at: e.Time, age: age, limit: limit})
						}
					}
					return out, nil
				})
			return all.lines, cmp.Or(err, all.err)
		})
}

// resolve returns the longest stretch of lines about one beginning. A loop that backs off pauses after each line, for
// twice as long as before, and does nothing in that time. So the pause after the last line belongs to the stretch.
func (l StartLine) resolve(q *question.Question) (out stretchFound) {
	st := l.lines(q)
	var told []logs.Suppressed
	in := slices.DeleteFunc(slices.Clone(st.Records), func(o overdue) bool {
		told = append(told, logs.Suppressed{At: o.at, N: o.suppressed})
		return o.suppressed > 0 || !question.Contains(q.Window, o.at)
	})
	out.Paths = st.Paths
	for len(in) > 0 {
		n := 1
		for n < len(in) && in[n].began().Sub(in[0].began()).Abs() <= sameBeginning {
			n++
		}
		if last := in[n-1]; n > 1 && last.at.Sub(in[0].at) >= question.Length(out.Window) {
			pause := min(2*last.at.Sub(in[n-2].at), maxPause)
			out.Window = bundle.Window{Start: in[0].at, End: question.EarlierOf(last.at.Add(pause), q.Window.End)}
			out.Said = fmt.Sprintf("it said so from %s on, and at last: %s, above its own limit of %s", question.Clock(in[0].at),
				last.age.Round(100*time.Millisecond), last.limit)
		} else if n == 1 && out.Said == "" {
			out.Short = fmt.Sprintf("it said so only once, at %s: %s, above its own limit of %s", question.Clock(last.at),
				last.age, last.limit)
		}
		in = in[n:]
	}
	switch {
	case out.Said != "":
		out.Short = ""
	case cmp.Or(st.Doubt, logs.DescribeSuppressed(q, told)) != "":
		out.Doubt = cmp.Or(st.Doubt, logs.DescribeSuppressed(q, told))
	case out.Short == "":
		out.Short = fmt.Sprintf("it never said so: no line like %q", l.Pattern)
	}
	return out
}

// Reads returns the kinds of artifacts that the start point comes from, or none if m is nil.
func (m *StartPoint) Reads() []bundle.Kind {
	switch {
	case m == nil:
		return nil
	case m.Log != nil:
		return []bundle.Kind{bundle.Journal}
	case m.Node != "":
		return []bundle.Kind{bundle.Nodes}
	}
	return []bundle.Kind{bundle.Interposer}
}

// Constants returns the names of the constants that the start point is computed from, or none if m is nil.
func (m *StartPoint) Constants() []string {
	if m == nil {
		return nil
	}
	return m.Plus.Constants()
}

// Validate refuses a start point without exactly one source, a bad pattern, and a time in the wrong unit. A nil start
// point is valid.
func (m *StartPoint) Validate(field string) error {
	if m == nil {
		return nil
	}
	sources := question.CountTrue(m.Log != nil, m.Node != "", m.Flood != "")
	switch {
	case sources != 1:
		return fmt.Errorf("%s has %d sources (want one of log, node and flood)", field, sources)
	case m.Log != nil:
		return m.Log.validate(field + ".log")
	case m.Node != "":
		if _, err := regexp.Compile(m.Node); err != nil {
			return fmt.Errorf("%s.node: %w", field, err)
		}
		return nil
	case m.Plus == question.Quantity{}:
		return nil
	}
	return m.Plus.Validate(field+".plus", true)
}

func (l StartLine) validate(field string) error {
	re, err := regexp.Compile("(?i)" + l.Pattern)
	if err != nil {
		return fmt.Errorf("%s.pattern: %w", field, err)
	}
	return cmp.Or(
		question.Refuse(re.SubexpIndex("age") < 0, "%s.pattern has no group age", field),
		question.Refuse(l.Exceeds == "" || re.SubexpIndex(l.Exceeds) < 0, "%s.exceeds is %q (want a group of the pattern)",
			field, l.Exceeds),
	)
}

// NewestFlood returns a flood's record from the last reading of the window that has one. A flood that was over before
// the window began is another flood, for example an earlier trial's in the same cluster, and doesn't count. An
// interposer that was restarted counts from zero with nothing armed, so its number may be too low: the stream then has
// a doubt.
func NewestFlood(q *question.Question,
	name string) (rec control.ArmRecord, found bool, st question.Stream[bundle.Stamped[control.Counts]]) {
	st = question.Read[bundle.Stamped[control.Counts]](q, bundle.Interposer)
	var process control.Counts
	for _, r := range st.Records {
		if !question.Contains(q.Window, r.Time) {
			continue
		}
		if process.PID != 0 && (r.Value.PID != process.PID || !r.Value.StartedAt.Equal(process.StartedAt)) {
			st.Doubt = cmp.Or(st.Doubt, "the interposer was restarted by "+question.Clock(r.Time))
		}
		process = r.Value
		if a, ok := r.Value.Find(control.FaultFlood, name); ok &&
			!(a.EndedAt != nil && a.EndedAt.Before(q.Window.Start)) {
			rec, found = a, true
		}
	}
	return rec, found, st
}
