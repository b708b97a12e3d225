package verdict_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// cured records what a kubelet that survived the flood leaves behind in the recovery, which is all that pleg-deadlock's
// signature asks about.
func cured(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := bundle.Create(dir)
	must(err)
	began := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	must(w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: "fixed", Constants: map[string]int64{"relistThreshold": int64(3 * time.Minute)}}}}))
	w.Emit(event.Event{Time: at(0), Type: event.Phase, Message: check.Recovery})
	w.Emit(event.Event{Time: at(70), Type: event.Phase, Message: bundle.EndPhase})
	stream := func(kind bundle.Kind, line func(second int) any) {
		st, err := w.Stream(bundle.Meta{Kind: kind, Arm: "fixed", Time: at(0)}, "jsonl")
		must(err)
		st.Alive(at(0))
		for second := 0; second <= 70; second += 2 {
			must(st.JSON(line(second)))
		}
		st.Alive(at(70))
		must(st.Close())
	}
	stream(bundle.Nodes, func(s int) any {
		return bundle.NodeStatus{Time: at(s), Node: "worker", Status: "True", Reason: "KubeletReady", Beat: at(s)}
	})
	stream(bundle.Identity, func(s int) any { return bundle.IdentitySample{Time: at(s), PID: 7, StartTicks: 1000} })
	stream(bundle.Journal, func(s int) any {
		return map[string]string{"__REALTIME_TIMESTAMP": fmt.Sprint(at(s).UnixMicro()), "__CURSOR": fmt.Sprint(s), "SYSLOG_IDENTIFIER": "kubelet",
			"_SYSTEMD_UNIT": "kubelet.service", "MESSAGE": "all is well"}
	})
	st, err := w.Stream(bundle.Meta{Kind: bundle.MetricSamples, Arm: "fixed", Time: at(0)}, "jsonl")
	must(err)
	for second := 0; second <= 70; second += 2 {
		for _, name := range []string{"kubelet_pleg_last_seen_seconds", "kubelet_pleg_relist_duration_seconds_count"} {
			must(st.JSON(bundle.MetricSample{Time: at(second), Done: at(second), Name: name, Value: float64(at(second).Unix())}))
		}
	}
	st.Alive(at(0))
	st.Alive(at(70))
	must(st.Close())
	for second := 5; second < 70; second += 10 {
		_, err := w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: "fixed", Time: at(second)}, "txt", strings.NewReader("goroutine 1 [select]:\nmain.main()\n\t/main.go:9 +0x1\n"))
		must(err)
	}
	must(w.Seal())
}

// A cured kubelet is free of pleg-deadlock's signature only as long as all evidence is there that could show it.
func TestEveryPartOfASignatureHasToBeKnown(t *testing.T) {
	s, err := scenario.Load("../../scenarios/pleg-deadlock/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for removed, want := range map[string]check.Truth{
		"":                       check.False,
		"goroutines.debug2":      check.Unknown,
		"00011-goroutines":       check.Unknown, // the last one: what is left doesn't reach far enough
		"journal":                check.Unknown,
		"metrics.samples":        check.Unknown,
		"nodes.conditions":       check.Unknown,
		"a kind that isn't read": check.False,
	} {
		dir := filepath.Join(t.TempDir(), "001")
		cured(t, dir)
		files, err := filepath.Glob(filepath.Join(dir, "artifacts", "*"+removed+"*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if removed == "" {
				break
			}
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
		b, err := bundle.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		findings, met, err := verdict.EvaluateSignature(b, "fixed", p.Trials[0].Signature)
		if err != nil || met != want {
			said, _ := json.MarshalIndent(findings, "", "  ")
			t.Errorf("without %q: %s, %v, want %s: %s", removed, met, err, want, said)
		}
	}
}
