package verdict

import (
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// hostNotes returns a note if the host was overloaded and the verdict is Inconclusive or Broken. The note doesn't
// change the verdict.
func hostNotes(v bundle.View, t plan.Trial, is Verdict) []string {
	if is != VerdictInconclusive && is != VerdictBroken {
		return nil
	}
	if note := hostLoad(v, t); note != "" {
		return []string{note}
	}
	return nil
}

// nameCauses adds to each arm whose process ended why it ended. The cause decides nothing.
func nameCauses(v bundle.View, arms []Arm) {
	for i := range arms {
		nameCause(v, &arms[i])
	}
}

func nameCause(v bundle.View, a *Arm) {
	for i := range a.Identity {
		f := &a.Identity[i]
		if f.Name != CheckProcess || f.Met != check.False {
			continue
		}
		if cause := causeOfEnd(v, a.Name, firstEnd(v, a.Name)); cause != "" {
			f.Seen += "; " + cause
			if a.Outcome == Broken {
				a.Reason += "; " + cause
				a.Because = only(a.Identity, check.False)
			}
		}
	}
}

// firstEnd returns when an arm's process was first seen to be gone or replaced, after its steady state began. If no
// look shows that, for example because the subject never ran, it returns when the steady state ended.
func firstEnd(v bundle.View, arm string) time.Time {
	steady, _ := v.Phase(arm, check.Steady)
	var first bundle.IdentitySample
	var at time.Time
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Identity, Arm: arm}) {
		lines(v, a, func(s bundle.IdentitySample) {
			switch {
			case s.Expected || s.Time.Before(steady.Start) || !at.IsZero():
			case first.PID == 0:
				first = s
			case !s.SameProcess(first):
				at = s.Time
			}
		})
	}
	if at.IsZero() {
		at = steady.End
	}
	return at
}
