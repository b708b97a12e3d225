package verdict

import (
	"cmp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
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

// firstEnd returns when an arm's process was first seen to be gone or replaced, after its steady state began, and no
// fault had ended it. If no look shows that, it returns when the process that a fault had ended was first seen to be
// gone, if none came after it. If the subject never ran, it returns when the steady state ended.
func firstEnd(v bundle.View, arm string) time.Time {
	steady, _ := v.Phase(arm, check.Steady)
	ends, _, _ := question.Ends(v, arm)
	byFault := func(s bundle.IdentitySample) bool {
		return slices.ContainsFunc(ends, func(e bundle.EndedByFault) bool { return e.PID == s.PID && e.StartTicks == s.StartTicks })
	}
	var first, gone bundle.IdentitySample
	var at time.Time
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Identity, Arm: arm}) {
		lines(v, a, func(s bundle.IdentitySample) {
			switch {
			case s.Expected || s.Time.Before(steady.Start) || !at.IsZero():
			case first.PID == 0:
				first = s
			case s.SameProcess(first):
			case !byFault(first):
				at = s.Time
			case s.PID != 0:
				first, gone = s, bundle.IdentitySample{}
			case gone.Time.IsZero():
				gone = s
			}
		})
	}
	return cmp.Or(at, gone.Time, steady.End)
}
