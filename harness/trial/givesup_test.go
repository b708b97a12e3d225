package trial

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// lasting is a load that takes effect at once, and ends after a while.
type lasting time.Duration

func (lasting) Prepare(context.Context, load.Target) error { return nil }
func (lasting) Makes() []bundle.Kind                       { return nil }
func (l lasting) Run(ctx context.Context, t load.Target, _ *bundle.Writer) error {
	t.Round(1, true)
	defer t.Round(1, false)
	return wait(ctx, time.Duration(l))
}

// Exposure that isn't met is waited for while a load runs or a fault is still to come or holds, and evidenceLag longer.
func TestExposureIsGivenUpAfterTheLastLoadAndFault(t *testing.T) {
	const never = 0
	for _, c := range []struct {
		name     string
		load     time.Duration
		at       time.Duration // of the fault, which comes after nothing
		duration time.Duration
		exposed  bool
		noFaults bool
		want     time.Duration // from when every fault has taken effect; never is at the deadline
	}{
		{name: "the load is the last", load: time.Minute, duration: 10 * time.Second, want: time.Minute + evidenceLag},
		{name: "the fault is the last", load: 10 * time.Second, duration: time.Minute, want: time.Minute + evidenceLag},
		{name: "the fault comes last", load: time.Second, at: time.Minute, duration: time.Second, want: time.Second + evidenceLag},
		{name: "the fault holds until the phase ends", load: time.Second, want: never},
		{name: "the exposure is met while the fault holds", load: time.Minute, exposed: true, want: time.Minute},
		{name: "a null control", load: time.Minute, exposed: true, noFaults: true, want: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, heard := toBegin(t, lasting(c.load), &blow{&story{}, nil}, c.duration)
				f := &r.items.faults[0]
				f.After, f.At = nil, &metav1.Duration{Duration: c.at}
				r.plan.NoFaults, r.live.plan.NoFaults = c.noFaults, c.noFaults
				u, err := begin(t.Context(), r, []string{"fixed"}, check.Fault)
				if err == nil {
					err = u.effective()
				}
				if err != nil {
					t.Fatal(err)
				}
				settled, began := u.settled(func(string) bool { return c.exposed }), time.Now()
				for !settled("fixed") && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
				}
				took := time.Since(began)
				if late := took - c.want; c.want != never && (late < 0 || late > 2*time.Second) || c.want == never && took < time.Hour {
					t.Errorf("the phase was over after %s, want %s", took, c.want)
				}
				if err := u.end(); err != nil {
					t.Error(err)
				}
				said := slices.Contains(heard.told(), "given up, 15s after its last load and fault: fixed")
				if said != (c.want != never && !c.exposed) {
					t.Errorf("it said %q", heard.told())
				}
			})
		})
	}
}

// An arm without a load or fault of its own has the whole phase.
func TestAnArmWithoutALoadOrFaultIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := toBeginIn(t, []string{"fixed", "vulnerable"}, lasting(0), &blow{&story{}, nil}, time.Second)
		r.items.loads[0].Target.Arm, r.items.faults[0].Target.Arm = "vulnerable", "vulnerable"
		u, err := begin(t.Context(), r, []string{"fixed", "vulnerable"}, check.Fault)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(u.effective(), over(t, u)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * evidenceLag)
		settled := u.settled(func(string) bool { return false })
		if settled("fixed") || !settled("vulnerable") {
			t.Errorf("fixed, which has neither, is given up: %t; vulnerable is: %t", settled("fixed"), settled("vulnerable"))
		}
		if err := u.end(); err != nil {
			t.Error(err)
		}
	})
}

// A fault that comes after one that holds lasts as long as it says.
func TestAFaultAfterOneThatHoldsHasItsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{}
		r, _ := toBegin(t, lasting(0), &blow{&story{}, nil}, 0)
		second := plan.Fault{ItemHeader: r.items.faults[0].ItemHeader, Spec: &blow{s, nil}}
		second.Name, second.After, second.Duration = "second", &scenario.After{Name: "fault"}, &metav1.Duration{Duration: time.Minute}
		r.items.faults = append(r.items.faults, second)
		u, err := begin(t.Context(), r, []string{"fixed"}, check.Fault)
		if err == nil {
			err = u.effective()
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if got, want := s.told(), []string{"injected"}; !slices.Equal(got, want) {
			t.Errorf("before its time is up it went %q, want %q", got, want)
		}
		time.Sleep(2 * time.Second)
		if got, want := s.told(), []string{"injected", "recovered"}; !slices.Equal(got, want) {
			t.Errorf("when its time is up it went %q, want %q", got, want)
		}
		if err := u.end(); err != nil {
			t.Error(err)
		}
	})
}

// Arms that share their nodes share their faults, too.
func TestASharedFaultIsWaitedForInEachArm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
		if err != nil {
			t.Fatal(err)
		}
		r := liveTrial(plan.Trial{Arms: []plan.Arm{{Arm: scenario.Arm{Name: "fixed"}}}}, w, event.NewStream(w))
		i := &injection{trial: r, arms: map[string]*armInjection{"fixed": {}, bundle.Shared: {faults: 1}}}
		settled := i.settled(func(string) bool { return false })
		time.Sleep(2 * evidenceLag)
		if settled("fixed") {
			t.Error("it is given up while the fault holds")
		}
		i.done(bundle.Shared, func(c *armInjection) { c.faults-- })
		if settled("fixed") {
			t.Error("it is given up as soon as the fault is over")
		}
		time.Sleep(evidenceLag + time.Second)
		if !settled("fixed") {
			t.Error("it isn't given up")
		}
	})
}
