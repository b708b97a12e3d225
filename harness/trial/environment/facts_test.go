package environment_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// What is known only after the plan was made is recorded beside what the plan says: verdicts list both.
func TestFactsHaveWhatWeakensATrialBesideItsPlan(t *testing.T) {
	tr := plan.Trial{ID: "001", Deviates: plan.Deviations{{Code: plan.CodeOption, Text: "fault slow is left out"}}}
	env, err := environment.Create(t.Context(), environment.Options{Run: "relapse-test", Plan: &plan.Plan{}, Trial: tr,
		Provider: &clustertest.Provider{}, Deviates: []string{"the scheduler was built here"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fault slow is left out", "the scheduler was built here"}, env.Facts().Deviates); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
