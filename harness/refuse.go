package harness

import (
	"context"
	"github.com/kube-relapse/relapse/harness/cluster"

	"github.com/kube-relapse/relapse/harness/plan"
)

// CapabilityError says what a plan needs and the provider's clusters can't do. Nothing was built or created for it.
type CapabilityError struct{ Err error }

// Error lists all of it.
func (e *CapabilityError) Error() string { return "this can't be run here: " + e.Err.Error() }

// Unwrap gives the reasons.
func (e *CapabilityError) Unwrap() error { return e.Err }

// refuse asks the provider what its clusters can do, and compares that with the plan.
func refuse(ctx context.Context, prov cluster.Provider, p *plan.Plan) error {
	have, err := prov.Capabilities(ctx)
	if err != nil {
		return err
	}
	if err := p.ValidateFor(have); err != nil {
		return &CapabilityError{err}
	}
	return nil
}
