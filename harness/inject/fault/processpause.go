package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[Fault]{
		Name: "processPause",
		Doc: "A component whose process is stopped (SIGSTOP): its connections stay open and it does nothing, as on a " +
			"host that swaps or in a virtual machine that is being moved.\n\n" +
			"The process continues (SIGCONT) after atMost, or earlier if the harness lifts the fault. The harness " +
			"sees the stop and its end in the state that /proc shows for the process. A component that kubeadm runs " +
			"as a static pod must continue before its liveness probe gets it restarted. A component that holds a " +
			"Lease loses the Lease, notices the loss when it continues, and exits.",
		ChaosMesh: "PhysicalMachineChaos (process)",
		Example: "name: no-scheduler\nkind: processPause\ntarget: {mode: all, selector: {component: " +
			"kube-scheduler}}\nspec: {component: kube-scheduler, atMost: 30s}\n",
		Tested: `{"component":"kubelet","atMost":"1m"}`,
		New:    func() Fault { return &ProcessPause{AtMost: metav1.Duration{Duration: 30 * time.Second}} },
	})
}

// ProcessPause stops the process of a component on each node of its target.
type ProcessPause struct {
	Component string          `json:"component" jsonschema:"component whose process is stopped"`
	AtMost    metav1.Duration `json:"atMost,omitzero" jsonschema:"the process continues after this time at the latest: above 0; below 70s for etcd, kube-apiserver, kube-controller-manager and kube-scheduler"`
}

// pauseSeen is how long a stop, or its end, may take to be observed.
const pauseSeen = 30 * time.Second

// Choices lists the components.
func (f *ProcessPause) Choices() map[string][]string {
	return map[string][]string{"component": component.Names(func(component.Component) bool { return true })}
}

// Validate refuses an unknown component, a pause of 0 or less, and a pause that the kubelet would end.
func (f *ProcessPause) Validate() error {
	row, known := component.Of(f.Component)
	if !known {
		return fmt.Errorf("component is %q (want one of %s)", f.Component, strings.Join(f.Choices()["component"], ", "))
	}
	switch d := f.AtMost.Duration; {
	case d <= 0:
		return fmt.Errorf("atMost is %s (want above 0)", d)
	case row.Runs == component.AsStaticPod && d >= longestOutage:
		return fmt.Errorf("atMost is %s (want below %s, or the liveness probe of %s restarts it)", d, longestOutage,
			f.Component)
	}
	return nil
}

// Needs returns nothing: every provider's components can be stopped.
func (*ProcessPause) Needs() Needs { return Needs{} }

// Inject stops the process on every node and returns once each was observed to be stopped.
func (f *ProcessPause) Inject(ctx context.Context, t Target) error {
	return f.eachComponent(t, func(k cluster.Component, p cluster.Pauser) error {
		atMost := min(t.Expires, f.AtMost.Duration)
		if err := p.Pause(ctx, atMost); err != nil {
			return err
		}
		seen, err := ProbeUntil(ctx, pauseSeen, identity(k), func(id cluster.Identity) bool { return id.Stopped })
		if err != nil {
			return fmt.Errorf("it was sent a signal and was not seen to stop: %w", err)
		}
		Emit(t, event.FaultSeen, k.Node(), "the process %d of %s is stopped, for %s at most", seen.PID, f.Component, atMost)
		return nil
	})
}

// Recover lets the processes go on and returns once each was observed to run.
func (f *ProcessPause) Recover(ctx context.Context, t Target) error {
	return f.eachComponent(t, func(k cluster.Component, p cluster.Pauser) error {
		if err := p.Resume(ctx); err != nil {
			return err
		}
		seen, err := ProbeUntil(ctx, pauseSeen, identity(k),
			func(id cluster.Identity) bool { return id.PID != 0 && !id.Stopped })
		if err != nil {
			return fmt.Errorf("it was sent a signal and was not seen to go on: %w", err)
		}
		Emit(t, event.FaultGone, k.Node(), "the process %d of %s runs", seen.PID, f.Component)
		return nil
	})
}

func identity(k cluster.Component) func(context.Context) (cluster.Identity, error) {
	return func(ctx context.Context) (cluster.Identity, error) { return k.Identity(ctx, false) }
}

// eachComponent acts on the component of all nodes of the target at once, and returns all errors.
func (f *ProcessPause) eachComponent(t Target, act func(cluster.Component, cluster.Pauser) error) error {
	all := t.Cluster.Components(f.Component)
	return Each(t.Nodes, func(n cluster.Node) error {
		i := slices.IndexFunc(all, func(k cluster.Component) bool { return k.Node().Name() == n.Name() })
		if i < 0 {
			return fmt.Errorf("%s: node %s runs no %s", t.Name, n.Name(), f.Component)
		}
		p := all[i].Abilities().Pause
		if p == nil {
			return fmt.Errorf("%s: the %s of %s can't be paused here, or seen to be paused", t.Name, f.Component, n.Name())
		}
		if err := act(all[i], p); err != nil {
			return fmt.Errorf("%s: the %s of %s: %w", t.Name, f.Component, n.Name(), err)
		}
		return nil
	})
}
