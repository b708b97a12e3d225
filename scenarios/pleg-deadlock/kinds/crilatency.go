package kinds

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/faults"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "criLatency",
		Doc: "A slow container runtime: every ListPodSandbox, PodSandboxStatus, ListContainers and ContainerStatus " +
			"call takes longer.\n\n" +
			"All other calls, such as Status and Version, are never delayed: a runtime that is down is another " +
			"incident. The harness makes CRI calls through the kubelet's socket to see the delay begin and end. If " +
			"the harness doesn't lift the fault, the proxy does after the time limit: the fault phase's deadline " +
			"plus 2m.",
		Example: "name: slow-runtime\nkind: criLatency\ntarget: {mode: all, selector: {component: kubelet}}\nspec: " +
			"{latency: 40ms}\n",
		Tested: `{"latency":"250ms"}`,
		New:    func() fault.Fault { return &CRILatency{} },
	})
}

// CRILatency delays the calls of kubelet's relist.
type CRILatency struct {
	Latency metav1.Duration `json:"latency" jsonschema:"delay added to each call: above 0, at most 10s"`
}

// Validate refuses a latency that the interposer would refuse, before anything is built for it.
func (f *CRILatency) Validate() error {
	if d := f.Latency.Duration; d <= 0 || d > control.MaxDelay {
		return fmt.Errorf("latency is %s (want above 0, at most %s)", d, control.MaxDelay)
	}
	return nil
}

// Needs returns what the fault requires: the cri seam, which the calls pass through, and commands in the nodes.
func (f *CRILatency) Needs() fault.Needs { return fault.Needs{Seams: []string{"cri"}, Exec: true} }

// RuntimeDelay returns the latency.
func (f *CRILatency) RuntimeDelay() time.Duration { return f.Latency.Duration }

// Inject arms the delay on every node and returns once one of the harness's own calls took that long.
func (f *CRILatency) Inject(ctx context.Context, t fault.Target) error {
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		if _, err := c.ArmLatency(ctx, faults.Arm(t),
			control.Latency{Delay: control.Duration(f.Latency.Duration)}); err != nil {
			return err
		}
		p, err := observe(
			ctx,
			c,
			func(p control.Probe) bool { return listTime(p) >= f.Latency.Duration },
		)
		if err != nil {
			return fmt.Errorf("%s on %s armed and not seen: %w", t.Name, n.Name(), err)
		}
		faults.Emit(
			t,
			event.FaultSeen,
			n,
			"a ListContainers call takes %s",
			listTime(p).Round(time.Millisecond),
		)
		return nil
	})
}

// Recover disarms the delay and returns once the harness's own calls are fast again: they take less than half of the
// latency plus 5 ms.
func (f *CRILatency) Recover(ctx context.Context, t fault.Target) error {
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		if _, err := c.Disarm(ctx, control.Disarm{ID: t.Name, Owner: t.Run, Fault: control.FaultLatency}); err != nil {
			return err
		}
		p, err := observe(
			ctx,
			c,
			func(p control.Probe) bool { return statusTime(p) < f.Latency.Duration/2+5*time.Millisecond },
		)
		if err != nil {
			return fmt.Errorf(
				"%s on %s disarmed and calls are still slow: %w",
				t.Name,
				n.Name(),
				err,
			)
		}
		faults.Emit(
			t,
			event.FaultGone,
			n,
			"a %s call takes %s",
			fastest(p),
			statusTime(p).Round(100*time.Microsecond),
		)
		return nil
	})
}

// onNodes acts on all nodes of the target at once and returns all errors.
func onNodes(
	ctx context.Context,
	t fault.Target,
	act func(context.Context, cluster.Node, *control.Client) error,
) error {
	return faults.Each(t.Nodes, func(n cluster.Node) error {
		c, err := seams.Interposer(n)
		if err != nil {
			return err
		}
		return act(ctx, n, c)
	})
}

// observe probes the interposer until want is true of a probe, and returns that probe.
func observe(
	ctx context.Context,
	c *control.Client,
	want func(control.Probe) bool,
) (control.Probe, error) {
	return faults.ProbeUntil(ctx, faults.SeenWithin, c.Probe, want)
}

// listTime returns the fastest ListContainers call of a probe: a call that happens to be slow must not pass for the
// fault.
func listTime(p control.Probe) time.Duration { return fast(p, "ListContainers") }

// statusTime returns the fastest ContainerStatus call of a probe, or the fastest ListPodSandbox call if the probe has
// none.
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
