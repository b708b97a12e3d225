package plan_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// upgraded gives each arm a build before its own.
func upgraded(s *scenario.Spec, from string) {
	for i := range s.Pairs[0].Arms {
		src := &s.Pairs[0].Arms[i].Source
		src.Before = []scenario.Earlier{{Module: src.Module, Package: src.Package, Version: from}}
	}
}

// A candidate stands for the last build of an arm that is upgraded, and the plan says so.
func TestACandidateIsWhatIsUpgradedTo(t *testing.T) {
	s := load(t)
	upgraded(&s.Spec, s.Spec.Version)
	s.Spec.Faults = append(s.Spec.Faults, item("upgrade", "process", `{"action": "replace", "component": "kubelet"}`))
	for _, part := range []string{"stuck", "heap", "cpu"} {
		s.Spec.Health.Without = append(s.Spec.Health.Without, scenario.Omission{Part: part, Why: "it is upgraded"})
	}
	p, err := plan.New(s, plan.Options{Candidates: []plan.Candidate{{Source: &scenario.Source{Binary: "/bin/kubelet"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Trials[0].Arms {
		if got := a.Source.Builds(); len(got) != 2 || got[0].Version != s.Spec.Version || len(got[0].Mutations) != 0 {
			t.Errorf("the builds of %s are %+v", a.Name, got)
		}
	}
	var said strings.Builder
	if err := p.Text(&said); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"then the executable /bin/kubelet", "the candidate stands for the last build; what runs before it is the scenario's"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the plan doesn't say %q:\n%s", want, said.String())
		}
	}
}

// Without faults nothing is upgraded. The null control is planned all the same: its arms keep their first build.
func TestANullControlOfAnUpgradeIsPlanned(t *testing.T) {
	s := load(t)
	upgraded(&s.Spec, "v1.33.0")
	if _, err := plan.New(s, plan.Options{NoFaults: true}); err != nil {
		t.Error(err)
	}
}
