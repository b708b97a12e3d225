package artifacts

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// PairError says that the arms of a pair became the same program, so that no trial can tell them apart. No cluster was
// created.
type PairError struct {
	Pair, Vulnerable, Fixed string // the pair's name and the arms'
	Digest                  string
}

// Error returns the reason, with the names of the arms.
func (e *PairError) Error() string {
	return fmt.Sprintf(
		"pair %s: %s and %s are the same program (SHA-256 %.12s), so nothing that happens to them "+
			"tells the bug from its cure",
		e.Pair,
		e.Vulnerable,
		e.Fixed,
		e.Digest,
	)
}

// Hint returns what to do next.
func (e *PairError) Hint() string {
	return fmt.Sprintf(
		"give %s a mutation that takes the fix out, or a version without it; --swap %s=%s gives both "+
			"one build on purpose",
		e.Vulnerable,
		e.Vulnerable,
		e.Fixed,
	)
}

// distinct refuses a vulnerable and a fixed arm that became the same program, unless one was given the other's build on
// purpose.
func (a *Artifacts) distinct(p *plan.Plan) error {
	for _, t := range p.Trials {
		for _, ill := range t.Arms {
			for _, well := range t.Arms {
				if ill.Role != scenario.Vulnerable || well.Role != scenario.Fixed || ill.BuildOf != "" ||
					well.BuildOf != "" {
					continue
				}
				if d := a.arms[armKey(ill.Arm)].Digest; d != "" && sameBuilds(a.arms[armKey(ill.Arm)], a.arms[armKey(well.Arm)]) {
					return &PairError{Pair: t.Pair, Vulnerable: ill.Name, Fixed: well.Name, Digest: d}
				}
			}
		}
	}
	return nil
}

// sameBuilds reports whether two arms run the same programs one after the other.
func sameBuilds(a, b environment.Build) bool {
	return slices.EqualFunc(
		a.All(),
		b.All(),
		func(a, b environment.Build) bool { return a.Digest == b.Digest },
	)
}

// refuseFaults computes every trial's faults from its arms' constants, so that an impossible fault is refused before
// a cluster exists.
func (a *Artifacts) refuseFaults(p *plan.Plan) error {
	for _, t := range p.Trials {
		var given *scenario.Arm
		var all, controls []map[string]int64
		for _, c := range t.Arms {
			constants := a.arms[armKey(c.Arm)].Constants
			all = append(all, constants)
			if c.Role == scenario.Candidate {
				given = &c.Arm
			} else {
				controls = append(controls, constants)
			}
		}
		err := computable(t, all)
		var tooLarge *fault.TooLargeError
		if errors.As(err, &tooLarge) && given != nil && (len(controls) == 0 || computable(t, controls) == nil) {
			return &candidate.Error{Given: describe(given.Source), Err: err,
				Hint: "set its constants back to those of the other arms and run it again: a larger number only " +
					"needs a larger fault, and what is judged is how it goes on from there",
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// computable returns an error if the faults of a trial can't be computed from constants.
func computable(t plan.Trial, constants []map[string]int64) error {
	var all []fault.Fault
	for _, f := range t.Faults {
		all = append(all, f.Spec)
	}
	for _, f := range t.Faults {
		if c, ok := f.Spec.(fault.Computer); ok {
			if _, _, err := c.Compute(constants, all); err != nil {
				return scenario.InField(
					fmt.Errorf("computing fault %s: %w", f.Name, err),
					"faults",
					f.Name,
				)
			}
		}
	}
	return nil
}
