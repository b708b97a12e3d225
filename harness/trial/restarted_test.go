package trial

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// What explains the end of a process may be recorded after the end. Where nothing does, the outcome is certain.
func TestARestartedSubjectIsNotWaitedFor(t *testing.T) {
	never := []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "grew", Kind: "metricIncrease"}, Spec: grows}}
	for _, c := range []struct {
		name    string
		pids    []int
		waits   bool
		message string
	}{
		{"one process", []int{7, 7, 7}, true, ""},
		{"nobody looked", nil, true, ""},
		{"another process", []int{7, 7, 9}, false, "its subject restarted: process 7 started at tick 1007 with 0 restarts, then process 9"},
		{"not seen by one look", []int{7, 0}, true, ""},
		{"not seen by one look, and by the next", []int{7, 0, 7}, true, ""},
		{"none any more", []int{7, 0, 0}, false, "then none at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
				if err != nil {
					t.Fatal(err)
				}
				heard := &story{}
				r := liveTrial(plan.Trial{Arms: []plan.Arm{{Arm: scenario.Arm{Name: "candidate"}}}, Exposure: never, Healed: never}, w, event.NewStream(w, event.SinkFunc(func(e event.Event) { heard.tell("%s", e.Message) })))
				r.enter("steady", []string{"candidate"})
				r.enter("fault", []string{"candidate"})
				if len(c.pids) > 0 {
					looks(t, w, "candidate", c.pids...)
				}
				i := &injection{trial: r, arms: map[string]*armInjection{"candidate": {faults: 1}}}
				settled := i.settled(r.live.onset(func(string) {}))
				if settled("candidate") || r.live.judgeable("candidate") {
					t.Error("it isn't waited for, and what explains its end may be recorded late")
				}
				time.Sleep(evidenceLag + time.Second)
				for range 2 { // said once
					if got := settled("candidate"); got == c.waits {
						t.Errorf("the fault waits for it: %t, want %t", !got, c.waits)
					}
					if got := r.live.judgeable("candidate"); got == c.waits {
						t.Errorf("the recovery waits for it: %t, want %t", !got, c.waits)
					}
				}
				said := strings.Join(heard.told(), "\n")
				n := strings.Count(said, "its subject restarted, which no check of the signature explains, so it isn't waited for")
				if !strings.Contains(said, c.message) || (n == 1) == c.waits || n > 1 || c.waits && strings.Contains(said, "restarted") {
					t.Errorf("said: %s", said)
				}
			})
		})
	}
}

