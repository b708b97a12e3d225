package trial_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
)

// The directory of a run that is killed says at any moment what it is: which plan it follows, and that no trial of it
// counts yet.
func TestRunDirectoryIsBoundFromItsBeginning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "1a2b-x")
	p := &plan.Plan{Schema: plan.Schema, Scenario: "x", Digest: "5ce0", Trials: []plan.Trial{{ID: "001", Pair: "modern"}}}
	run, err := trial.CreateRunDir(dir, "relapse-1a2b", p)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := plan.Sum(p)
	if err != nil {
		t.Fatal(err)
	}
	x, err := bundle.ReadIndex(dir)
	if err != nil || x.Run != "relapse-1a2b" || x.Plan != sum || x.Scenario != "5ce0" || x.Relapse == "" || x.Complete || len(x.Trials) != 0 {
		t.Errorf("%+v, %v", x, err)
	}
	if err := os.MkdirAll(run.Trial("001"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := judge.Run(dir); err == nil || !strings.Contains(err.Error(), "trials/001 is not listed in index.json") {
		t.Errorf("with a trial that the run never began: %v", err)
	}
	if err := os.Remove(run.Trial("001")); err != nil {
		t.Fatal(err)
	}
	if err := run.Complete(); err != nil {
		t.Fatal(err)
	}
	if x, err := bundle.ReadIndex(dir); err != nil || !x.Complete {
		t.Errorf("at the end: %+v, %v", x, err)
	}
}
