package artifacts

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// Arms with several builds are one program only if all builds are the same, in order.
func TestArmsOfTheSameBuilds(t *testing.T) {
	build := func(digests ...string) (out environment.Build) {
		for _, d := range digests[:len(digests)-1] {
			out.Before = append(out.Before, environment.Build{Digest: d})
		}
		out.Digest = digests[len(digests)-1]
		return out
	}
	for _, c := range []struct {
		name      string
		ill, well environment.Build
		refused   bool
	}{
		{"all the same", build("a", "b"), build("a", "b"), true},
		{"another last", build("a", "b"), build("a", "c"), false},
		{"another first", build("a", "b"), build("c", "b"), false},
		{"one more", build("b"), build("a", "b"), false},
	} {
		ill := plan.Arm{Arm: scenario.Arm{Name: "vulnerable", Role: scenario.Vulnerable, Source: scenario.Source{Version: "v1"}}}
		well := plan.Arm{Arm: scenario.Arm{Name: "fixed", Role: scenario.Fixed, Source: scenario.Source{Version: "v2"}}}
		a := &Artifacts{arms: map[string]environment.Build{armKey(ill.Arm): c.ill, armKey(well.Arm): c.well}}
		if err := a.distinct(&plan.Plan{Trials: []plan.Trial{{Arms: []plan.Arm{ill, well}}}}); (err != nil) != c.refused {
			t.Errorf("%s: %v, want it refused: %v", c.name, err, c.refused)
		}
	}
}
