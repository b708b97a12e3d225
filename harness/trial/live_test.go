package trial

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// grows is a check whose metric nobody records.
var grows = &metrics.MetricIncrease{Metric: "requests_total", By: question.Quantity{Number: new(1.0)}}

func liveTrial(tr plan.Trial, w *bundle.Writer, events *event.Stream) *trial {
	return &trial{plan: tr, writer: w, events: events, live: newLive(tr, w, events)}
}

func TestWhatTheFaultDecidedIsNotWaitedFor(t *testing.T) {
	grew := plan.Check{CheckHeader: scenario.CheckHeader{Name: "grew", Kind: "metricIncrease"}, Spec: grows}
	for phase, waits := range map[string]bool{"recovery": true, "fault": false} {
		w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
		if err != nil {
			t.Fatal(err)
		}
		healed := grew
		healed.Phase = phase
		r := liveTrial(plan.Trial{Arms: []plan.Arm{{Arm: scenario.Arm{Name: "candidate"}}}, Signature: []plan.Check{grew}, Healed: []plan.Check{healed}}, w, event.NewStream(w))
		r.enter("fault", []string{"candidate"})
		r.enter("recovery", []string{"candidate"})
		if got := r.live.judgeable("candidate"); got == waits {
			t.Errorf("a check about the %s is waited for: %t, want %t", phase, !got, waits)
		}
	}
}

func TestAHealedArmIsWaitedForUntilItsSignatureIsKnown(t *testing.T) {
	w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
	if err != nil {
		t.Fatal(err)
	}
	r := liveTrial(plan.Trial{
		Arms:      []plan.Arm{{Arm: scenario.Arm{Name: "fixed"}}},
		Signature: []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "stuck", Kind: "goroutines"}, Spec: &goroutines.Goroutines{Func: "a.B", State: "chan send", Dumps: 1, Count: 1}}},
		Healed:    []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "ready", Kind: "nodeReady"}, Spec: &objects.NodeReady{Status: "True", Hold: "1s"}}},
	}, w, event.NewStream(w))
	began := time.Now().Add(-5 * time.Second)
	w.Emit(event.Event{Time: began, Type: event.Phase, Message: check.Recovery})
	s, err := w.Stream(bundle.Meta{Kind: bundle.Nodes, Arm: "fixed"}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.JSON(bundle.NodeStatus{Time: began, Node: "n", Status: "True"}); err != nil {
		t.Fatal(err)
	}
	s.Alive(began)
	s.Alive(time.Now())
	if r.live.judgeable("fixed") {
		t.Error("it isn't waited for, and whether it shows the signature is not known")
	}
	if got := r.live.pending.describe([]string{"fixed"}); !strings.Contains(got, "stuck is unknown") {
		t.Errorf("it is waited for because of %s", got)
	}
	if got, want := r.live.pending.sentence([]string{"fixed"}, []string{"fixed"}), "proof that the incident's signs are not there"; got != want {
		t.Errorf("waiting for %s, want %s", got, want)
	}
	dump := "goroutine 1 [select]:\na.B(0x1)\n\t/a.go:1 +0x1\n"
	if _, err := w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: "fixed", Time: time.Now()}, "txt", strings.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	if !r.live.judgeable("fixed") {
		t.Errorf("it is waited for, and is well without the signature: %s", r.live.pending.describe([]string{"fixed"}))
	}
}

// A stranger is told what is waited for in a sentence; what the checks saw stands beside it.
func TestWhatIsWaitedForIsASentence(t *testing.T) {
	saw := []check.Finding{{Name: "late", Seen: "40 s"}}
	late := plan.Check{CheckHeader: scenario.CheckHeader{Name: "late", Await: "the kubelet to be late"}}
	group := plan.Check{CheckHeader: scenario.CheckHeader{Name: "any"}, AnyOf: []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "one"}}, late}}
	bare := plan.Check{CheckHeader: scenario.CheckHeader{Name: "ready"}}
	both := []string{"vulnerable", "fixed"}
	for _, c := range []struct {
		name              string
		vulnerable, fixed plan.Check
		missing           []string
		want              string
	}{
		{"both wait for the same", late, late, both, "the kubelet to be late"},
		{"by an alternative of a group", group, late, both, "the kubelet to be late"},
		{"one of them waits", late, bare, both[:1], "the kubelet to be late (vulnerable)"},
		{"each for something else", late, bare, both, "the kubelet to be late (vulnerable) and for the check ready (fixed)"},
		{"without a phrase", bare, bare, both, "the check ready"},
	} {
		var p pendingChecks
		p.note("vulnerable", c.vulnerable, saw)
		p.note("fixed", c.fixed, saw)
		if got := p.sentence(c.missing, both); got != c.want {
			t.Errorf("%s: waiting for %s, want %s", c.name, got, c.want)
		}
		if got, want := p.describe(both[:1]), "vulnerable (late is unknown: 40 s)"; got != want {
			t.Errorf("%s: the state is %q, want %q", c.name, got, want)
		}
	}
}

func TestTheEndIsCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
		if err != nil {
			t.Fatal(err)
		}
		stream := func(arm string, last time.Time) *bundle.Stream {
			s, err := w.Stream(bundle.Meta{Kind: bundle.Logs, Arm: arm}, "jsonl")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			s.Alive(last.Add(-time.Minute))
			s.Alive(last)
			return s
		}
		now := time.Now()
		lagging := stream("fixed", now.Add(-7*time.Second))
		stream("fixed", now.Add(-time.Minute))       // has ended
		stream("candidate", now.Add(-7*time.Second)) // is no concern of the group
		r := newLive(plan.Trial{}, w, nil)
		done := make(chan error, 1)
		go func() { done <- r.covered(t.Context(), []string{"fixed"}) }()
		select {
		case err := <-done:
			t.Fatalf("it didn't wait for a record that lags behind: %v", err)
		case <-time.After(time.Second):
		}
		lagging.Alive(time.Now())
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(coverTime / 2):
			t.Fatal("it went on waiting for a record that has caught up")
		}
	})
}

// An audit log of hundreds of megabytes is read minutes late on a busy host. It is no silent stream as long as it moves
// on.
func TestAStreamThatCatchesUpIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
		if err != nil {
			t.Fatal(err)
		}
		behind, err := w.Stream(bundle.Meta{Kind: bundle.Audit, Arm: "fixed"}, "jsonl")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = behind.Close() })
		now := time.Now()
		behind.Alive(now.Add(-3 * time.Minute))
		behind.Alive(now.Add(-2 * time.Minute))
		r := newLive(plan.Trial{}, w, nil)
		done := make(chan error, 1)
		go func() { done <- r.covered(t.Context(), []string{"fixed"}) }()
		for i := range 5 { // more than endedTime in all
			select {
			case err := <-done:
				t.Fatalf("after %d s it didn't wait for a stream that moves on: %v", i, err)
			case <-time.After(time.Second):
			}
			behind.Alive(now.Add(time.Duration(i-100) * time.Second))
		}
		behind.Alive(time.Now())
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("it went on waiting for a stream that has caught up")
		}
	})
}
