package plan_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Before anybody is asked, the most that can be published is what the disk needn't have room to build.
func TestSupposePublishedDecidesAsIfAllCouldBeHad(t *testing.T) {
	arm := func(name string, change func(*scenario.Source)) plan.Arm {
		s := scenario.Source{Module: "k8s.io/kubernetes", Version: "v1.33.1", Package: "k8s.io/kubernetes/cmd/kube-apiserver"}
		change(&s)
		return plan.Arm{Arm: scenario.Arm{Name: name, Source: s}}
	}
	asIs := func(*scenario.Source) {}
	mutated := func(s *scenario.Source) { s.Mutations = []scenario.Mutation{{Kind: "unguard"}} }
	raced := func(s *scenario.Source) { s.Race = true }
	for _, c := range []struct {
		name     string
		first    func(*scenario.Source)
		programs *plan.Programs
		from     string
		supposed [2]bool // of the first arm and of one that is as it was published
		some     bool
	}{
		{"all may be published", asIs, nil, plan.Published, [2]bool{true, true}, true},
		{"one has a mutation", mutated, nil, plan.Built, [2]bool{}, true},
		{"one has a mutation, and published ones are insisted on", mutated, &plan.Programs{From: plan.Published}, plan.Published, [2]bool{false, true}, true},
		{"all are to be built", asIs, &plan.Programs{From: plan.Built}, plan.Built, [2]bool{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &plan.Plan{Programs: c.programs, Trials: []plan.Trial{{Subject: "kube-apiserver", Arms: []plan.Arm{arm("vulnerable", c.first), arm("fixed", asIs)}}}}
			got := p.SupposePublished()
			if got.Programs == nil || got.Programs.From != c.from {
				t.Errorf("it is decided that %v, want %s", got.Programs, c.from)
			}
			for i, want := range c.supposed {
				if has := got.Trials[0].Arms[i].Source.Release != nil; has != want {
					t.Errorf("arm %s is supposed to be published: %t, want %t", got.Trials[0].Arms[i].Name, has, want)
				}
				if p.Trials[0].Arms[i].Source.Release != nil || p.Programs != c.programs {
					t.Errorf("the plan itself was changed: %+v", p)
				}
			}
			if p.SomePublished() != c.some {
				t.Errorf("some may be published: %t, want %t", p.SomePublished(), c.some)
			}
		})
	}
	none := &plan.Plan{Trials: []plan.Trial{{Subject: "kube-apiserver", Arms: []plan.Arm{arm("vulnerable", mutated), arm("fixed", raced)}}}}
	if none.SomePublished() {
		t.Error("a mutation and a race detector may be published")
	}
}
