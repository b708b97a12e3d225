package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A part that is left out needs a reason, and takes its collector with it.
func TestCommonHealthIsLeftOutWithAReason(t *testing.T) {
	s := load(t)
	s.Spec.Health.Without = []scenario.Omission{{Part: "heap", Why: "the fixture grows"}}
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Trials[0].Healed {
		if strings.HasPrefix(c.Name, plan.BuiltIn) {
			got = append(got, c.Name)
		}
	}
	if !slices.Equal(got, []string{"built-in/stuck", "built-in/cpu"}) {
		t.Errorf("%q is asked, want all but the heap", got)
	}
	for _, c := range p.Trials[0].Collectors {
		if slices.Contains(c.Spec.Makes(), bundle.Heap) {
			t.Errorf("the collector %s still makes heap profiles", c.Name)
		}
	}
}
