package verdict

import (
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/plan"
)

// nameContext adds to sentences what a reader must know beside them and what decided nothing: why a subject ended that nobody asked to, and that the
// host was overloaded where the answer isn't clean. No outcome, verdict or exit code changes.
func nameContext(v bundle.View, t plan.Trial, out *Trial) {
	for i := range out.Arms {
		nameCause(v, &out.Arms[i])
	}
	if out.Verdict != VerdictInconclusive && out.Verdict != VerdictBroken {
		return
	}
	if note := hostLoad(v, t); note != "" {
		out.Notes = append(out.Notes, note)
		out.Sentence += "; " + note
	}
}

// nameCause adds to an arm that didn't stay one process why its first one ended.
func nameCause(v bundle.View, a *Arm) {
	for i := range a.Identity {
		f := &a.Identity[i]
		if f.Name != CheckProcess || f.Met != check.NotMet {
			continue
		}
		if cause := causeOfEnd(v, a.Name, firstEnd(v, a.Name)); cause != "" {
			f.Seen += "; " + cause
			a.Reason += "; " + cause
		}
	}
}

// firstEnd is when somebody first saw that a cell's process was gone or another one, after its steady state began; else when that ended, as of a subject
// that never ran.
func firstEnd(v bundle.View, cell string) time.Time {
	steady, _ := v.Phase(cell, check.Steady)
	var first bundle.IdentitySample
	var at time.Time
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Identity, Cell: cell}) {
		lines(v, a, func(s bundle.IdentitySample) {
			switch {
			case s.Expected || s.Time.Before(steady.Start) || !at.IsZero():
			case first.PID == 0:
				first = s
			case s.PID != first.PID || s.StartTicks != first.StartTicks:
				at = s.Time
			}
		})
	}
	if at.IsZero() {
		at = steady.End
	}
	return at
}
