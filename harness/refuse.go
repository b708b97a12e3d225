package harness

import (
	"context"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
)

// CapabilityError says what a plan needs that the provider's clusters can't do. Nothing was built or created.
type CapabilityError struct{ Err error }

// Error lists all reasons.
func (e *CapabilityError) Error() string { return "this can't be run here: " + e.Err.Error() }

// Unwrap returns the reasons.
func (e *CapabilityError) Unwrap() error { return e.Err }

// refuse returns an error if the plan needs something that the provider's clusters can't do.
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
