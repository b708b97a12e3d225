package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// builds is a provider that may build and may not create.
type builds struct {
	clustertest.Provider
	prepared int
	lacks    []string
}

func (p *builds) Prepare(context.Context, cluster.Needs) (map[string]string, error) {
	p.prepared++
	p.lacks = nil
	return nil, nil
}

func (p *builds) Foresee(context.Context, cluster.Needs) (cluster.Foreseen, error) {
	return cluster.Foreseen{Lacks: p.lacks}, nil
}

func (p *builds) Create(context.Context, string, cluster.Topology) (cluster.Cluster, error) {
	return nil, errors.New("a cluster was created")
}

// agentPlan is a plan of so many trials whose only arm is a small fixture of root: nothing else builds quickly.
func agentPlan(t *testing.T, root string, trials int) *plan.Plan {
	t.Helper()
	for name, text := range map[string]string{"go.mod": "module example.org/agent\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() {}\n"} {
		file := filepath.Join(root, "fixtures", "agent", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Load("../scenarios/scheduler-nil-pointer/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{Arms: []string{"fixed"}, Repeat: trials, Provider: providers.Kind})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Trials {
		p.Trials[i].Arms[0].Source = scenario.Source{Fixture: "agent"}
	}
	return p
}

// Build builds the arms, lets the provider get its parts, and does nothing else. What it lacked is said beforehand.
func TestBuild(t *testing.T) {
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	wanted := agentPlan(t, root, 2)
	var heard []string
	p := &builds{lacks: []string{"the node image of v1.34.4"}}
	kept := t.TempDir()
	compiled, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output() // or all is compiled anew
	if err = errors.Join(err, os.Symlink(strings.TrimSpace(string(compiled)), filepath.Join(kept, "go-build"))); err != nil {
		t.Fatal(err)
	}
	open := func() *artifacts.Artifacts {
		made, err := artifacts.Open(artifacts.Options{Root: root, CacheDir: kept,
			Events: event.NewStream(event.SinkFunc(func(e event.Event) {
				if e.Type == event.Stage {
					heard = append(heard, e.Message)
				}
			}))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = made.Close() })
		return made
	}
	f := open().Forecast(t.Context(), wanted, p, wanted.Needs(nil))
	if len(f.Missing) != 2 || f.Missing[1].What != "the node image of v1.34.4" {
		t.Fatalf("it foresees %+v", f)
	}
	if _, known := f.Takes(); known {
		t.Error("how long a node image takes is taken for known")
	}
	for range 2 {
		got, err := Build(t.Context(), Options{Plan: wanted, Provider: p, Artifacts: open(), Out: out})
		if err != nil || len(got) != 1 || got[0].Pair != wanted.Trials[0].Pair || got[0].Arm != "fixed" || len(got[0].Digest) != 64 {
			t.Fatalf("it built %+v, %v", got, err)
		}
		if _, err := os.Stat(got[0].Path); err != nil {
			t.Error(err)
		}
	}
	if p.prepared != 2 {
		t.Errorf("the provider got its parts %d times, want 2", p.prepared)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a run directory")
	}
	const begins = "building the arms and getting what the clusters are made of; "
	if len(heard) != 2 || !strings.HasPrefix(heard[0], begins+"how long it takes is unknown (no build of it from scratch is recorded on this host: example.org/agent@v0.0.0 (agent) from ") ||
		!strings.HasSuffix(heard[0], "; it isn't in the container engine: the node image of v1.34.4)") ||
		!slices.Equal(heard[1:], []string{begins + "all of it is in the cache"}) {
		t.Errorf("it announced %q", heard)
	}
}
