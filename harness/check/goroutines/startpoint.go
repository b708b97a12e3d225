package goroutines

import (
	"fmt"
	"regexp"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
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
	Flood string            `json:"flood,omitempty" refers:"fault" jsonschema:"instead of log: name of a containerFlood, whose first delivery counts"`
	Plus  question.Quantity `json:"plus,omitzero" jsonschema:"with flood: how long after the first delivery the stretch begins, a duration or a constant. Default: at once"`
}

// Stretch is the stretch that a StartPoint names, or why there is none.
type Stretch struct {
	bundle.Window
	Said   string // what shows the stretch
	Absent string // why there was no such moment; "" if there was one
	Doubt  error  // which data is missing; nil if none is
	Paths  []string
}

// DescribeStart returns the stretch's beginning, as text to add to what is wanted.
func (s Stretch) DescribeStart() string {
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
	if mark.Doubt != nil {
		q.Finding = q.Unknown(mark.Doubt)
		return false
	}
	q.Wanted += mark.DescribeStart()
	if mark.Absent != "" {
		q.Met, q.Seen = check.False, mark.Absent
		return false
	}
	q.Window = bundle.Window{Start: question.LaterOf(q.Window.Start, mark.Start), End: mark.End}
	return true
}

// Resolve finds the stretch of the window that begins where the spec says.
func (m *StartPoint) Resolve(q *question.Question) Stretch {
	switch {
	case m.Log != nil:
		return m.Log.resolve(q)
	case m.Node != "":
		return m.resolveNode(q)
	}
	return m.resolveFlood(q)
}

func (m *StartPoint) resolveFlood(q *question.Question) Stretch {
	plus := 0.0
	if m.Plus != (question.Quantity{}) {
		var err error
		if plus, err = m.Plus.Value(q.View, q.Arm); err != nil {
			return Stretch{Doubt: check.Doubt(check.BadCheck, "%w", err)}
		}
	}
	rec, found, st := NewestFlood(q, m.Flood)
	if !found || len(rec.Delivered) == 0 {
		return Stretch{
			Doubt:  st.Doubt,
			Absent: "nothing of " + m.Flood + " was delivered",
			Paths:  st.Paths,
		}
	}
	first := time.Unix(0, rec.Delivered[0].From)
	return Stretch{
		Window: bundle.Window{Start: first.Add(time.Duration(plus)), End: q.Window.End},
		Paths:  st.Paths,
		Said:   "the first delivery was at " + question.Clock(first),
	}
}

// resolveNode returns the longest stretch in which the node is not Ready with a message that matches. The stretch is
// never too long, because the API server learns of it after it begins.
func (m *StartPoint) resolveNode(q *question.Question) (out Stretch) {
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
		out.Doubt, out.Absent = st.Doubt, fmt.Sprintf(
			"the node was never not Ready with a message like %q",
			m.Node,
		)
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
