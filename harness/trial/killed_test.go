package trial_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// killsFirst is the scenario with a fault that makes the subject another process before etcd is slow. "flags" does so
// twice: to give the subject flags, and to take them.
func killsFirst(t *testing.T, action string) *scenario.Scenario {
	s := slowEtcd(t)
	slow := s.Spec.Faults[0]
	slow.After = &scenario.After{Name: action, Plus: &metav1.Duration{Duration: 10 * time.Second}}
	end := scenario.Item{ItemHeader: scenario.ItemHeader{Name: action, Kind: "process", Target: slow.Target},
		Spec: json.RawMessage(`{"action":"` + action + `","component":"kube-apiserver","ready":"1m"}`)}
	if action == "flags" {
		end.Duration = &metav1.Duration{Duration: 5 * time.Second}
		end.Spec = json.RawMessage(`{"action":"restart","component":"kube-apiserver","ready":"1m","flags":{"v":4}}`)
	}
	s.Spec.Faults = []scenario.Item{end, slow}
	for _, part := range []string{scenario.HealthStuck, scenario.HealthHeap, scenario.HealthCPU} {
		s.Spec.Health.Without = append(s.Spec.Health.Without, scenario.Omission{Part: part, Why: "it becomes another process"})
	}
	s.Spec.Healed = slices.DeleteFunc(s.Spec.Healed, func(c scenario.Check) bool { return c.Kind == "nothingStuck" })
	return s
}

// A subject that a fault made another process is judged as ever; one that also ends of itself is broken.
func TestASubjectThatAFaultEnds(t *testing.T) {
	for action, ends := range map[string]int{"kill": 1, "restart": 1, "flags": 2} {
		inBubble(t, action, func(t *testing.T) {
			r := newRunOf(t, killsFirst(t, action), map[string]string{"vulnerable": leaks, "fixed": "", scenario.Candidate: crashes}, plan.Options{})
			if err := r.trial(t.Context(), t, 0); err != nil {
				t.Fatal(err)
			}
			v := r.judge(t, 0)
			if got := r.outcomes("vulnerable", "fixed", scenario.Candidate); got != "Reproduced NotReproduced Broken" || v.Verdict != verdict.VerdictBroken {
				t.Errorf("it is %s: %s", v.Verdict, got)
			}
			if !r.says(event.Warning, "its subject restarted, which no check of the signature explains, so it isn't waited for") {
				t.Error("it is not said of the candidate that it restarted")
			}
			for _, a := range v.Arms[:2] {
				i := slices.IndexFunc(a.Identity, func(f check.Finding) bool { return f.Name == verdict.CheckProcess })
				for pid := 201; pid < 201+ends; pid++ {
					if seen := a.Identity[i].Seen; !strings.Contains(seen, fmt.Sprintf("; %s ended process %d at ", action, pid)) ||
						!strings.Contains(seen, fmt.Sprintf("; process %d started at tick %d", pid+1, pid+1)) {
						t.Errorf("of %s it is said: %s", a.Name, seen)
					}
				}
			}
			sealed, err := bundle.Open(r.dir.Trial("001"))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(sealed.Artifacts(bundle.Query{Kind: bundle.EndedProcess})); n != 3*ends {
				t.Errorf("%d ended processes were recorded, want %d of each arm", n, ends)
			}
		})
	}
}
