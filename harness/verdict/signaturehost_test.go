package verdict

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A signature is asked of one arm's evidence alone. The host's record is no arm's, and says whether little CPU means
// that little was wanted.
func TestASignatureKnowsTheHost(t *testing.T) {
	limit := 0.5
	list := []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "busy", Phase: check.Fault}, Spec: &metrics.ProcessCPU{RateLimit: metrics.RateLimit{Above: &limit}}}}
	for _, tc := range []struct {
		name, arm string // whose the host's record is; "" for none
		tasks     int
		want      check.Truth
		seen      string
	}{
		{"a quiet host", bundle.Shared, 2, check.False, "0.01 a second"},
		{"a quiet host, recorded beside each arm's own cluster", "other", 2, check.False, "0.01 a second"},
		{"a host that many want", bundle.Shared, 40, check.Unknown, "with 40 tasks for 2 cores"},
		{"no record of the host", "", 0, check.Unknown, "no record of the host"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
			if err != nil {
				t.Fatal(err)
			}
			at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
			if err := w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: "fixed"}}}); err != nil {
				t.Fatal(err)
			}
			w.Emit(event.Event{Time: at(0), Type: event.Phase, Message: check.Fault})
			w.Emit(event.Event{Time: at(60), Type: event.Phase, Message: bundle.EndPhase})
			var looks []bundle.IdentitySample
			var host []bundle.HostSample
			for s := 0; s <= 60; s += 2 {
				looks = append(looks, bundle.IdentitySample{Time: at(s), PID: 7, StartTicks: 9, CPUSeconds: 1 + 0.01*float64(s),
					Limits: &bundle.CPULimits{Known: true, Cores: 2}})
				host = append(host, bundle.HostSample{Time: at(s), Cores: 2, Running: tc.tasks, AllSeconds: 2 * float64(s), BusySeconds: 2 * float64(s)})
			}
			record(t, w, bundle.Meta{Kind: bundle.Identity, Arm: "fixed"}, looks...)
			if tc.arm != "" {
				record(t, w, bundle.Meta{Kind: bundle.Host, Arm: tc.arm}, host...)
			}
			findings, met, err := EvaluateSignature(w.View(), "fixed", list)
			if err != nil || met != tc.want || !strings.Contains(findings[0].Seen, tc.seen) {
				t.Errorf("%s, %v, %+v; want %s with %q", met, err, findings, tc.want, tc.seen)
			}
		})
	}
}
