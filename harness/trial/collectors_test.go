package trial

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func TestEveryTrialHasTheBuiltInCollectors(t *testing.T) {
	own := []plan.Collector{{CollectorHeader: scenario.CollectorHeader{Name: "mine", Kind: "hostPressure"}}, {CollectorHeader: scenario.CollectorHeader{Name: "logs", Kind: "componentLogs"}}}
	for placement, want := range map[string]string{
		plan.PlacementNode:     "identity mine logs",
		plan.PlacementWorkload: "identity containerStatuses mine logs",
	} {
		all, err := withBuiltIn(own, (&plan.Trial{Placement: placement}).Place())
		if err != nil || all[0].Spec == nil {
			t.Fatalf("%s has %+v, %v", placement, all, err)
		}
		var got []string
		for _, c := range all {
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %v, want %s", placement, got, want)
		}
	}
}

// quick is a collector that tells of each snapshot.
type quick struct{ *story }

func (quick) Makes() []bundle.Kind { return nil }
func (c quick) Snapshot(_ context.Context, t capture.Target, _ *bundle.Writer) error {
	c.tell("%s", t.Mark)
	return nil
}

// Looking costs the subject time: where only the recovery needs it, nobody looks on schedule before.
func TestAScheduleForOnePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quick{&story{}}
		s := &collectors{events: event.NewStream(), phases: map[string]string{}}
		ctx, cancel := context.WithCancel(t.Context())
		item := plan.Collector{CollectorHeader: scenario.CollectorHeader{Name: "quick", Every: &metav1.Duration{Duration: 10 * time.Second}}, During: check.Recovery, Spec: c}
		s.start(ctx, item, capture.Target{Arm: "fixed"})
		for _, phase := range []string{check.Baseline, check.Fault, check.Recovery} {
			s.phase([]string{"fixed"}, phase)
			c.tell("%s", phase)
			time.Sleep(24 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
		}
		cancel()
		s.wg.Wait()
		if got, want := strings.Join(c.told(), " "), "baseline fault recovery schedule schedule schedule"; got != want {
			t.Errorf("it was %s, want %s", got, want)
		}
	})
}

// slow is a collector whose snapshots take until they are let.
type slow struct {
	*story
	let chan struct{}
}

func (slow) Makes() []bundle.Kind { return nil }
func (c slow) Snapshot(_ context.Context, t capture.Target, _ *bundle.Writer) error {
	c.tell("%s", t.Mark)
	<-c.let
	return nil
}

// A run that is broken off while a snapshot is taken doesn't wait for that to take another one, and one that goes on
// does.
func TestASnapshotIsTakenAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slow{&story{}, make(chan struct{})}
		one := snapshotter{"slow", c, capture.Target{Arm: "fixed"}, make(chan struct{}, 1)}
		s := &collectors{events: event.NewStream(), snaps: []snapshotter{one}}
		ctx, cancel := context.WithCancel(t.Context())
		go s.take(t.Context(), one, "schedule")
		synctest.Wait()
		broken := make(chan struct{})
		go func() { defer close(broken); s.snapshot(ctx, []string{"fixed"}, "onset") }()
		go s.snapshot(t.Context(), []string{"fixed"}, "phase")
		synctest.Wait()
		cancel()
		<-broken
		for range 2 {
			c.let <- struct{}{}
		}
		synctest.Wait()
		if got := strings.Join(c.told(), " "); got != "schedule phase" {
			t.Errorf("taken were %s, want schedule phase", got)
		}
	})
}
