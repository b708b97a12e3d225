package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/probes"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// beginsIn is a load that takes effect in some arms only.
type beginsIn []string

func (beginsIn) Prepare(context.Context, load.Target) error { return nil }
func (beginsIn) Makes() []bundle.Kind                       { return nil }
func (l beginsIn) Run(ctx context.Context, t load.Target, _ *bundle.Writer) error {
	if err := wait(ctx, time.Second); err != nil {
		return err
	}
	if slices.Contains(l, t.Arm) {
		t.Round(1, true)
	}
	t.Round(1, false)
	return nil
}

// failing is a fault that can't be injected.
type failing struct{ blow }

func (*failing) Inject(context.Context, fault.Target) error { return errors.New("connection refused") }

func TestAFaultThatCannotComeAnyMore(t *testing.T) {
	both := []string{"fixed", "vulnerable"}
	for _, c := range []struct {
		name      string
		arms      []string
		begins    beginsIn // what the fault comes after takes effect in these
		restarted bool     // fixed
		ill       bool     // fixed
		fails     bool     // the injection
		missed    string   // what is recorded of fixed; "" if the trial ends
		err       string
	}{
		{name: "no arm is the reason", arms: both,
			err: ": load never took effect, so fault, which comes after it, is not injected; the arm is not the reason, because load took effect in no other arm, " +
				"and no restart of the subject and no loss of its steady state was seen; see in the bundle what became of load, and with relapse explain when its kind takes effect"},
		{name: "the only arm is not the reason", arms: both[:1], err: "fixed: load never took effect, so fault, which comes after it, is not injected; the arm is not the reason"},
		{name: "it comes in another arm", arms: both, begins: both[1:],
			missed: "load never took effect, so fault, which comes after it, is not injected: it did in vulnerable"},
		{name: "the subject restarted", arms: both[:1], restarted: true,
			missed: "load never took effect, so fault, which comes after it, is not injected: its subject restarted"},
		{name: "the arm is ill", arms: both[:1], ill: true,
			missed: "load never took effect, so fault, which comes after it, is not injected: its steady state is lost: node-ready: "},
		{name: "it can't be injected", arms: both[:1], begins: both, fails: true, err: "injecting fault into fixed: connection refused"},
		{name: "it can't be injected into what restarted", arms: both[:1], begins: both, fails: true, restarted: true,
			missed: "its subject restarted, and fault can't be injected any more: connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f fault.Fault = &blow{&story{}, nil}
				if c.fails {
					f = &failing{}
				}
				r, _ := toBeginIn(t, c.arms, c.begins, f, 0)
				r.live.plan.Steady = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "node-ready", Kind: "nodeReady", Phase: check.Steady}, Spec: &objects.NodeReady{Status: "True", Hold: "1s"}}}
				if c.restarted {
					looks(t, r.writer, "fixed", 7, 9)
				}
				if c.ill {
					notReady(t, r.writer, "fixed")
				}
				began := time.Now()
				u, err := begin(t.Context(), r, c.arms, check.Fault)
				if err != nil {
					t.Fatal(err)
				}
				err = u.effective()
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("it was known after %s", took)
				}
				if ended := u.end(); c.err == "" && (err != nil || ended != nil) || c.err != "" && (err == nil || ended == nil || !strings.Contains(ended.Error(), c.err)) {
					t.Errorf("it ended with %v, %v, want %q", err, ended, c.err)
				}
				if got := missedIn(r.writer, "fixed"); !strings.HasPrefix(got, c.missed) || (got == "") != (c.missed == "") {
					t.Errorf("of fixed is recorded %q, want %q", got, c.missed)
				}
				if got := missedIn(r.writer, "vulnerable"); got != "" {
					t.Errorf("of vulnerable is recorded %q", got)
				}
			})
		})
	}
}

// A load that never runs ends the trial, like a fault that never comes, or is missed in the arm that is the reason.
func TestALoadThatCannotRunAnyMore(t *testing.T) {
	for _, c := range []struct {
		begins      beginsIn
		missed, err string
	}{
		{begins: nil, err: ": load never took effect, so second, which comes after it, doesn't run; the arm is not the reason"},
		{begins: beginsIn{"vulnerable"}, missed: "load never took effect, so second, which comes after it, doesn't run: it did in vulnerable"},
	} {
		synctest.Test(t, func(t *testing.T) {
			arms := []string{"fixed", "vulnerable"}
			r, _ := toBeginIn(t, arms, c.begins, &blow{&story{}, nil}, 0)
			second := r.items.loads[0]
			second.Name, second.After = "second", &scenario.After{Name: "load"}
			second.Spec = &rounds{story: &story{}, rounds: 1, begins: 1}
			r.items.loads, r.items.faults = append(r.items.loads, second), nil
			u, err := begin(t.Context(), r, arms, check.Fault)
			if err != nil {
				t.Fatal(err)
			}
			if err := u.group.Wait(); c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("it ended with %v, want %q", err, c.err)
			}
			u.cancel()
			got := ""
			for _, e := range r.writer.View().Timeline() {
				if e.Type == event.LoadMissed && e.Arm == "fixed" && e.Fields["load"] == "second" {
					got = e.Message
				}
			}
			if got != c.missed {
				t.Errorf("of fixed is recorded %q, want %q", got, c.missed)
			}
		})
	}
}

// idle is a load that goes on and takes no effect.
type idle struct{}

