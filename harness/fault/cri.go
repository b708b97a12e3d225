package fault

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/seam"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[Fault]{
		Name: "criLatency",
		Doc: "A slow container runtime: every ListPodSandbox, PodSandboxStatus, ListContainers and ContainerStatus call takes longer.\n\n" +
			"Status and Version are never delayed: a runtime that is down is another incident. Injected and lifted are seen by the harness's own " +
			"CRI calls through kubelet's socket. It lifts itself when its time limit passes.",
		Example: "name: slow-runtime\nkind: criLatency\ntarget: {mode: all, selector: {component: kubelet}}\nspec: {latency: 40ms}\n",
		New:     func() Fault { return &CRILatency{} },
	})
	kinds.Register(kinds.Fault, kinds.Kind[Fault]{
		Name: "containerFlood",
		Doc: "Containers that come all at once: the runtime reports many more pods than before.\n\n" +
			"They are only reported, nothing runs; real containers are not touched. How many there are follows from the subject's constants: one relist must " +
			"outlast the threshold and still have more events to send than the channel holds.",
		Example: "name: flood\nkind: containerFlood\ntarget: {mode: all, selector: {component: kubelet}}\n" +
			"spec:\n  containersPerPod: 10\n  outlast: relistThreshold\n  overflow: channelCapacity\n",
		New: func() Fault {
			return &ContainerFlood{ContainersPerPod: 10, State: control.StateExited, OverflowFactor: 1.5}
		},
	})
}

// seenWithin bounds how long the effect of an arming may take to be observed.
const seenWithin = 30 * time.Second

// CRILatency delays the calls that kubelet's relist makes.
type CRILatency struct {
	Latency metav1.Duration `json:"latency" jsonschema:"added to each call; below 10s"`
}

// Validate refuses a latency that the interposer would refuse, before anything is built for it.
func (f *CRILatency) Validate() error {
	if d := f.Latency.Duration; d <= 0 || d > control.MaxDelay {
		return fmt.Errorf("latency is %s (want above 0, at most %s)", d, control.MaxDelay)
	}
	return nil
}

// Needs says that the calls pass through the cri seam.
func (f *CRILatency) Needs() Needs { return Needs{Seams: []string{"cri"}, Exec: true} }

// Inject arms the delay on every node and returns when a call of ours took that long.
func (f *CRILatency) Inject(ctx context.Context, t Target) error {
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		if _, err := c.ArmLatency(ctx, arm(t), control.Latency{Delay: control.Duration(f.Latency.Duration)}); err != nil {
			return err
		}
		p, err := observe(ctx, c, func(p control.Probe) bool { return listTime(p) >= f.Latency.Duration })
		if err != nil {
			return fmt.Errorf("%s on %s armed and not seen: %w", t.Name, n.Name(), err)
		}
		say(t, event.FaultSeen, n, "a ListContainers call takes %s", listTime(p).Round(time.Millisecond))
		return nil
	})
}

// Recover disarms the delay and returns when calls of ours are fast again: below half of the latency.
func (f *CRILatency) Recover(ctx context.Context, t Target) error {
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		if _, err := c.Disarm(ctx, control.Disarm{ID: t.Name, Owner: t.Run, Fault: control.FaultLatency}); err != nil {
			return err
		}
		p, err := observe(ctx, c, func(p control.Probe) bool { return statusTime(p) < f.Latency.Duration/2+5*time.Millisecond })
		if err != nil {
			return fmt.Errorf("%s on %s disarmed and calls are still slow: %w", t.Name, n.Name(), err)
		}
		say(t, event.FaultGone, n, "a %s call takes %s", fastest(p), statusTime(p).Round(100*time.Microsecond))
		return nil
	})
}

// ContainerFlood adds pods that are only reported.
type ContainerFlood struct {
	Pods             int     `json:"pods,omitempty" jsonschema:"how many pods; computed from the constants when left out"`
	ContainersPerPod int     `json:"containersPerPod,omitzero" jsonschema:"containers in each pod, its sandbox not counted"`
	State            string  `json:"state,omitempty" jsonschema:"running or exited: the state in which they are first seen"`
	Outlast          string  `json:"outlast,omitempty" jsonschema:"the constant that one relist must outlast"`
	Overflow         string  `json:"overflow,omitempty" jsonschema:"the constant that says how many events the channel holds"`
	OverflowFactor   float64 `json:"overflowFactor,omitzero" jsonschema:"how many times that many events must be left when the relist has outlasted it"`
}

