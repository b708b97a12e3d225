package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "process",
		Doc: "A component's process that is stopped for a while, killed, restarted, also with other flags, or replaced by another build.\n\n" +
			"stop (SIGSTOP) leaves its connections open and lets it do nothing, as on a host that swaps or in a " +
			"virtual machine that is being moved. It continues (SIGCONT) after atMost, or earlier if the harness " +
			"lifts the fault. The harness sees the stop and its end in the state that /proc shows for the process. A " +
			"component that kubeadm runs as a static pod must continue before its liveness probe gets it restarted. " +
			"A component that holds a Lease loses the Lease, notices the loss when it continues, and exits.\n\n" +
			"kill (SIGKILL) ends the process without a warning, and its supervisor starts it again. restart ends it as " +
			"an administrator would, and starts it again. Both count as injected once another process, or none, was " +
			"seen in its place, and as lifted once the component is ready again. They have no time limit, because " +
			"nothing is left to undo. If the component is the subject, its arm is to be one process up to each kill " +
			"or restart, and one after it; a subject that never gets ready again is no failure of the fault, and its " +
			"arm is judged.\n\n" +
			"A restart with flags gives the component other flags. It counts as injected once a process was seen to " +
			"run with them. To lift it, the component is restarted with its own flags, which makes it another process " +
			"once more. It has no time limit either: if the harness is dead, the flags stay as long as the cluster.\n\n" +
			"replace puts the next of its arm's builds in place of the subject, which is an upgrade: the arm's source " +
			"lists the earlier ones as before. It counts as injected and as lifted as a restart does, and the build stays.",
		ChaosMesh: "PhysicalMachineChaos (process), or PodChaos (container-kill) for kill",
		Example: "name: no-scheduler\nkind: process\ntarget: {mode: all, selector: {component: " +
			"kube-scheduler}}\nspec: {action: stop, component: kube-scheduler, atMost: 30s}\n",
		Tested: `{"action":"stop","component":"kubelet","atMost":"1m"}`,
		New:    func() fault.Fault { return &Process{} },
	})
}

// The actions of a Process.
const (
	ProcessStop    = "stop"
	ProcessKill    = "kill"
	ProcessRestart = "restart"
	ProcessReplace = "replace"
)

var processActions = []string{ProcessStop, ProcessKill, ProcessRestart, ProcessReplace}

// Process stops, kills, restarts or replaces the process of a component on each node of its target.
type Process struct {
	Action    string                  `json:"action" jsonschema:"what happens to the process"`
	Component string                  `json:"component" derives:"subject" jsonschema:"component whose process it is"`
	AtMost    *metav1.Duration        `json:"atMost,omitempty" jsonschema:"of stop: the process continues after this time at the latest, 30s if not given: above 0; below 70s for etcd, kube-apiserver, kube-controller-manager and kube-scheduler"`
	Flags     map[string]kinds.Scalar `json:"flags,omitempty" jsonschema:"of restart: flags that the component has until the fault is lifted, in addition to its own or in their place: flag -> value"`
	Build     int                     `json:"build,omitempty" jsonschema:"of replace: which of the arm's builds, of which 1 is the first; the last one if not given"`
	Ready     *metav1.Duration        `json:"ready,omitempty" jsonschema:"of kill, restart and replace: how long the component may take to be ready again, 3m if not given; above 0, below 5m"`
}

const (
	// processSeen is how long a stop, its end, or the end of a process may take to be observed.
	processSeen = 30 * time.Second
	// stopAtMost and readyWithin stand in for times that aren't given.
	stopAtMost  = 30 * time.Second
	readyWithin = 3 * time.Minute
)

// Choices lists the actions and the components.
func (*Process) Choices() map[string][]string {
	return map[string][]string{"action": processActions,
		"component": component.Names(nil)}
}

// Validate refuses an unknown action or component, a time that the action doesn't use, a time of 0 or less, a time to be
// ready that nobody would wait for, and a stop that the kubelet would end.
func (f *Process) Validate() error {
	if !slices.Contains(processActions, f.Action) {
		return fmt.Errorf(
			"action is %q (want one of %s)",
			f.Action,
			strings.Join(processActions, ", "),
		)
	}
	row, known := component.Of(f.Component)
	if !known {
		return fmt.Errorf(
			"component is %q (want one of %s)",
			f.Component,
			strings.Join(f.Choices()["component"], ", "),
		)
	}
	if err := f.validateFlags(row); err != nil {
		return err
	}
	if f.Build != 0 && (f.Action != ProcessReplace || f.Build < 2) {
		return fmt.Errorf(
			"build is %d, with the action %s (want 2 or more, with %s)",
			f.Build,
			f.Action,
			ProcessReplace,
		)
	}
	for _, p := range []struct {
		name  string
		value *metav1.Duration
		used  bool
	}{{"atMost", f.AtMost, f.Action == ProcessStop}, {"ready", f.Ready, f.ends()}} {
		switch {
		case p.value == nil:
		case !p.used:
			return fmt.Errorf(
				"%s has no effect on the action %s (want it left out)",
				p.name,
				f.Action,
			)
		case p.value.Duration <= 0:
			return fmt.Errorf("%s is %s (want above 0)", p.name, p.value.Duration)
		}
	}
	if d := f.ready(); d >= fault.LiftTime {
		return fmt.Errorf(
			"ready is %s (want below %s, in which all faults have to be lifted)",
			d,
			fault.LiftTime,
		)
	}
	if d := f.atMost(); f.Action == ProcessStop && row.Runs == component.AsStaticPod && d >= longestOutage {
		return fmt.Errorf("atMost is %s (want below %s, or the liveness probe of %s restarts it)", d, longestOutage,
			f.Component)
	}
	return nil
}

