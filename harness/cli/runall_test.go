package cli

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// These scenarios decide by CPU time, and all others may have trials of other scenarios beside them.
func TestWhichScenariosRunAlone(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	var alone []string
	for _, f := range files {
		s, err := scenario.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(s, plan.Options{Provider: s.Spec.RunsOn()[0], Repeat: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if p.RestsOnCPU() {
			alone = append(alone, s.Metadata.Name)
		}
	}
	slices.Sort(alone)
	if diff := cmp.Diff([]string{"fleet-status-churn", "kube-proxy-node-addresses", "listener-busy-wait"}, alone); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
