package check

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
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
	Log   *StartLine `json:"log,omitempty" jsonschema:"lines that the subject repeats for as long as something lasts. Give one of log, node and flood"`
	Node  string     `json:"node,omitempty" jsonschema:"instead of log: regular expression that the message of the arm's node must match while the node is not Ready; case matters"`
	Flood string     `json:"flood,omitempty" jsonschema:"instead of log: name of a containerFlood, whose first delivery counts"`
	Plus  Quantity   `json:"plus,omitzero" jsonschema:"with flood: how long after the first delivery the stretch begins, a duration or a constant. Default: at once"`
}

// StartLine selects lines that say for how long something has lasted.
type StartLine struct {
	Pattern string `json:"pattern" jsonschema:"regular expression that the message must match, with a group named age that is a duration; case does not matter"`
	Exceeds string `json:"exceeds" jsonschema:"name of a group of the pattern, also a duration, that age must exceed: the limit that the line itself states"`
}

// stretchFound is the stretch that a StartPoint names, or why there is none.
type stretchFound struct {
	bundle.Window
	said  string // what shows the stretch
	short string // why there was no such moment; "" if there was one
	doubt string // which data is missing; "" if none is
	paths []string
}

// after returns the stretch's beginning, as text to add to what is wanted.
func (s stretchFound) after() string {
	if s.Start.IsZero() {
		return " from then on"
	}
	return " after " + clock(s.Start)
}

// startAt narrows the question to the stretch that m names; nil changes nothing. If there is no such stretch, ok is
// false and the question's finding is the answer.
func startAt(q *question, m *StartPoint) (ok bool) {
	if m == nil {
		return true
	}
	mark := m.resolve(q)
	q.Evidence = mark.paths
	if mark.doubt != "" {
		q.Seen = mark.doubt
		return false
	}
	q.Wanted += mark.after()
	if mark.short != "" {
		q.Met, q.Seen = False, mark.short
		return false
	}
	q.window = bundle.Window{Start: laterOf(q.window.Start, mark.Start), End: mark.End}
	return true
}

func (m *StartPoint) resolve(q *question) stretchFound {
	switch {
	case m.Log != nil:
		return m.Log.resolve(q)
	case m.Node != "":
		return m.resolveNode(q)
	}
	return m.resolveFlood(q)
}

func (m *StartPoint) resolveFlood(q *question) stretchFound {
	plus := 0.0
	if m.Plus != (Quantity{}) {
		var err error
		if plus, err = m.Plus.value(q.view, q.arm); err != nil {
			return stretchFound{doubt: err.Error()}
		}
	}
	rec, found, st := newestFlood(q, m.Flood)
	if !found || len(rec.Delivered) == 0 {
		return stretchFound{doubt: st.doubt, short: "nothing of " + m.Flood + " was delivered", paths: st.paths}
	}
	first := time.Unix(0, rec.Delivered[0].From)
	return stretchFound{Window: bundle.Window{Start: first.Add(time.Duration(plus)), End: q.window.End}, paths: st.paths,
		said: "the first delivery was at " + clock(first)}
}

