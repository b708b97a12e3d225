package artifacts

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/internal/clustertest"
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

// asks is a provider that needs a program for its clusters.
type asks struct{ clustertest.Provider }

func (*asks) Prepare(ctx context.Context, n cluster.Needs) (map[string]string, error) {
	got, err := n.Builder.BuildPrograms(ctx, "k8s.io/kubernetes", "v1.36.3", "cmd/x")
	return map[string]string{"x": got["x"]}, err
}

// Whoever makes clusters of what was carried takes it from there, and verdicts name how it had been made.
func TestClustersTakeWhatWasCarried(t *testing.T) {
	c := &Carried{
		Programs: map[string]map[string]string{programsKey("k8s.io/kubernetes", "v1.36.3", []string{"cmd/x"}): {"x": "/relapse/x"}},
		Parts:    "built from source",
	}
	got, err := c.Prepare(t.Context(), &plan.Plan{}, &asks{})
	if want := map[string]string{"x": "/relapse/x", "clusterPrograms": "built from source"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("the versions are %v, %v; want %v", got, err, want)
	}
	if _, err := (&Carried{}).Prepare(t.Context(), &plan.Plan{}, &asks{}); err == nil || !strings.Contains(err.Error(), "were not carried here") {
		t.Errorf("without the program: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
