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

// Mark is a moment from which on something counts, and the stretch of time that begins there. One of its sources is given:
//
//   - metric: the largest age of a timestamp metric in the window says when something began and did not come back; the stretch begins plus after
//     it and ends with the window.
//   - log: what the subject itself says line after line; the stretch is that of the lines which are about one beginning.
//   - node: the stretch in which the cell's node is not Ready with such a message.
//   - flood: plus after the first delivery of a containerFlood, to the end of the window.
type Mark struct {
	Metric string    `json:"metric,omitempty" jsonschema:"a metric whose value is a time in seconds since the epoch"`
	Log    *MarkLine `json:"log,omitempty" jsonschema:"lines that the subject repeats for as long as it lasts, instead of a metric"`
	Node   string    `json:"node,omitempty" jsonschema:"a regular expression over the message with which the cell's node is not Ready, instead of a metric"`
	Flood  string    `json:"flood,omitempty" jsonschema:"the name of a containerFlood, whose first delivery counts, instead of a metric"`
	Plus   Quantity  `json:"plus,omitzero" jsonschema:"how long after the metric's time, or after the first delivery, the mark is"`
}

// MarkLine is a line that says for how long something has lasted.
type MarkLine struct {
	Pattern string `json:"pattern" jsonschema:"a regular expression over the message, with a group age that is a duration; case does not matter"`
	Exceeds string `json:"exceeds" jsonschema:"the group, a duration too, that the age has to exceed: the limit which the line itself states"`
}

// marked is the time that a mark names. doubt says which data isn't there. short says that there was no such moment.
type marked struct {
	bundle.Window
	said         string // what the mark rests on
	short, doubt string
	paths        []string
}

// after names the stretch's beginning, as the end of what is wanted. There is none where it was never reached, unless that is known from a metric.
func (s marked) after() string {
	if s.Start.IsZero() {
		return " from then on"
	}
	return " after " + clock(s.Start)
}

func (m Mark) at(v bundle.View, cell string, w bundle.Window) marked {
	switch {
	case m.Log != nil:
		return m.Log.at(v, cell, w)
	case m.Node != "":
		return m.nodeAt(v, cell, w)
	}
	plus, err := m.Plus.value(v, cell)
	if err != nil {
		return marked{doubt: err.Error()}
	}
	if m.Flood != "" {
		return m.floodAt(v, cell, w, time.Duration(plus))
	}
	return m.metricAt(v, cell, w, time.Duration(plus))
}

func (m Mark) metricAt(v bundle.View, cell string, w bundle.Window, plus time.Duration) marked {
	stamps := metricSeries(v, cell, m.Metric, nil, w)
	age, at := stamps.oldest()
	switch {
	case stamps.doubt != "":
		return marked{doubt: stamps.doubt}
	case age < 0:
		return marked{doubt: fmt.Sprintf("no sample of %s in %s", m.Metric, span(w))}
	}
	out := marked{Window: bundle.Window{Start: at.Add(plus - age), End: w.End}}
	if age < plus {
		out.short = fmt.Sprintf("that moment was never reached: %s was at most %s old, and it lies %s after it",
			m.Metric, age.Round(100*time.Millisecond), plus)
	}
	return out
}

func (m Mark) floodAt(v bundle.View, cell string, w bundle.Window, plus time.Duration) marked {
	st := read[bundle.Stamped[control.Counts]](v, bundle.Interposer, cell, w)
	rec, found := newestFlood(m.Flood, &st, w)
	if !found || len(rec.Delivered) == 0 {
		return marked{doubt: st.doubt, short: "nothing of " + m.Flood + " was delivered", paths: st.paths}
	}
	first := time.Unix(0, rec.Delivered[0].From)
	return marked{Window: bundle.Window{Start: first.Add(plus), End: w.End}, paths: st.paths,
		said: fmt.Sprintf("the first delivery was at %s", clock(first))}
}

// nodeAt is the longest stretch. The API server learns of it later than it began, so it is never too long.
func (m Mark) nodeAt(v bundle.View, cell string, w bundle.Window) (out marked) {
	st := read[bundle.NodeStatus](v, bundle.Nodes, cell, w)
	re := regexp.MustCompile(m.Node) // validate has compiled it
	var open *bundle.NodeStatus
	end := func(at time.Time) {
		if open != nil && at.Sub(open.Time) > out.End.Sub(out.Start) {
			out.Window = bundle.Window{Start: open.Time, End: at}
			out.said = "the node was not Ready: " + open.Message
		}
	}
	for _, r := range holding(st.records, w) {
		ill := r.Status == "False" && re.MatchString(r.Message)
		switch {
		case ill && open == nil:
			open = &r
		case !ill:
			end(r.Time)
			open = nil
		}
	}
	end(w.End)
	out.paths = st.paths
	if out.said == "" {
		out.doubt, out.short = st.doubt, fmt.Sprintf("the node was never not Ready with a message like %q", m.Node)
	}
	return out
}

// maxPause is the longest that a line may be waited for: kubelet's sync loop says that it skips every 5 s at the latest.
const maxPause = 5 * time.Second

// overdue is a line whose age exceeds its own limit.
type overdue struct {
	at         time.Time
	age, limit time.Duration
}

