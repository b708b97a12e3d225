package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// longestOutage is less than what kubeadm's liveness probe of kube-apiserver tolerates: 8 failures, 10 s apart.
const longestOutage = 70 * time.Second

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[Fault]{
		Name: "etcdOutage",
		Doc: "An etcd that doesn't answer: no answer reaches kube-apiserver, and no request reaches etcd.\n\n" +
			"With connections: keep, open connections stay open, new ones are accepted, and everything that was sent " +
			"arrives after the fault is lifted. With connections: reset, open connections and new ones are reset. " +
			"The outage ends after atMost, or earlier if the harness lifts it. A longer outage would get " +
			"kube-apiserver restarted by its liveness probe. The harness sees the outage and its end by requests to " +
			"etcd, through the proxy and around it.",
		ChaosMesh: "NetworkChaos (partition, or a loss of 100)",
		Example: "name: no-etcd\nkind: etcdOutage\ntarget: {mode: all, selector: {component: etcd}}\nspec: " +
			"{connections: keep, atMost: 66s}\n",
		Tested: `{"connections":"keep"}`,
		New: func() Fault {
			return &EtcdOutage{Connections: control.OutageKeep, AtMost: metav1.Duration{Duration: 66 * time.Second}}
		},
	})
}

// EtcdOutage cuts kube-apiserver off from etcd.
type EtcdOutage struct {
	Connections string          `json:"connections,omitempty" jsonschema:"keep: open and new connections stay open and pass no data; reset: they are reset"`
	AtMost      metav1.Duration `json:"atMost,omitzero" jsonschema:"the outage ends after this time at the latest: above 0, below 70s"`
}

// Validate refuses an outage that the proxy can't make, and one that kube-apiserver would not outlive.
func (f *EtcdOutage) Validate() error {
	if f.Connections != control.OutageKeep && f.Connections != control.OutageReset {
		return fmt.Errorf("connections is %q (want %s or %s)", f.Connections, control.OutageKeep, control.OutageReset)
	}
	if d := f.AtMost.Duration; d <= 0 || d >= longestOutage {
		return fmt.Errorf("atMost is %s (want above 0 and below %s, or kube-apiserver's liveness probe restarts it)", d,
			longestOutage)
	}
	return nil
}

// Needs returns what the fault requires: the etcd seam, which all traffic passes through.
func (f *EtcdOutage) Needs() Needs { return Needs{Seams: []string{"etcd"}} }

// Modelled returns a sentence on what is imitated.
func (f *EtcdOutage) Modelled() []string {
	return []string{"etcd itself went on: a proxy cut kube-apiserver off from it"}
}

// Inject arms the outage and returns once a request through the proxy got no answer while one past the proxy did.
func (f *EtcdOutage) Inject(ctx context.Context, t Target) error {
	return onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.EtcdClient) error {
		a := Arm(t)
		a.Expires = control.Duration(min(t.Expires, f.AtMost.Duration))
		if _, err := c.ArmOutage(ctx, a, control.EtcdOutage{Connections: f.Connections}); err != nil {
			return err
		}
		p, err := measure(ctx, c, SeenWithin, etcdLimit, func(p control.EtcdProbe) bool {
			cut := p.Err != "" && (f.Connections == control.OutageReset || strings.Contains(p.Err, control.NoAnswer))
			return cut && len(p.Through) == 0 && p.DirectErr == "" && len(p.Direct) == etcdRequests
		})
		if err != nil {
			return fmt.Errorf("%s on %s armed and not seen: %w", t.Name, n.Name(), err)
		}
		Emit(t, event.FaultSeen, n, "etcd doesn't answer through the proxy (%s), and within %s past it", p.Err,
			round(control.Fastest(p.Direct)))
		return nil
	})
}

// Recover disarms the outage and returns when requests through the proxy are answered.
func (f *EtcdOutage) Recover(ctx context.Context, t Target) error {
	return onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.EtcdClient) error {
		how, err := lift(ctx, c, t, control.FaultOutage)
		if err != nil {
			return err
		}
		p, err := measure(ctx, c, SeenWithin, etcdLimit, func(p control.EtcdProbe) bool { return p.Healthy })
		if err != nil {
			return fmt.Errorf("%s on %s disarmed and there are still no answers: %w", t.Name, n.Name(), err)
		}
		Emit(t, event.FaultGone, n, "%s; etcd answers within %s through the proxy", how,
			round(control.Slowest(p.Through)))
		return nil
	})
}
