package verdict

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

var began = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func second(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }

// steadyState is a trial of a candidate and a control. The control's steady state ends after 20 s, the candidate's
// after 120.
type steadyState struct {
	t *testing.T
	w *bundle.Writer
}

func (s steadyState) phase(at int, arm, phase string) {
	s.w.Emit(event.Event{Type: event.Phase, Time: second(at), Arm: arm, Message: phase})
}

// nodes records changes of a node's condition, watched for 120 s.
func (s steadyState) nodes(arm string, changes map[int]string, order ...int) {
	s.t.Helper()
	st, err := s.w.Stream(bundle.Meta{Kind: bundle.Nodes, Arm: arm, Time: began}, "jsonl")
	if err != nil {
		s.t.Fatal(err)
	}
	st.Alive(second(0))
	for _, at := range order {
		if err := st.JSON(bundle.NodeStatus{Time: second(at), Status: changes[at]}); err != nil {
			s.t.Fatal(err)
		}
	}
	st.Alive(second(120))
	if err := st.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// health records an answer to /readyz every step seconds up to the end of a steady state.
func (s steadyState) health(arm string, code, step, end int) {
	s.t.Helper()
	st, err := s.w.Stream(bundle.Meta{Kind: bundle.Health, Arm: arm, Time: began}, "jsonl")
	if err != nil {
		s.t.Fatal(err)
	}
	for at := 1; at < end; at += step {
		if err := st.JSON(bundle.HealthSample{Time: second(at), Done: second(at), Path: "/readyz", Code: code}); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func TestWhoNeverGotReady(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(steadyState)
		want bool
	}{
		{"Ready by the build that the node began with only", func(s steadyState) {
			s.nodes("candidate", map[int]string{0: "True", 45: "Unknown"}, 0, 45)
			s.nodes("fixed", map[int]string{0: "True"}, 0)
		}, true},
		{"not Ready at all", func(s steadyState) {
			s.nodes("candidate", map[int]string{0: "False"}, 0)
			s.nodes("fixed", map[int]string{0: "True"}, 0)
		}, true},
		{"Ready, and another check is not met", func(s steadyState) {
			s.nodes("candidate", map[int]string{0: "False", 10: "True"}, 0, 10)
			s.nodes("fixed", map[int]string{0: "True"}, 0)
		}, false},
		{"the control isn't either", func(s steadyState) {
			s.nodes("candidate", map[int]string{0: "False"}, 0)
			s.nodes("fixed", map[int]string{0: "False"}, 0)
		}, false},
		{"nobody watched", func(s steadyState) { s.nodes("fixed", map[int]string{0: "True"}, 0) }, false},
		{"it never answered", func(s steadyState) {
			s.health("candidate", 0, 5, 120)
			s.health("fixed", 200, 5, 20)
		}, true},
		{"it answered with an error", func(s steadyState) {
			s.health("candidate", 500, 5, 120)
			s.health("fixed", 200, 5, 20)
		}, true},
		{"it answered", func(s steadyState) {
			s.health("candidate", 200, 5, 120)
			s.health("fixed", 200, 5, 20)
		}, false},
		{"it was asked too seldom", func(s steadyState) {
			s.health("candidate", 0, 30, 120)
			s.health("fixed", 200, 5, 20)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
			if err != nil {
				t.Fatal(err)
			}
			s := steadyState{t, w}
			s.phase(0, "", check.Steady)
			c.fill(s)
			s.phase(20, "fixed", check.Baseline)
			s.phase(120, "candidate", bundle.EndPhase)
			arms := []plan.Arm{{Arm: scenario.Arm{Name: "fixed"}}, {Arm: scenario.Arm{Name: "candidate"}}}
			if got := neverReady(w.View(), plan.Trial{Arms: arms}, arms[1]); got != c.want {
				t.Errorf("never Ready: %t, want %t", got, c.want)
			}
			if neverReady(w.View(), plan.Trial{Arms: arms}, arms[0]) {
				t.Error("the control was never Ready")
			}
		})
	}
}

// Arms that share their nodes are told by the containers of their own pods.
func TestWhosePodNeverGotReady(t *testing.T) {
	for _, c := range []struct {
		name  string
		ready []bool // of the candidate's container, one each 30 s
		until int
		want  bool
		pods  []string // of these statuses; the same for all by default
	}{
		{"never", []bool{false, false, false}, 120, true, nil},
		{"at last", []bool{false, false, true}, 120, false, nil},
		{"once, and it never got on", []bool{true, false, false}, 120, true, nil},
		{"nobody watched to the end", []bool{false, false}, 60, false, nil},
		{"Ready, and the end of the pod before it is told later", []bool{true, true, false}, 120, false, []string{"before", "after", "before"}},
		{"a pod that went while it was Ready, and the one after it isn't", []bool{true, false, false}, 120, true, []string{"before", "after", "after"}},
		{"neither of two pods", []bool{true, false, false}, 120, true, []string{"before", "after", "before"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
			if err != nil {
				t.Fatal(err)
			}
			s := steadyState{t, w}
			s.phase(0, "", check.Steady)
			s.nodes("candidate", map[int]string{0: "True"}, 0) // of the node that both share
			s.nodes("fixed", map[int]string{0: "True"}, 0)
			pods := append(c.pods, "", "", "")
			for arm, all := range map[string][]bool{"fixed": {true}, "candidate": c.ready} {
				st, err := w.Stream(bundle.Meta{Kind: bundle.Statuses, Arm: arm, Component: "agent", Time: began}, "jsonl")
				if err != nil {
					t.Fatal(err)
				}
				st.Alive(second(0))
				for i, ready := range all {
					if err := st.JSON(bundle.ContainerStatus{Time: second(30 * i), Pod: pods[i], Container: "agent", Ready: ready}); err != nil {
						t.Fatal(err)
					}
				}
				st.Alive(second(c.until))
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s.phase(20, "fixed", check.Baseline)
			s.phase(120, "candidate", bundle.EndPhase)
			trial := plan.Trial{Placement: plan.PlacementWorkload, Subject: "agent", Arms: []plan.Arm{{Arm: scenario.Arm{Name: "fixed"}}, {Arm: scenario.Arm{Name: "candidate"}}}}
			if got := neverReady(w.View(), trial, trial.Arms[1]); got != c.want {
				t.Errorf("never Ready: %t, want %t", got, c.want)
			}
			if neverReady(w.View(), trial, trial.Arms[0]) {
				t.Error("the control was never Ready")
			}
		})
	}
}
