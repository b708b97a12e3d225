package artifacts

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// A candidate whose own numbers ask for a flood that can't be is refused once it is built, with the next step, and
// never an error of ours after a cluster was made for it.
func TestACandidateThatNoFaultIsLargeEnoughForIsRefused(t *testing.T) {
	constants := func(capacity int64, threshold time.Duration) map[string]int64 {
		return map[string]int64{"channelCapacity": capacity, "relistThreshold": int64(threshold)}
	}
	arm := func(role string) plan.Arm {
		return plan.Arm{Arm: scenario.Arm{Name: role, Role: role, Source: scenario.Source{Dir: "/src/" + role}}}
	}
	for _, tc := range []struct {
		name           string
		given, control map[string]int64
		refused, err   string
	}{
		{"like the others", constants(1000, 3*time.Minute), constants(1000, 3*time.Minute), "", ""},
		{"a larger channel", constants(5000, 3*time.Minute), constants(1000, 3*time.Minute), "", ""},
		{"a longer threshold", constants(1000, 15*time.Minute), constants(1000, 3*time.Minute), "", ""},
		{"nothing is known of it", nil, constants(1000, 3*time.Minute), "", ""},
		{
			"20 minutes", constants(1000, 20*time.Minute), constants(1000, 3*time.Minute),
			"candidate /src/candidate: computing fault flood: one relist that outlasts the relistThreshold of 20m0s and still overflows the channelCapacity of 1000 would take", "",
		},
		{
			"a huge channel", constants(1<<40, 3*time.Minute), constants(1000, 3*time.Minute), "still overflows the channelCapacity of 1099511627776 would take", "",
		},
		{"a control can't be tried either", constants(1000, 20*time.Minute), constants(1000, 20*time.Minute), "", "computing fault flood: one relist that outlasts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &plan.Plan{Trials: []plan.Trial{{
				Arms: []plan.Arm{arm(scenario.Vulnerable), arm(scenario.Candidate)},
				Faults: []plan.Fault{
					injected(t, "slow-runtime", "criLatency", `{"latency":"40ms"}`),
					injected(t, "flood", "containerFlood", `{"outlast":"relistThreshold","overflow":"channelCapacity"}`),
				},
			}}}
			a := &Artifacts{arms: map[string]environment.Build{
				armKey(p.Trials[0].Arms[0].Arm): {Constants: tc.control}, armKey(p.Trials[0].Arms[1].Arm): {Constants: tc.given},
			}}
			err := a.refuseFaults(p)
			var refused *candidate.Error
			switch {
			case tc.refused != "":
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.refused) || !strings.Contains(refused.Hint, "set its constants back") {
					t.Errorf("%v, want a refusal: %s", err, tc.refused)
				}
			case tc.err != "":
				if errors.As(err, &refused) || err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want the error %s", err, tc.err)
				}
			case err != nil:
				t.Error(err)
			}
		})
	}
}

func injected(t *testing.T, name, kind, spec string) plan.Fault {
	t.Helper()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, kind, []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	return plan.Fault{ItemHeader: scenario.ItemHeader{Name: name, Kind: kind}, Spec: f}
}
