package verdict_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// served is a listener's trial of 60 s each: so many CPUs in the baseline and from the fault on, and so many requests a
// second, by its own count, from the fault on.
func served(t *testing.T, before, after, requests float64) bundle.View {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	must(err)
	began := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	must(w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: "fixed"}}}))
	for i, phase := range []string{check.Baseline, check.Fault, check.Recovery, bundle.EndPhase} {
		w.Emit(event.Event{Time: at(60 * i), Type: event.Phase, Message: phase})
	}
	stream := func(kind bundle.Kind, arm string, line func(s int) any) {
		t.Helper()
		st, err := w.Stream(bundle.Meta{Kind: kind, Arm: arm, Time: began}, "jsonl")
		must(err)
		for s := 0; s <= 180; s += 2 {
			must(st.JSON(line(s)))
		}
		st.Alive(at(0))
		st.Alive(at(180))
		must(st.Close())
	}
	grown := func(s int, first, then float64) float64 {
		return first*float64(min(s, 60)) + then*float64(max(0, s-60))
	}
	stream(bundle.Identity, "fixed", func(s int) any {
		return bundle.IdentitySample{Time: at(s), PID: 7, StartTicks: 9, CPUSeconds: 1 + grown(s, before, after),
			Limits: &bundle.CPULimits{Known: true, Cores: 16}}
	})
	stream(bundle.Host, bundle.Shared, func(s int) any { return bundle.HostSample{Time: at(s), Cores: 16, Running: 6} })
	stream(bundle.MetricSamples, "fixed", func(s int) any {
		return bundle.MetricSample{Time: at(s), Done: at(s), Name: "listener_http_requests_total", Value: grown(s, 2, requests)}
	})
	return w.View()
}

func TestWhichCPUAListenerMayTake(t *testing.T) {
	s, err := scenario.Load("../../scenarios/listener-busy-wait/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked := slices.DeleteFunc(slices.Concat(p.Trials[0].Signature, p.Trials[0].Healed), func(c plan.Check) bool {
		return !slices.Contains([]string{"busy", "at-rest", "at-rest-again"}, c.Name)
	})
	for _, tc := range []struct {
		name                    string
		before, after, requests float64
		busy, atRest            check.Truth
	}{
		{"the fix", 0.002, 0.04, 2, check.False, check.True},
		{"the fix on a slow machine", 0.02, 0.08, 2, check.False, check.True},
		{"a loop", 0.002, 0.9, 2, check.True, check.False},
		{"a loop that gets little", 0.002, 0.14, 2, check.True, check.False},
		{"a loop of a server that was busy before", 0.14, 1, 2, check.True, check.False},
		{"a loop of a server that asks itself", 0.002, 1, 60, check.True, check.False},
	} {
		t.Run(tc.name, func(t *testing.T) {
			findings, _, err := verdict.Evaluate(served(t, tc.before, tc.after, tc.requests), "fixed", check.Recovery, asked)
			if err != nil || len(findings) != 3 {
				t.Fatal(findings, err)
			}
			for i, want := range []check.Truth{tc.busy, tc.atRest, tc.atRest} {
				if f := findings[i]; f.Met != want {
					t.Errorf("%s is %s, want %s: %s", f.Name, f.Met, want, f.Seen)
				}
			}
		})
	}
}