// Validate refuses a flood without a size, and one whose size follows from too little.
func (f *ContainerFlood) Validate() error {
	switch {
	case f.Pods < 0:
		return fmt.Errorf("pods is %d (want 0 or more)", f.Pods)
	case f.ContainersPerPod < 1:
		return fmt.Errorf("containersPerPod is %d (want at least 1)", f.ContainersPerPod)
	case f.State != control.StateRunning && f.State != control.StateExited:
		return fmt.Errorf("state is %q (want %s or %s)", f.State, control.StateRunning, control.StateExited)
	case f.Pods > 0:
		return nil
	case f.Outlast == "" || f.Overflow == "":
		return errors.New("neither pods nor both of outlast and overflow are given, so that the flood has no size")
	case f.OverflowFactor < 1:
		return fmt.Errorf("overflowFactor is %g (want at least 1, or the channel would hold what is left)", f.OverflowFactor)
	}
	return nil
}

// Needs says that listings pass through the cri seam, and which constants the size follows from.
func (f *ContainerFlood) Needs() Needs {
	n := Needs{Seams: []string{"cri"}, Exec: true}
	if f.Pods == 0 {
		n.Constants = []string{f.Outlast, f.Overflow}
	}
	return n
}

// Compute sizes the flood for the largest constants of all arms. With a latency L on each call and C containers in a pod, kubelet makes C+3
// delayed calls a pod (ListPodSandbox, PodSandboxStatus, ListContainers, C times ContainerStatus) and gets C+1 events for it (the
// sandbox counts). So ceil(threshold / (L*(C+3))) pods keep a relist busy past its threshold, and ceil(factor*capacity/(C+1)) more pods
// leave more events than the channel holds.
//
// Without a latency among the faults the runtime's own speed decides, which nothing bounds: then the size is the one for a latency of
// 40 ms, so that a flood alone can be told from a flood with a slow runtime.
func (f *ContainerFlood) Compute(constants []map[string]int64, others []Fault) (map[string]string, error) {
	if f.Pods > 0 {
		return map[string]string{"pods": fmt.Sprintf("%d, as given", f.Pods)}, nil
	}
	latency := 40 * time.Millisecond
	for _, o := range others {
		if l, ok := o.(*CRILatency); ok {
			latency = l.Latency.Duration
		}
	}
	threshold, err := largest(constants, f.Outlast)
	if err != nil {
		return nil, err
	}
	capacity, err := largest(constants, f.Overflow)
	if err != nil {
		return nil, err
	}
	calls, events := f.ContainersPerPod+3, f.ContainersPerPod+1
	busy := ceil(float64(threshold) / float64(latency*time.Duration(calls)))
	left := ceil(f.OverflowFactor * float64(capacity) / float64(events))
	f.Pods = busy + left
	return map[string]string{
		"pods": fmt.Sprintf("%d = %d to outlast %s of %s at %d calls of %s a pod, and %d for %g times %s of %d at %d events a pod",
			f.Pods, busy, f.Outlast, time.Duration(threshold), calls, latency, left, f.OverflowFactor, f.Overflow, capacity, events),
		"reach": fmt.Sprintf("up to %d events in one relist", f.Pods*events),
	}, nil
}

// Modelled names what is imitated.
func (f *ContainerFlood) Modelled() []string {
	return []string{"the containers of the flood are only reported by the CRI interposer, none of them ran; real containers run beside them"}
}

