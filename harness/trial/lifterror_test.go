package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/inject/fault"
)

// stuck is a fault whose first so many lifts fail; injecting it breaks the run off.
type stuck struct {
	blow
	interrupt func()
	fails     int
}

func (f *stuck) Inject(ctx context.Context, t fault.Target) error {
	f.interrupt()
	return f.blow.Inject(ctx, t)
}

func (f *stuck) Recover(ctx context.Context, t fault.Target) error {
	if f.fails > 0 {
		f.fails--
		return errors.New("the proxy doesn't answer")
	}
	return f.blow.Recover(ctx, t)
}

// treated puts one arm through fault and recovery, which is broken off once the fault is in force.
func treated(t *testing.T, fails int) (error, *story) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	u, heard := begun(t, &rounds{story: &story{}}, &blow{story: &story{}}, time.Second)
	r := u.trial
	if err := u.end(); err != nil {
		t.Fatal(err)
	}
	r.items.loads = nil
	r.items.faults[0].After, r.items.faults[0].Duration = nil, nil
	r.items.faults[0].Spec = &stuck{blow: blow{story: heard}, interrupt: cancel, fails: fails}
	return interrupted(ctx, r.injectAndRecover(ctx, []string{"fixed"})), heard
}

func TestAFaultThatWasNotLiftedIsSaidAfterAnInterrupt(t *testing.T) {
	err, _ := treated(t, 1)
	if want := "a fault may still be in force: recovering fault in fixed: the proxy doesn't answer"; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want the interrupt and %q", err, want)
	}
}

func TestAFaultThatWasLiftedLeavesTheInterruptAlone(t *testing.T) {
	err, heard := treated(t, 0)
	if err != context.Canceled {
		t.Errorf("%v, want the interrupt alone", err)
	}
	if told := strings.Join(heard.told(), "; "); !strings.Contains(told, "injected") || !strings.Contains(told, "recovered") {
		t.Errorf("it was not lifted: %s", told)
	}
}