// looks records which process an arm's subject was seen to be; 0 is none.
func looks(t *testing.T, w *bundle.Writer, arm string, pids ...int) {
	t.Helper()
	s, err := w.Stream(bundle.Meta{Kind: bundle.Identity, Arm: arm}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, pid := range pids {
		if err := s.JSON(bundle.IdentitySample{Time: time.Now(), PID: pid, StartTicks: int64(1000 + pid)}); err != nil {
			t.Fatal(err)
		}
	}
}

// crashes records a container that panics in one function after the other. alive says that what is recorded is so until
// now.
func crashes(t *testing.T, w *bundle.Writer, arm string) (in func(function string), alive func()) {
	t.Helper()
	stream := func(kind bundle.Kind, component string) *bundle.Stream {
		s, err := w.Stream(bundle.Meta{Kind: kind, Arm: arm, Component: component}, "jsonl")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		s.Alive(time.Now())
		return s
	}
	statuses, log := stream(bundle.Statuses, ""), stream(bundle.Logs, "kube-scheduler")
	n := 0
	say := func(s bundle.ContainerStatus) {
		s.Time, s.Container, s.ID, s.State, s.Ready, s.RestartCount = time.Now(), "kube-scheduler", fmt.Sprint("containerd://", n), "running", true, int32(n)
		if err := statuses.JSON(s); err != nil {
			t.Fatal(err)
		}
	}
	say(bundle.ContainerStatus{})
	alive = func() {
		statuses.Alive(time.Now())
		log.Alive(time.Now())
	}
	return func(function string) {
		ended := time.Now()
		for _, line := range []string{"panic: nil pointer", "", "goroutine 7 [running]:", function + "(0x1)", "\t/src/a.go:1 +0x1"} {
			if err := log.JSON(bundle.LogLine{Time: ended, File: fmt.Sprint("containerd://", n), Text: line}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		n++
		say(bundle.ContainerStatus{LastID: fmt.Sprint("containerd://", n-1), LastReason: "Error", LastExitCode: 2, LastFinished: ended})
		alive()
	}, alive
}

// A subject that the incident ended once, where it has to end it twice, is waited for as long as its fault holds.
func TestASignatureThatARestartLeavesOpenIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     []string // functions in which it panics; after the first there is a pause
		holds  bool     // the fault, all the time
		paused bool     // the fault phase is over in the pause
		over   bool     // it is over after the last panic
	}{
		{"ends twice", []string{"a.B", "a.B"}, true, false, true},
		{"ends once", []string{"a.B"}, true, false, false},
		{"ends once, and the fault is over", []string{"a.B"}, false, true, true},
		{"ends in another way", []string{"c.D"}, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
				if err != nil {
					t.Fatal(err)
				}
				r := liveTrial(plan.Trial{
					Arms: []plan.Arm{{Arm: scenario.Arm{Name: "vulnerable"}}},
					Signature: []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "panicked", Kind: "crashed", Phase: check.Fault},
						Spec: &logs.Crashed{Container: "kube-scheduler", Times: 2, ExitCode: 2, Message: "nil pointer", Frames: []string{"a.B"}}}},
				}, w, event.NewStream(w))
				r.enter("steady", []string{"vulnerable"})
				crash, alive := crashes(t, w, "vulnerable")
				r.enter("fault", []string{"vulnerable"})
				time.Sleep(time.Second)
				state := &armInjection{over: time.Now()}
				if c.holds {
					state = &armInjection{faults: 1}
				}
				i := &injection{trial: r, arms: map[string]*armInjection{"vulnerable": state}}
				settled := i.settled(func(string) bool { return true })
				for n, function := range c.in {
					looks(t, w, "vulnerable", 7+n, 8+n)
					crash(function)
					if settled("vulnerable") && n == 0 {
						t.Fatal("it isn't waited for after its first end")
					}
					if n == 0 {
						time.Sleep(2 * evidenceLag)
						alive()
						if got := settled("vulnerable"); got != c.paused {
							t.Fatalf("%s after its first end its fault phase is over: %t, want %t", 2*evidenceLag, got, c.paused)
						}
					}
				}
				if got := settled("vulnerable"); got != c.over {
					t.Errorf("in the end its fault phase is over: %t, want %t", got, c.over)
				}
			})
		})
	}
}

// An incident that the process lives through may still end it, so its loads go on.
func TestOnlyAnEndOfTheProcessStopsLoads(t *testing.T) {
	for _, last := range []int{7, 9} {
		w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
		if err != nil {
			t.Fatal(err)
		}
		r := liveTrial(plan.Trial{
			Arms:      []plan.Arm{{Arm: scenario.Arm{Name: "vulnerable"}}},
			Signature: []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "stuck", Kind: "goroutines", Phase: check.Fault}, Spec: &goroutines.Goroutines{Func: "a.B", State: "chan send", Dumps: 1, Count: 1}}},
		}, w, event.NewStream(w))
		r.enter("steady", []string{"vulnerable"})
		r.enter("fault", []string{"vulnerable"})
		looks(t, w, "vulnerable", 7, last)
		dump := "goroutine 1 [chan send]:\na.B(0x1)\n\t/a.go:1 +0x1\n"
		if _, err := w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: "vulnerable", Time: time.Now()}, "txt", strings.NewReader(dump)); err != nil {
			t.Fatal(err)
		}
		if !r.live.signature("vulnerable") {
			t.Fatal("it doesn't show the incident")
		}
		c := &armInjection{loads: 1}
		c.ctx, c.stop = context.WithCancel(t.Context())
		i := &injection{trial: r, arms: map[string]*armInjection{"vulnerable": c}}
		if i.settled(func(string) bool { return true })("vulnerable") {
			t.Error("settled with a load that goes on")
		}
		if stopped, want := c.ctx.Err() != nil, last != 7; stopped != want {
			t.Errorf("process 7, then %d: the load was stopped: %t, want %t", last, stopped, want)
		}
	}
}