// Inject adds the pods on every node and returns when listings of ours show all of them.
func (f *ContainerFlood) Inject(ctx context.Context, t Target) error {
	spec := control.Flood{Pods: f.Pods, ContainersPerPod: f.ContainersPerPod, State: f.State}
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		spec := spec
		spec.Seed = t.Run + "/" + n.Name()
		if _, err := c.ArmFlood(ctx, arm(t), spec); err != nil {
			return err
		}
		_, err := observe(ctx, c, func(p control.Probe) bool {
			return p.ReportedPods == f.Pods && p.ReportedContainers == f.Pods*f.ContainersPerPod
		})
		if err != nil {
			return fmt.Errorf("%s on %s armed and not seen: %w", t.Name, n.Name(), err)
		}
		say(t, event.FaultSeen, n, "the runtime reports %d more pods with %d containers", f.Pods, f.Pods*f.ContainersPerPod)
		return nil
	})
}

// Recover takes the pods away and returns when listings of ours show none.
func (f *ContainerFlood) Recover(ctx context.Context, t Target) error {
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		if _, err := c.Disarm(ctx, control.Disarm{ID: t.Name, Owner: t.Run, Fault: control.FaultFlood}); err != nil {
			return err
		}
		p, err := observe(ctx, c, func(p control.Probe) bool { return p.ReportedPods == 0 && p.ReportedContainers == 0 })
		if err != nil {
			return fmt.Errorf("%s on %s disarmed and pods are still reported: %w", t.Name, n.Name(), err)
		}
		say(t, event.FaultGone, n, "the runtime reports its %d real pods only", p.RealPods)
		return nil
	})
}

func arm(t Target) control.Arm {
	return control.Arm{ID: t.Name, Owner: t.Run, Expires: control.Duration(t.Expires)}
}

// onNodes acts on all nodes of the target at once and returns all errors.
func onNodes(ctx context.Context, t Target, act func(context.Context, cluster.Node, *control.Client) error) error {
	return each(t.Nodes, func(n cluster.Node) error {
		c, err := seam.Interposer(n)
		if err != nil {
			return err
		}
		return act(ctx, n, c)
	})
}

// observe probes until want is satisfied; the error shows the last probe.
func observe(ctx context.Context, c *control.Client, want func(control.Probe) bool) (control.Probe, error) {
	all := ctx
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var last control.Probe
	var lastErr error
	for {
		p, err := c.Probe(ctx)
		if err == nil && want(p) {
			return p, nil
		}
		if err != nil && ctx.Err() == nil {
			lastErr = err
		} else if err == nil {
			last = p
		}
		select {
		case <-ctx.Done():
			if all.Err() != nil {
				return last, context.Cause(all)
			}
			if lastErr != nil {
				return last, lastErr
			}
			return last, fmt.Errorf("within %s; the last probe: %+v", seenWithin, last)
		case <-tick.C:
		}
	}
}

// listTime is the fastest ListContainers call of a probe: a call that happens to be slow must not pass for the fault.
func listTime(p control.Probe) time.Duration { return fast(p, "ListContainers") }

// statusTime is the fastest of the delayed calls that a probe made.
func statusTime(p control.Probe) time.Duration { return fast(p, fastest(p)) }

func fastest(p control.Probe) string {
	if len(p.Seconds["ContainerStatus"]) > 0 {
		return "ContainerStatus"
	}
	return "ListPodSandbox"
}

func fast(p control.Probe, method string) time.Duration {
	if len(p.Seconds[method]) == 0 {
		return 0
	}
	return time.Duration(slices.Min(p.Seconds[method]) * float64(time.Second))
}

func say(t Target, typ string, n cluster.Node, format string, args ...any) {
	t.Events.Emit(event.Event{Type: typ, Cell: t.Cell, Message: t.Name + ": " + fmt.Sprintf(format, args...),
		Fields: map[string]any{"fault": t.Name, "node": n.Name()}})
}

func largest(constants []map[string]int64, name string) (int64, error) {
	if len(constants) == 0 {
		return 0, fmt.Errorf("no arm's constants are known, and the fault's size follows from %q", name)
	}
	out := int64(0)
	for _, c := range constants {
		v, ok := c[name]
		if !ok {
			return 0, fmt.Errorf("the constant %q, which the fault's size follows from, is not known for every arm", name)
		}
		out = max(out, v)
	}
	if out <= 0 {
		return 0, fmt.Errorf("the constant %q is %d", name, out)
	}
	return out, nil
}

func ceil(x float64) int { return int(math.Ceil(x)) }
