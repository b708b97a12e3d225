package match

import (
	"context"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Evidence is a part of the evidence of a bundle, which is asked as if there were nothing else.
type Evidence string

// The parts.
const (
	Everything Evidence = "everything"
	Stacks     Evidence = "stacks"
	Logs       Evidence = "logs"
	Metrics    Evidence = "metrics"
	Objects    Evidence = "objects"
)

// Parts lists all parts.
var Parts = []Evidence{Everything, Stacks, Logs, Metrics, Objects}

var madeOf = map[Evidence][]bundle.Kind{
	Stacks:  {bundle.Goroutines1, bundle.Goroutines2, bundle.CPU, bundle.Heap},
	Logs:    {bundle.Logs, bundle.Journal},
	Metrics: {bundle.Metrics, bundle.MetricSamples},
	Objects: {
		bundle.Nodes,
		bundle.Statuses,
		bundle.Events,
		bundle.Leases,
		bundle.Objects,
		bundle.ObjectList,
	},
}

// Trial is a bundle of relapse's own. The outcomes that its arms were judged to have are their labels.
type Trial struct {
	Dir      string // where it lies now: a copy, if it was in an archive
	Place    string // where people find it
	Scenario string
	Subject  string
	arms     []*subject
}

// Trials returns the bundles of relapse's own that lie in paths. They can be asked until done is called. The error is a
// path that can't be opened, or the context's.
func Trials(
	ctx context.Context,
	paths []string,
) (all []*Trial, problems []archive.Problem, done func(), err error) {
	e := &evidence{versions: map[string][]string{}, close: func() {}}
	err = e.read(ctx, paths, nil)
	return e.bundled, e.problems, e.close, err
}

// When is the stretch of a trial whose evidence is asked.
type When int

// The stretches.
const (
	Throughout When = iota
	FromFault       // from the beginning of the fault to the end
	Before          // the baseline, which stands for every phase that a sign may name
)

// Ask answers a scenario's signs for one arm, from part of its evidence in one stretch of the trial. The version of the
// arm, which would decide first, is left out. The second result is false if there is no such arm, or if the arm never
// came to that stretch.
func (t *Trial) Ask(
	s *scenario.Scenario,
	arm string,
	of Evidence,
	when When,
) (Judgment, bool, error) {
	at := slices.IndexFunc(t.arms, func(c *subject) bool { return c.arm == arm })
	if at < 0 {
		return Judgment{}, false, nil
	}
	sub := *t.arms[at]
	v := sub.view.(bundleArm)
	v.kinds = madeOf[of]
	w, ok := v.phase(arm, evidencePhase)
	switch when {
	case FromFault:
		fault, began := v.View.Phase(arm, check.Fault)
		w.Start, ok = fault.Start, ok && began
		v.within = w
	case Before:
		v.within, ok = v.View.Phase(arm, check.Baseline)
		ok, v.asOne = ok && !v.within.End.IsZero(), true
	}
	if !ok {
		return Judgment{}, false, nil
	}
	sub.view = v
	signs, err := sub.signs(s)
	if err != nil {
		return Judgment{}, false, fmt.Errorf(
			"asking the signs of %s of %s: %w",
			s.Metadata.Name,
			t.Place,
			err,
		)
	}
	return weigh(s, &sub, signs, gated{why: "its version was not asked"}), true, nil
}
