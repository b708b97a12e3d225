package match

import (
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// bundleArm is the view of one arm of a bundle of relapse's own, with the trial's phases.
type bundleArm struct {
	bundle.View
	arm    string
	within bundle.Window // only evidence in this window counts, unless the window is zero
	asOne  bool          // every phase is the window within
	kinds  []bundle.Kind // only artifacts of these kinds count; nil for all kinds
}

func (o bundleArm) about([]bundle.Kind) bundle.View { return o }
func (o bundleArm) clock(bundle.Artifact) string    { return "the trial's" }

// Artifacts returns the arm's artifacts, and the objects that the arm shares with others.
func (o bundleArm) Artifacts(q bundle.Query) []bundle.Artifact {
	if q.Arm != o.arm && !(q.Arm == bundle.Shared && q.Kind == bundle.Objects) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.View.Artifacts(q)), func(a bundle.Artifact) bool {
		outside := a.Coverage == nil &&
			(a.Time.Before(o.within.Start) || a.Time.After(o.within.End))
		return len(o.kinds) > 0 && !slices.Contains(o.kinds, a.Kind) ||
			outside && !o.within.Start.IsZero()
	})
}

// Phase returns a phase of the trial, or for evidencePhase the whole trial, cut to the window within.
func (o bundleArm) Phase(arm, phase string) (bundle.Window, bool) {
	if o.asOne {
		return o.within, true
	}
	w, ok := o.phase(arm, phase)
	if !ok || o.within.Start.IsZero() {
		return w, ok
	}
	if w.Start.Before(o.within.Start) {
		w.Start = o.within.Start
	}
	if w.End.IsZero() || w.End.After(o.within.End) {
		w.End = o.within.End
	}
	return w, w.Start.Before(w.End)
}

func (o bundleArm) phase(arm, phase string) (bundle.Window, bool) {
	if phase != evidencePhase {
		return o.View.Phase(arm, phase)
	}
	events := o.Timeline()
	if len(events) == 0 {
		return bundle.Window{}, false
	}
	w := bundle.Window{Start: events[0].Time, End: events[len(events)-1].Time.Add(time.Second)}
	if steady, ok := o.View.Phase(arm, check.Steady); ok { // collectors start with the steady phase
		w.Start = steady.Start
	}
	return w, true
}