func (idle) Prepare(context.Context, load.Target) error { return nil }
func (idle) Makes() []bundle.Kind                       { return nil }
func (idle) Run(ctx context.Context, _ load.Target, _ *bundle.Writer) error {
	<-ctx.Done()
	return ctx.Err()
}

// A load whose turn has not come when its phase ends at the deadline is missed, and says what it waited for.
func TestALoadThatIsTooLate(t *testing.T) {
	comes := &rounds{story: &story{}, rounds: 1, begins: 1}
	for _, c := range []struct {
		name  string
		first load.Load
		item  scenario.ItemHeader
		want  string
	}{
		{"by the clock", comes, scenario.ItemHeader{At: &metav1.Duration{Duration: time.Hour}}, "it starts 1h0m0s after the beginning of the phase"},
		{"after what takes no effect", idle{}, scenario.ItemHeader{After: &scenario.After{Name: "load"}}, "it comes after load, which had not taken effect"},
		{"long after what took effect", comes, scenario.ItemHeader{After: &scenario.After{Name: "load", Plus: &metav1.Duration{Duration: time.Hour}}}, "it starts 1h0m0s after load took effect"},
		{"in time", comes, scenario.ItemHeader{At: &metav1.Duration{Duration: time.Second}}, ""},
	} {
		for _, phase := range []string{check.Baseline, check.Fault, check.Recovery} {
			t.Run(c.name+" in "+phase, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					arms := []string{"fixed"}
					r, _ := toBeginIn(t, arms, c.first, &blow{&story{}, nil}, 0)
					second := r.items.loads[0]
					second.At, second.After = c.item.At, c.item.After
					second.Name, second.Spec = "second", &rounds{story: &story{}, rounds: 1, begins: 1}
					r.items.loads, r.items.faults = append(r.items.loads, second), nil
					for i := range r.items.loads {
						r.items.loads[i].Phase = phase
					}
					r.plan.Healed = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "works", Kind: "probeDone", Phase: check.Recovery}, Spec: &probes.ProbeDone{Probe: "probe"}}}
					r.live.plan.Healed = r.plan.Healed // unknown, so that the recovery goes on
					r.plan.Phases.Baseline.AtLeast.Duration = time.Minute
					r.plan.Phases.Fault.Deadline.Duration, r.plan.Phases.Recovery.Deadline.Duration = time.Minute, time.Minute
					var err error
					switch phase {
					case check.Baseline:
						_, err = r.baseline(t.Context(), arms)
					case check.Fault:
						err = r.hold(t.Context(), arms)
					default:
						err = r.watchRecovery(t.Context(), arms)
					}
					if err != nil {
						t.Fatal(err)
					}
					got, want := "", c.want
					if want != "" {
						want = "second had not run when the phase " + phase + " ended at its deadline: " + want
					}
					for _, e := range r.writer.View().Timeline() {
						if e.Type == event.LoadMissed && e.Arm == "fixed" && e.Fields["load"] == "second" {
							got = e.Message
						}
					}
					if got != want {
						t.Errorf("it recorded %q, want %q", got, want)
					}
				})
			})
		}
	}
}

// notReady records that an arm's node is not Ready from now on.
func notReady(t *testing.T, w *bundle.Writer, arm string) {
	t.Helper()
	s, err := w.Stream(bundle.Meta{Kind: bundle.Nodes, Arm: arm}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.JSON(bundle.NodeStatus{Time: time.Now(), Node: "n", Status: "False"}); err != nil {
		t.Fatal(err)
	}
	s.Alive(time.Now())
	s.Alive(time.Now().Add(time.Minute))
}

// missedIn returns why a fault was missed in an arm, "" if none was.
func missedIn(w *bundle.Writer, arm string) string {
	for _, e := range w.View().Timeline() {
		if e.Type == event.FaultMissed && e.Arm == arm && e.Fields["fault"] == "fault" {
			return e.Message
		}
	}
	return ""
}

// What comes after something that never took effect doesn't come either, and nothing is asked twice.
func TestWhatComesAfterAMissedFaultIsMissedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{}
		arms := []string{"fixed", "vulnerable"}
		r, heard := toBeginIn(t, arms, beginsIn{"vulnerable"}, &blow{&story{}, nil}, 0)
		after := func(name string) scenario.ItemHeader {
			h := r.items.faults[0].ItemHeader
			h.Name, h.After, h.Duration = "later-"+name, &scenario.After{Name: name}, &metav1.Duration{}
			return h
		}
		r.items.faults = append(r.items.faults, plan.Fault{ItemHeader: after("fault"), Spec: &blow{s, nil}})
		r.items.loads = append(r.items.loads, plan.Load{ItemHeader: after("load"), Spec: &rounds{story: s, rounds: 1, begins: 1}})
		u, err := begin(t.Context(), r, arms, check.Fault)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(u.effective(), over(t, u), u.end()); err != nil {
			t.Fatal(err)
		}
		got := s.told()
		slices.Sort(got)
		if want := []string{"injected", "round 1 began"}; !slices.Equal(got, want) { // in vulnerable
			t.Errorf("it went %q, want %q", got, want)
		}
		for _, want := range []string{
			"fault never took effect, so later-fault, which comes after it, is not injected: load never took effect, so fault, which comes after it, is not injected: it did in vulnerable",
			"load never took effect, so later-load, which comes after it, doesn't run: it did in vulnerable",
		} {
			if !slices.Contains(heard.told(), want) {
				t.Errorf("it said %q, want %q", heard.told(), want)
			}
		}
	})
}
