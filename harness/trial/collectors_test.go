package trial

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
)

func TestEveryTrialHasTheBuiltInCollectors(t *testing.T) {
	own := []plan.Collector{{Name: "mine", Kind: "hostPressure"}, {Name: "logs", Kind: "componentLogs"}}
	for placement, want := range map[string]string{
		plan.PlacementNode:     "identity mine logs",
		plan.PlacementWorkload: "identity containerStatuses mine logs",
	} {
		var got []string
		for _, c := range withBuiltIn(own, (&plan.Trial{Placement: placement}).Place()) {
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %v, want %s", placement, got, want)
		}
	}
}
