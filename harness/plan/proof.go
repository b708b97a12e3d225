package plan

import (
	"errors"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// addProofs adds to the exposure, for each fault that counts as in force before its subject is seen to meet it, the check
// that the subject did.
func (t *Trial) addProofs() error {
	var errs []error
	for _, f := range t.Faults {
		p, ok := f.Spec.(fault.Prover)
		if !ok {
			continue
		}
		kind, spec := p.Proof(f.Name)
		if kind == "" {
			continue
		}
		name := BuiltIn + f.Name + "-met"
		c, err := decode[check.Check](kinds.Check, kind, name, spec)
		errs = append(errs, err)
		t.Exposure = append(t.Exposure, Check{
			Spec: c,
			CheckHeader: scenario.CheckHeader{
				Name:  name,
				Kind:  kind,
				Phase: check.Fault,
				After: orZero(nil),
			},
		})
	}
	return errors.Join(errs...)
}
