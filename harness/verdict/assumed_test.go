package verdict

import (
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func TestWhatIsAssumedOfAnArmIsSaid(t *testing.T) {
	tr := plan.Trial{Arms: []plan.Arm{{Arm: scenario.Arm{Name: "fixed"}}, {Arm: scenario.Arm{Name: "candidate"}}}}
	w := bundle.World{
		Computed: map[string]string{"flood.pods": "1438", "flood.planned": "up to 15818 events"},
		Arms: []bundle.ArmWorld{
			{Arm: "fixed", Constants: map[string]int64{"channelCapacity": 1000}},
			{Arm: "candidate", Assumed: map[string]int64{"relistThreshold": int64(3 * time.Minute), "channelCapacity": 8000}},
		},
	}
	want := []string{"constants of candidate are not known, and these are assumed: channelCapacity 8000, relistThreshold 3m0s; " +
		"what was tried on it: 9633 state changes delivered from 10:04:00 on"}
	arms := []Arm{{Name: "fixed"}, {Name: "candidate", Exposure: []check.Finding{{Met: check.True, AnyOf: []check.Finding{
		{Met: check.True, Tried: "9633 state changes delivered from 10:04:00 on"}, {Met: check.False, Tried: "what did not suffice"},
	}}}}}
	if got := assumed(w, tr, arms); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Arms[1].Assumed = nil
	if got := assumed(w, tr, arms); got != nil {
		t.Errorf("nothing is assumed, and it says %q", got)
	}
}

// A larger buffer survives what is smaller than it: the verdict says how much that was.
func TestWhatAnArmSurvivedIsSaid(t *testing.T) {
	const with = "20 failed calls that left at least 919 of 1001 items each"
	tried := []check.Finding{{Met: check.True, AnyOf: []check.Finding{{Met: check.False, Tried: "none"}, {Met: check.True, Tried: with}}}}
	is := func(name, role string, o Outcome) Arm {
		return Arm{Name: name, Role: role, Outcome: o, Exposure: tried}
	}
	vulnerable, fixed := is("vulnerable", scenario.Vulnerable, Reproduced), is("fixed", scenario.Fixed, NotReproduced)
	w := bundle.World{Arms: []bundle.ArmWorld{{Arm: "candidate", Assumed: map[string]int64{"channelCapacity": 8000}}}}
	for _, c := range []struct {
		name    string
		judged  []Arm
		planned []plan.Arm
		want    []string
	}{
		{"the fixed arm", []Arm{vulnerable, fixed}, nil, []string{"what was tried on fixed: " + with}},
		{"the candidate alone", []Arm{vulnerable, fixed, is("candidate", scenario.Candidate, NotReproduced)}, nil, []string{"what was tried on candidate: " + with}},
		{"one that shows it", []Arm{vulnerable, fixed, is("candidate", scenario.Candidate, Reproduced)}, nil, nil},
		{"one of which it is said with what is assumed", []Arm{vulnerable, fixed, is("candidate", scenario.Candidate, NotReproduced)},
			[]plan.Arm{{Arm: scenario.Arm{Name: "candidate"}}}, nil},
		{"nothing was measured", []Arm{{Name: "fixed", Role: scenario.Fixed, Outcome: NotReproduced}}, nil, nil},
	} {
		if got := survived(w, plan.Trial{Arms: c.planned}, c.judged); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestArmsOfOneSource(t *testing.T) {
	published := scenario.Source{Module: "k8s.io/kubernetes", Version: "v1.34.4", Package: "k8s.io/kubernetes/cmd/kubelet"}
	fork, tree := published, published
	fork.Fork, tree.Dir = "example.org/kubernetes@v1.34.4", "/src"
	for _, c := range []struct {
		name  string
		other scenario.Source
		want  bool
	}{
		{"the same", published, true}, {"a fork", fork, false}, {"a tree", tree, false},
		{"an image", scenario.Source{Image: "kubelet:dev", Version: "v1.34.4"}, false},
	} {
		if got := sameSource(published, c.other); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