// began is when what the line is about began.
func (o overdue) began() time.Time { return o.at.Add(-o.age) }

// lines are those of the whole journal. They are asked for every two seconds while it grows, so only what is new is read; each is one record.
func (l MarkLine) lines(v bundle.View, cell string, w bundle.Window) stream[overdue] {
	re := regexp.MustCompile("(?i)" + l.Pattern) // validate has compiled it
	type found struct {
		lines []overdue
		err   error // the first
	}
	return readWith(v, bundle.Query{Kind: bundle.Journal, Cell: cell}, w, func(a bundle.Artifact) ([]overdue, error) {
		all, err := v.Remember(a, "lines above their "+l.Exceeds+" like "+l.Pattern, func(before any, r io.Reader) (any, error) {
			out, _ := before.(found)
			for e, err := range klog.ReadJournal(r) {
				if err != nil {
					out.err = cmp.Or(out.err, err)
					continue
				}
				m := re.FindStringSubmatch(e.Message)
				if m == nil || e.Suppressed > 0 {
					continue
				}
				age, err := time.ParseDuration(m[re.SubexpIndex("age")])
				limit, err2 := time.ParseDuration(m[re.SubexpIndex(l.Exceeds)])
				if err == nil && err2 == nil && age > limit {
					out.lines = append(out.lines, overdue{e.Time, age, limit})
				}
			}
			return out, nil
		})
		if err != nil {
			return nil, err
		}
		f := all.(found)
		return f.lines, f.err
	})
}

// at is the longest stretch of lines about one beginning. A loop that backs off pauses for twice as long as before after each line, and does
// nothing in its pause: so much is added to the last line.
func (l MarkLine) at(v bundle.View, cell string, w bundle.Window) (out marked) {
	st := l.lines(v, cell, w)
	in := slices.DeleteFunc(slices.Clone(st.records), func(o overdue) bool { return o.at.Before(w.Start) || o.at.After(w.End) })
	out.paths = st.paths
	for len(in) > 0 {
		n := 1
		for n < len(in) && in[n].began().Sub(in[0].began()).Abs() <= sameBeginning {
			n++
		}
		if last := in[n-1]; n > 1 && last.at.Sub(in[0].at) >= out.End.Sub(out.Start) {
			pause := min(2*last.at.Sub(in[n-2].at), maxPause)
			out.Window = bundle.Window{Start: in[0].at, End: earlier(last.at.Add(pause), w.End)}
			out.said = fmt.Sprintf("it said so from %s on, and at last: %s, above its own limit of %s", clock(in[0].at), last.age.Round(100*time.Millisecond), last.limit)
		} else if n == 1 && out.said == "" {
			out.short = fmt.Sprintf("it said so only once, at %s: %s, above its own limit of %s", clock(last.at), last.age, last.limit)
		}
		in = in[n:]
	}
	switch {
	case out.said != "":
		out.short = ""
	case st.doubt != "":
		out.doubt = st.doubt
	case out.short == "":
		out.short = fmt.Sprintf("it never said so: no line like %q", l.Pattern)
	}
	return out
}

// sameBeginning is how far apart two lines about one beginning may put it.
const sameBeginning = 3 * time.Second

// reads are the artifacts that the mark comes from.
func (m Mark) reads() []bundle.Kind {
	switch {
	case m.Log != nil:
		return []bundle.Kind{bundle.Journal}
	case m.Node != "":
		return []bundle.Kind{bundle.Nodes}
	case m.Flood != "":
		return []bundle.Kind{bundle.Interposer}
	}
	return []bundle.Kind{bundle.MetricSamples}
}

// with adds a kind to others unless it is among them.
func with(kinds []bundle.Kind, more bundle.Kind) []bundle.Kind {
	if slices.Contains(kinds, more) {
		return kinds
	}
	return append(kinds, more)
}

// validate refuses a mark without a source or with several, a pattern that is none, and a time in the wrong unit.
func (m Mark) validate(field string) error {
	sources := 0
	for _, given := range []bool{m.Metric != "", m.Log != nil, m.Node != "", m.Flood != ""} {
		if given {
			sources++
		}
	}
	switch {
	case sources == 0:
		return fmt.Errorf("%s.metric is empty (want a metric, or one of log, node and flood)", field)
	case sources > 1:
		return fmt.Errorf("%s has %d sources (want one of metric, log, node and flood)", field, sources)
	case m.Log != nil:
		return m.Log.validate(field + ".log")
	case m.Node != "":
		if _, err := regexp.Compile(m.Node); err != nil {
			return fmt.Errorf("%s.node: %w", field, err)
		}
		return nil
	}
	return m.Plus.validate(field+".plus", true)
}

func (l MarkLine) validate(field string) error {
	re, err := regexp.Compile("(?i)" + l.Pattern)
	switch {
	case err != nil:
		return fmt.Errorf("%s.pattern: %w", field, err)
	case !slices.Contains(re.SubexpNames(), "age"):
		return fmt.Errorf("%s.pattern has no group age", field)
	case l.Exceeds == "" || re.SubexpIndex(l.Exceeds) < 0:
		return fmt.Errorf("%s.exceeds is %q (want a group of the pattern)", field, l.Exceeds)
	}
	return nil
}
