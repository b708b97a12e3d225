package faults

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// longestOutage is less than what kubeadm's liveness probe of kube-apiserver tolerates without etcd: 8 failures, 10 s
// apart.
const longestOutage = 70 * time.Second

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "outage",
		Doc: "A connection that is cut: no answer reaches the client, and no request reaches the server.\n\n" +
			onConnection + " With connections: keep, open TCP connections stay open, new ones are accepted, and " +
			"everything that was sent arrives after the fault is lifted. With connections: reset, open TCP " +
			"connections and new ones are reset. The outage ends after atMost, or earlier if the harness lifts it. " +
			"With connection: etcd, atMost is below 70s: a longer outage would get kube-apiserver restarted by its " +
			"liveness probe. A component that elects a leader ends once it can't renew its lease, after 10s by " +
			"default, and is started again. The harness sees the outage and its end by requests to the server, " +
			"through the proxy and around it.",
		ChaosMesh: "NetworkChaos (partition, or a loss of 100)",
		Example: "name: no-etcd\nkind: outage\ntarget: {mode: all, selector: {component: etcd}}\nspec: " +
			"{connection: etcd, connections: keep, atMost: 66s}\n",
		Tested: `{"connection":"etcd","connections":"keep"}`,
		New: func() fault.Fault {
			return &Outage{
				Connections: control.OutageKeep,
				AtMost:      metav1.Duration{Duration: 66 * time.Second},
			}
		},
	})
}

// Outage cuts a connection's client off from the server.
type Outage struct {
	Connected
	Connections string          `json:"connections,omitempty" jsonschema:"keep: open and new TCP connections stay open and pass no data; reset: they are reset"`
	AtMost      metav1.Duration `json:"atMost,omitzero" jsonschema:"the outage ends after this time at the latest: above 0, and below 70s for etcd"`
}

// Validate refuses an outage that the proxy can't make, and one of etcd that kube-apiserver would not outlive.
func (f *Outage) Validate() error {
	of, err := f.known()
	if err != nil {
		return err
	}
	if f.Connections != control.OutageKeep && f.Connections != control.OutageReset {
		return fmt.Errorf(
			"connections is %q (want %s or %s)",
			f.Connections,
			control.OutageKeep,
			control.OutageReset,
		)
	}
	switch d := f.AtMost.Duration; {
	case of.Server == "etcd" && (d <= 0 || d >= longestOutage):
		return fmt.Errorf(
			"atMost is %s (want above 0 and below %s, or kube-apiserver's liveness probe restarts it)",
			d,
			longestOutage,
		)
	case d <= 0 || d > control.MaxExpires:
		return fmt.Errorf("atMost is %s (want above 0 and at most %s)", d, control.MaxExpires)
	}
	return nil
}

// LosesLease returns the client if it ends itself in the outage.
func (f *Outage) LosesLease() string { return f.electing(f.AtMost.Duration >= leaseRenewed) }

// Modelled returns a sentence on what is imitated.
func (f *Outage) Modelled() []string {
	of := f.ends()
	return []string{
		fmt.Sprintf("%s itself went on: a proxy cut %s off from it", of.Server, of.Client),
	}
}

// Inject arms the outage and returns once a request through the proxy got no answer while one past the proxy did.
func (f *Outage) Inject(ctx context.Context, t fault.Target) error {
	return f.onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.ConnectionClient) error {
		a := Arm(t)
		a.Expires = control.Duration(min(t.Expires, f.AtMost.Duration))
		if _, err := c.ArmOutage(ctx, a, control.ConnectionOutage{Connections: f.Connections}); err != nil {
			return err
		}
		f.armed.Store(n.Name(), true)
		p, err := f.seen(ctx, c, SeenWithin, few(answerLimit), func(p control.ConnectionProbe) bool {
			cut := p.Err != "" && (f.Connections == control.OutageReset || strings.Contains(p.Err, control.NoAnswer))
			return cut && len(p.Through) == 0 && p.DirectErr == "" && len(p.Direct) == answers
		})
		if err != nil {
			return fmt.Errorf("%s on %s armed and not seen: %w", t.Name, n.Name(), err)
		}
		Emit(t, event.FaultSeen, n, "%s doesn't answer through the proxy (%s), and within %s past it", f.ends().Server,
			p.Err, round(control.Fastest(p.Direct)))
		return nil
	})
}

// Recover disarms the outage and returns when requests through the proxy are answered.
func (f *Outage) Recover(ctx context.Context, t fault.Target) error {
	return f.onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.ConnectionClient) error {
		how, err := f.lift(ctx, n, c, t, control.FaultOutage)
		if err != nil {
			return err
		}
		p, unled, err := f.gone(ctx, c, SeenWithin, few(answerLimit), func(p control.ConnectionProbe) bool { return p.Healthy })
		if err != nil {
			return fmt.Errorf("%s on %s disarmed and there are still no answers: %w", t.Name, n.Name(), err)
		}
		if unled != "" {
			emitUnled(t, n, how, unled)
			return nil
		}
		Emit(t, event.FaultGone, n, "%s; %s answers within %s through the proxy", how, f.ends().Server,
			round(control.Slowest(p.Through)))
		return nil
	})
}