// resolveNode returns the longest stretch in which the node is not Ready with a message that matches. The stretch is
// never too long, because the API server learns of it after it begins.
func (m *StartPoint) resolveNode(q *question) (out stretchFound) {
	st := read[bundle.NodeStatus](q, bundle.Nodes)
	re := regexp.MustCompile(m.Node) // validate has compiled it
	var open *bundle.NodeStatus
	end := func(at time.Time) {
		if open != nil && at.Sub(open.Time) > length(out.Window) {
			out.Window = bundle.Window{Start: open.Time, End: at}
			out.said = "the node was not Ready: " + open.Message
		}
	}
	for _, r := range holding(st.records, q.window) {
		ill := r.Status == "False" && re.MatchString(r.Message)
		switch {
		case ill && open == nil:
			open = &r
		case !ill:
			end(r.Time)
			open = nil
		}
	}
	end(q.window.End)
	out.paths = st.paths
	if out.said == "" {
		out.doubt, out.short = st.doubt, fmt.Sprintf("the node was never not Ready with a message like %q", m.Node)
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
func (l StartLine) lines(q *question) stream[overdue] {
	re := regexp.MustCompile("(?i)" + l.Pattern) // validate has compiled it
	type found struct {
		lines []overdue
		err   error // the first error
	}
	return readWith(q, bundle.Query{Kind: bundle.Journal, Arm: q.arm},
		func(v bundle.View, a bundle.Artifact) ([]overdue, error) {
			all, err := remember(v, a, "lines above their "+l.Exceeds+" like "+l.Pattern,
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
func (l StartLine) resolve(q *question) (out stretchFound) {
	st := l.lines(q)
	var told []suppressed
	in := slices.DeleteFunc(slices.Clone(st.records), func(o overdue) bool {
		told = append(told, suppressed{at: o.at, n: o.suppressed})
		return o.suppressed > 0 || !contains(q.window, o.at)
	})
	out.paths = st.paths
	for len(in) > 0 {
		n := 1
		for n < len(in) && in[n].began().Sub(in[0].began()).Abs() <= sameBeginning {
			n++
		}
		if last := in[n-1]; n > 1 && last.at.Sub(in[0].at) >= length(out.Window) {
			pause := min(2*last.at.Sub(in[n-2].at), maxPause)
			out.Window = bundle.Window{Start: in[0].at, End: earlierOf(last.at.Add(pause), q.window.End)}
			out.said = fmt.Sprintf("it said so from %s on, and at last: %s, above its own limit of %s", clock(in[0].at),
				last.age.Round(100*time.Millisecond), last.limit)
		} else if n == 1 && out.said == "" {
			out.short = fmt.Sprintf("it said so only once, at %s: %s, above its own limit of %s", clock(last.at),
				last.age, last.limit)
		}
		in = in[n:]
	}
	switch {
	case out.said != "":
		out.short = ""
	case cmp.Or(st.doubt, describeSuppressed(q, told)) != "":
		out.doubt = cmp.Or(st.doubt, describeSuppressed(q, told))
	case out.short == "":
		out.short = fmt.Sprintf("it never said so: no line like %q", l.Pattern)
	}
	return out
}

// reads returns the kinds of artifacts that the start point comes from, or none if m is nil.
func (m *StartPoint) reads() []bundle.Kind {
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

// constants returns the names of the constants that the start point is computed from, or none if m is nil.
func (m *StartPoint) constants() []string {
	if m == nil {
		return nil
	}
	return m.Plus.constants()
}

// validate refuses a start point without exactly one source, a bad pattern, and a time in the wrong unit. A nil start
// point is valid.
func (m *StartPoint) validate(field string) error {
	if m == nil {
		return nil
	}
	sources := countTrue(m.Log != nil, m.Node != "", m.Flood != "")
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
	case m.Plus == Quantity{}:
		return nil
	}
	return m.Plus.validate(field+".plus", true)
}

func (l StartLine) validate(field string) error {
	re, err := regexp.Compile("(?i)" + l.Pattern)
	if err != nil {
		return fmt.Errorf("%s.pattern: %w", field, err)
	}
	return cmp.Or(
		refuse(re.SubexpIndex("age") < 0, "%s.pattern has no group age", field),
		refuse(l.Exceeds == "" || re.SubexpIndex(l.Exceeds) < 0, "%s.exceeds is %q (want a group of the pattern)",
			field, l.Exceeds),
	)
}

// newestFlood returns a flood's record from the last reading of the window that has one. A flood that was over before
// the window began is another flood, for example an earlier trial's in the same cluster, and doesn't count. An
// interposer that was restarted counts from zero with nothing armed, so its number may be too low: the stream then has
// a doubt.
func newestFlood(q *question,
	name string) (rec control.ArmRecord, found bool, st stream[bundle.Stamped[control.Counts]]) {
	st = read[bundle.Stamped[control.Counts]](q, bundle.Interposer)
	var process control.Counts
	for _, r := range st.records {
		if !contains(q.window, r.Time) {
			continue
		}
		if process.PID != 0 && (r.Value.PID != process.PID || !r.Value.StartedAt.Equal(process.StartedAt)) {
			st.doubt = cmp.Or(st.doubt, "the interposer was restarted by "+clock(r.Time))
		}
		process = r.Value
		if a, ok := r.Value.Find(control.FaultFlood, name); ok &&
			!(a.EndedAt != nil && a.EndedAt.Before(q.window.Start)) {
			rec, found = a, true
		}
	}
	return rec, found, st
}
