package artifacts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// What was carried stands in for what was prepared, with the paths of the other machine.
func TestCarriedStandsInForArtifacts(t *testing.T) {
	dir := t.TempDir()
	program := func(name string) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
		return at
	}
	arm := scenario.Arm{Name: "fixed", Role: scenario.Fixed, Source: scenario.Source{Version: "v1"}}
	p := &plan.Plan{Trials: []plan.Trial{{ID: "001", Arms: []plan.Arm{{Arm: arm}}}}}
	a := &Artifacts{
		arms:     map[string]environment.Build{armKey(arm): {Path: program("etcd"), Digest: "d2", Before: []environment.Build{{Path: program("older"), Digest: "d1"}}, Constants: map[string]int64{"n": 7}}},
		fixtures: map[string]string{"agent": program("agent")},
		asked:    map[string]map[string]string{programsKey("k8s.io/kubernetes", "v1.36.3", []string{"cmd/x"}): {"x": program("x")}},
	}
	c, files, err := a.Carry(p, "/relapse/programs")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	there, err := ReadCarried(raw)
	if err != nil {
		t.Fatal(err)
	}
	b, err := there.Of(arm)
	if err != nil || b.Digest != "d2" || files[b.Path] != filepath.Join(dir, "etcd") || b.Constants["n"] != 7 || files[b.Before[0].Path] != filepath.Join(dir, "older") {
		t.Errorf("the arm is %+v, %v", b, err)
	}
	built, err := there.BuildPrograms(t.Context(), "k8s.io/kubernetes", "v1.36.3", "cmd/x")
	if err != nil || files[built["x"]] != filepath.Join(dir, "x") {
		t.Errorf("the clusters' programs are %v, %v", built, err)
	}
	if at, err := there.BuildFixture(t.Context(), "agent"); err != nil || files[at] != filepath.Join(dir, "agent") || there.Fixture("agent") != at {
		t.Errorf("the fixture is %s, %v", at, err)
	}
	if len(files) != 4 {
		t.Errorf("%d files are carried, want 4: %v", len(files), files)
	}
	for want, err := range map[string]error{
		"the programs of k8s.io/kubernetes v1.35.0 cmd/x were not carried here": second(there.BuildPrograms(t.Context(), "k8s.io/kubernetes", "v1.35.0", "cmd/x")),
		"the fixture other was not carried here":                                second(there.BuildFixture(t.Context(), "other")),
		"the arm other was not carried here":                                    second(there.Of(scenario.Arm{Name: "other"})),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
