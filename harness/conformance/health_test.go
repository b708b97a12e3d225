package conformance_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// builtIn returns the names of the common health checks in a list.
func builtIn(list []plan.Check) (out []string) {
	for _, c := range list {
		if strings.HasPrefix(c.Name, plan.BuiltIn) {
			out = append(out, c.Name)
		}
	}
	return out
}

// Every trial of every scenario looks for an incident that a fix only moved, in what it might leave behind:
// goroutines, memory and CPU use.
func TestEveryTrialAsksTheCommonHealth(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("there are %d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		s, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, without := range []bool{false, true} {
			p, err := plan.New(s, plan.Options{Pair: plan.AllPairs, NoFaults: without})
			if err != nil {
				t.Fatal(err)
			}
			for _, trial := range p.Trials {
				want := []string{"built-in/stuck", "built-in/heap", "built-in/cpu"}
				for _, left := range s.Spec.Health.Without {
					want = slices.DeleteFunc(want, func(name string) bool { return name == plan.BuiltIn+left.Part })
				}
				if got := builtIn(trial.Healed); !slices.Equal(got, want) {
					t.Errorf("%s, pair %s: %q is asked, want %q", p.Scenario, trial.Pair, got, want)
				}
				made := map[bundle.Kind]int{}
				for _, c := range trial.Collectors {
					for _, k := range c.Spec.Makes() {
						if c.Component == "" && c.Every.Duration > 0 && c.Every.Duration <= 30*time.Second {
							made[k]++
						}
					}
				}
				if made[bundle.Goroutines2] != 1 || made[bundle.Heap] != 1 {
					t.Errorf("%s, pair %s: every 30 s or more often dumps are made by %d collectors and heap profiles by %d, want one each", p.Scenario, trial.Pair,
						made[bundle.Goroutines2], made[bundle.Heap])
				}
			}
		}
	}
}
