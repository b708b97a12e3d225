package faults

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "bandwidth",
		Doc: "A connection on which answers come in slowly, at most rate bytes per second on each TCP connection.\n\n" +
			onConnection + " The proxy limits what the server sends, on open TCP connections and on new ones; what the " +
			"client sends is not limited. Nothing is lost: the rest waits, first in the proxy and then at the server. " +
			"Small answers are hardly late, and large ones are. rate is whole thousands, from 1k to 1M. The harness " +
			"measures the limit and its end by reading something long of the server's, through the proxy and around it. " +
			"If the harness doesn't lift the fault, the proxy does after the time limit: the fault phase's deadline " +
			"plus 2m.",
		ChaosMesh: "NetworkChaos (bandwidth)",
		Example: "name: narrow-etcd\nkind: bandwidth\ntarget: {mode: all, selector: {component: etcd}}\nspec: " +
			"{connection: etcd, rate: 64k}\n",
		Tested: `{"connection":"etcd","rate":"50k"}`,
		New:    func() fault.Fault { return &Bandwidth{} },
	})
}

// Bandwidth limits how fast a connection's server gets its answers through.
type Bandwidth struct {
	Connected
	Rate string `json:"rate" jsonschema:"bytes per second on each TCP connection, in whole thousands, from 1k to 1M"`
}

// Validate refuses a bandwidth that the proxy can't make, or that can't be told from none.
func (f *Bandwidth) Validate() error {
	if _, err := f.known(); err != nil {
		return err
	}
	if _, err := f.rate(); err != nil {
		return fmt.Errorf(
			"rate is %q (want whole thousands of bytes per second, from 1k to 1M: more can't be told from no "+
				"limit)",
			f.Rate,
		)
	}
	return nil
}

// rate returns the rate in bytes per second.
func (f *Bandwidth) rate() (int64, error) {
	q, err := resource.ParseQuantity(f.Rate)
	if err != nil {
		return 0, err
	}
	rate, whole := q.AsInt64()
	if !whole || rate < control.LeastConnectionRate || rate > control.MostConnectionRate ||
		rate%control.LeastConnectionRate != 0 {
		return 0, fmt.Errorf("the rate %s is out of range", f.Rate)
	}
	return rate, nil
}

// leaseRate is the rate, in bytes per second, below which the answer to the renewal of a lease may come too late, because
// the answers to watches share its connection.
const leaseRate = 50_000

// LosesLease returns the client if the answers to its renewals may come too late.
func (f *Bandwidth) LosesLease() string {
	rate, err := f.rate()
	return f.electing(err == nil && rate < leaseRate)
}

// Modelled returns a sentence on what is imitated.
func (f *Bandwidth) Modelled() []string {
	of := f.ends()
	return []string{
		fmt.Sprintf(
			"the network was as fast as ever: a proxy let %s have the answers of %s at %s bytes per "+
				"second",
			of.Client,
			of.Server,
			f.Rate,
		),
	}
}

// sample returns how many bytes are read to measure a rate, and how long they take at that rate.
func sample(rate int64) (bytes int, takes time.Duration) {
	bytes = int(max(rate/2, 4000))
	return bytes, time.Duration(bytes) * time.Second / time.Duration(rate)
}

// sampled returns how a sample is read, how long it may take until it is as wanted, and how long it takes at the rate.
func sampled(rate int64) (ask asked, within, takes time.Duration) {
	bytes, takes := sample(rate)
	limit := answerLimit + 3*takes
	return func(ctx context.Context, c *control.ConnectionClient) (control.ConnectionProbe, error) {
		return c.ProbeBytes(ctx, bytes, limit)
	}, SeenWithin + 2*limit, takes
}

// sizedUp returns whether a sample came, both ways, in times as wanted: through the proxy and past it. A handshake takes some
// thousand bytes.
func sizedUp(want func(through, direct time.Duration) bool) func(control.ConnectionProbe) bool {
	return func(p control.ConnectionProbe) bool {
		return p.Healthy && p.DirectErr == "" &&
			want(control.Fastest(p.Through), control.Fastest(p.Direct))
	}
}

// Inject arms the bandwidth and returns once a sample took about as long through the proxy as the rate says, and less
// than half of that past the proxy.
func (f *Bandwidth) Inject(ctx context.Context, t fault.Target) error {
	rate, err := f.rate()
	if err != nil {
		return err
	}
	return f.onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.ConnectionClient) error {
		if _, err := c.ArmBandwidth(ctx, Arm(t), control.ConnectionBandwidth{Rate: rate}); err != nil {
			return err
		}
		f.armed.Store(n.Name(), true)
		bytes, _ := sample(rate)
		ask, within, takes := sampled(rate)
		p, err := f.seen(ctx, c, within, ask, sizedUp(func(through, direct time.Duration) bool {
			return through >= takes*8/10 && direct < takes/2
		}))
		if err != nil {
			return fmt.Errorf("%s on %s armed and not measured: %w", t.Name, n.Name(), err)
		}
		Emit(t, event.FaultSeen, n, "%d bytes of %s take %s through the proxy, %s past it", bytes, f.ends().Server,
			round(control.Fastest(p.Through)), round(control.Fastest(p.Direct)))
		return nil
	})
}

// Recover disarms the bandwidth and returns once a sample took less than half of what the rate says.
func (f *Bandwidth) Recover(ctx context.Context, t fault.Target) error {
	rate, err := f.rate()
	if err != nil {
		return err
	}
	return f.onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.ConnectionClient) error {
		how, err := f.lift(ctx, n, c, t, control.FaultBandwidth)
		if err != nil {
			return err
		}
		bytes, _ := sample(rate)
		ask, within, takes := sampled(rate)
		p, unled, err := f.gone(ctx, c, within, ask, sizedUp(func(through, _ time.Duration) bool { return through < takes/2 }))
		if err != nil {
			return fmt.Errorf("%s on %s disarmed and not measured to be gone: %w", t.Name, n.Name(), err)
		}
		if unled != "" {
			emitUnled(t, n, how, unled)
			return nil
		}
		Emit(t, event.FaultGone, n, "%s; %d bytes of %s take %s through the proxy, %s past it", how, bytes, f.ends().Server,
			round(control.Fastest(p.Through)), round(control.Fastest(p.Direct)))
		return nil
	})
}