// ends reports whether the fault ends the process.
func (f *Process) ends() bool { return f.Action != ProcessStop }

func (f *Process) atMost() time.Duration {
	if f.AtMost == nil {
		return stopAtMost
	}
	return f.AtMost.Duration
}

func (f *Process) ready() time.Duration {
	if f.Ready == nil {
		return readyWithin
	}
	return f.Ready.Duration
}

// Needs returns nothing: every provider's components can be stopped, killed and restarted, with other flags, too.
func (*Process) Needs() fault.Needs { return fault.Needs{} }

// Restarts reports whether the fault makes a component another process.
func (f *Process) Restarts(name string) bool { return f.ends() && f.Component == name }

// Makes returns the record of processes that the fault ended.
func (f *Process) Makes() []bundle.Kind {
	if f.ends() {
		return []bundle.Kind{bundle.EndedProcess}
	}
	return nil
}

// Inject does its action on every node, and returns once each effect was observed.
func (f *Process) Inject(ctx context.Context, t fault.Target) error {
	return f.eachComponent(t, func(k cluster.Component) error {
		switch {
		case f.Action == ProcessStop:
			return f.stop(ctx, t, k)
		case f.Action == ProcessKill:
			return f.kill(ctx, t, k)
		case f.Action == ProcessReplace:
			return f.replace(ctx, t, k)
		case len(f.Flags) > 0:
			return f.giveFlags(ctx, t, k)
		}
		return f.restart(ctx, t, k)
	})
}

// Recover lets stopped processes continue and returns once each was observed to run, or returns once each component
// that was ended is ready, with its own flags.
func (f *Process) Recover(ctx context.Context, t fault.Target) error {
	return f.eachComponent(t, func(k cluster.Component) error {
		if !f.ends() {
			return f.proceed(ctx, t, k)
		}
		if err := f.takeFlags(ctx, t, k); err != nil {
			return err
		}
		return f.awaitReady(ctx, t, k)
	})
}

func (f *Process) stop(ctx context.Context, t fault.Target, k cluster.Component) error {
	p, err := pauser(k)
	if err != nil {
		return err
	}
	atMost := min(t.Expires, f.atMost())
	if err := p.Pause(ctx, atMost); err != nil {
		return err
	}
	seen, err := ProbeUntil(
		ctx,
		processSeen,
		identity(k),
		func(id cluster.Identity) bool { return id.Stopped },
	)
	if err != nil {
		return fmt.Errorf("it was sent a signal and was not seen to stop: %w", err)
	}
	Emit(
		t,
		event.FaultSeen,
		k.Node(),
		"the process %d of %s is stopped, for %s at most",
		seen.PID,
		f.Component,
		atMost,
	)
	return nil
}

// proceed ends a stop.
func (f *Process) proceed(ctx context.Context, t fault.Target, k cluster.Component) error {
	p, err := pauser(k)
	if err != nil {
		return err
	}
	if err := p.Resume(ctx); err != nil {
		return err
	}
	seen, err := ProbeUntil(ctx, processSeen, identity(k), runs)
	if err != nil {
		return fmt.Errorf("it was sent a signal and was not seen to go on: %w", err)
	}
	Emit(t, event.FaultGone, k.Node(), "the process %d of %s runs", seen.PID, f.Component)
	return nil
}

func pauser(k cluster.Component) (cluster.Pauser, error) {
	if p := k.Abilities().Pause; p != nil {
		return p, nil
	}
	return nil, errors.New("it can't be stopped here, or seen to be stopped")
}

func identity(k cluster.Component) func(context.Context) (cluster.Identity, error) {
	return func(ctx context.Context) (cluster.Identity, error) { return k.Identity(ctx, false) }
}

// runs reports whether there is a process, and it isn't stopped.
func runs(id cluster.Identity) bool { return id.PID != 0 && !id.Stopped }

// eachComponent acts on the component of all nodes of the target at once, and returns all errors.
func (f *Process) eachComponent(t fault.Target, act func(cluster.Component) error) error {
	all := t.Cluster.Components(f.Component)
	return Each(t.Nodes, func(n cluster.Node) error {
		i := slices.IndexFunc(
			all,
			func(k cluster.Component) bool { return k.Node().Name() == n.Name() },
		)
		if i < 0 {
			return fmt.Errorf("%s: node %s runs no %s", t.Name, n.Name(), f.Component)
		}
		if err := act(all[i]); err != nil {
			return fmt.Errorf("%s: the %s of %s: %w", t.Name, f.Component, n.Name(), err)
		}
		return nil
	})
}
