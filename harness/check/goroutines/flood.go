package goroutines

import (
	"cmp"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// NewestFlood returns a flood's record from the last reading of the window that has one. A flood that was over before
// the window began is another flood, for example an earlier trial's in the same cluster, and doesn't count. An
// interposer that was restarted counts from zero with nothing armed, so its number may be too low: the stream then has
// a doubt.
func NewestFlood(
	q *question.Question,
	name string,
) (rec control.ArmRecord, found bool, st question.Stream[bundle.Stamped[control.Counts]]) {
	st = question.Read[bundle.Stamped[control.Counts]](q, bundle.Interposer)
	var process control.Counts
	for _, r := range st.Records {
		if !question.Contains(q.Window, r.Time) {
			continue
		}
		if process.PID != 0 && (r.Value.PID != process.PID || !r.Value.StartedAt.Equal(process.StartedAt)) {
			st.Doubt = cmp.Or(st.Doubt, check.Doubt(check.OtherProcess, "the interposer was restarted by %s", question.Clock(r.Time)))
		}
		process = r.Value
		if a, ok := r.Value.Find(control.FaultFlood, name); ok &&
			!(a.EndedAt != nil && a.EndedAt.Before(q.Window.Start)) {
			rec, found = a, true
		}
	}
	return rec, found, st
}
