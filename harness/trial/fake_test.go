package trial

import (
	"context"
	"testing"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// fakeArtifacts have a build for each arm, which is nothing but the arm's name.
type fakeArtifacts struct{}

func (fakeArtifacts) Of(arm scenario.Arm) (environment.Build, error) {
	return environment.Build{Path: "/nowhere/" + arm.Name, Digest: arm.Name}, nil
}
func (fakeArtifacts) Fixture(name string) string { return "/nowhere/" + name }

// fakeEnvironment makes a trial's clusters in memory; they end with the test.
func fakeEnvironment(t *testing.T, tr plan.Trial, p *clustertest.Provider, events *event.Stream) *environment.Environment {
	t.Helper()
	env, err := environment.Create(t.Context(), environment.Options{
		Run: "relapse-test", Plan: &plan.Plan{Trials: []plan.Trial{tr}}, Trial: tr, Artifacts: fakeArtifacts{}, Provider: p, Events: events,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Delete(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return env
}
