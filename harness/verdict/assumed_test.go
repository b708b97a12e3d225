package verdict

import (
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func TestWhatIsAssumedOfAnArmIsSaid(t *testing.T) {
	tr := plan.Trial{Cells: []plan.Cell{{Name: "fixed"}, {Name: "candidate", Arm: scenario.Arm{Name: "candidate"}}}}
	w := bundle.World{
		Computed: map[string]string{"flood.pods": "1438", "flood.planned": "up to 15818 events"},
		Cells: []bundle.CellWorld{
			{Cell: "fixed", Constants: map[string]int64{"channelCapacity": 1000}},
			{Cell: "candidate", Assumed: map[string]int64{"relistThreshold": int64(3 * time.Minute), "channelCapacity": 8000}},
		},
	}
	want := []string{"constants of candidate are not known, and these are assumed: channelCapacity 8000, relistThreshold 3m0s; " +
		"it was tried with 9633 state changes delivered from 10:04:00 on, and nothing is said of more"}
	arms := []Arm{{Name: "fixed"}, {Name: "candidate", Exposure: []check.Finding{{Met: check.Met, AnyOf: []check.Finding{
		{Met: check.Met, Tried: "9633 state changes delivered from 10:04:00 on"}, {Met: check.NotMet, Tried: "what did not suffice"},
	}}}}}
	if got := assumed(w, tr, arms); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Cells[1].Assumed = nil
	if got := assumed(w, tr, arms); got != nil {
		t.Errorf("nothing is assumed, and it says %q", got)
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
