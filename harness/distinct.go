package harness

import (
	"fmt"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// PairError says that the arms of a pair were built and are one program, so that no trial can tell them apart. No cluster was created for it.
type PairError struct {
	Pair, Vulnerable, Fixed string // the pair's name and the arms'
	Digest                  string
}

// Error names the arms.
func (e *PairError) Error() string {
	return fmt.Sprintf("pair %s: %s and %s are the same program (SHA-256 %.12s), so nothing that happens to them tells the bug from its cure",
		e.Pair, e.Vulnerable, e.Fixed, e.Digest)
}

// Hint is what to do next.
func (e *PairError) Hint() string {
	return fmt.Sprintf("give %s a mutation that takes the fix out, or a version without it; --swap %s=%s gives both one build on purpose", e.Vulnerable, e.Vulnerable, e.Fixed)
}

// distinct refuses vulnerable and fixed arms that were built to one program, unless one was given the other's build on purpose.
func (l *Lab) distinct(p *plan.Plan) error {
	for _, t := range p.Trials {
		for _, a := range t.Cells {
			for _, b := range t.Cells {
				if a.Arm.Role != scenario.Vulnerable || b.Arm.Role != scenario.Fixed || a.BuildOf != "" || b.BuildOf != "" {
					continue
				}
				if d := l.arms[armKey(a.Arm)].digest; d != "" && d == l.arms[armKey(b.Arm)].digest {
					return &PairError{Pair: t.Pair, Vulnerable: a.Name, Fixed: b.Name, Digest: d}
				}
			}
		}
	}
	return nil
}
