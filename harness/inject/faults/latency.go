package faults

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/chaos-mesh/chaos-mesh/api/v1alpha1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "latency",
		Doc: "A connection on which answers come later, by latency plus or minus jitter.\n\n" +
			onConnection + " The proxy delays everything that the server sends, on open TCP connections and on new " +
			"ones. The server itself is not slow. latency is either 0s, which injects nothing and serves as a " +
			"control, or whole milliseconds from 10ms on. jitter is whole milliseconds, at most half of latency; its " +
			"default is 0s. Both together are at most 10s. correlation and reorder are fields of Chaos Mesh that the " +
			"proxy can't imitate. They are refused, except for a correlation of 0. The harness measures the delay " +
			"and its end by requests to the server, through the proxy and around it. If the harness doesn't lift the " +
			"fault, the proxy does after the time limit: the fault phase's deadline plus 2m. With connection: etcd, " +
			"an etcd that takes more than 2s to answer for 80s gets kube-apiserver restarted by its liveness probe. A component " +
			"that elects a leader may end itself if answers of the API server take 4s.",
		ChaosMesh: "NetworkChaos (delay)",
		Example: "name: slow-etcd\nkind: latency\ntarget: {mode: all, selector: {component: etcd}}\nspec: " +
			"{connection: etcd, latency: 1s, jitter: 100ms}\n",
		Tested: `{"connection":"etcd","latency":"250ms"}`,
		New:    func() fault.Fault { return &Latency{} },
	})
}

// leastLatency is the shortest latency whose presence and absence can be measured.
const leastLatency = 10 * time.Millisecond

// Latency makes a connection's server slow to answer, in the words of Chaos Mesh's delay. Latency and jitter are durations with
// their unit. Validate refuses correlation and reorder with the reason.
type Latency struct {
	Connected
	v1alpha1.DelaySpec
}

// Validate refuses a delay that the proxy can't make, before anything is built for it.
func (f *Latency) Validate() error {
	if _, err := f.known(); err != nil {
		return err
	}
	if f.Reorder != nil {
		return fmt.Errorf("reorder is set: the proxy stands in a stream of bytes, which has an order (leave it out)")
	}
	if f.Correlation != "" {
		if v, err := strconv.ParseFloat(f.Correlation, 64); err != nil || v != 0 {
			return fmt.Errorf(
				"correlation is %q: the proxy draws each delay by itself and knows none (leave it out)",
				f.Correlation,
			)
		}
	}
	d, err := f.delay()
	if err != nil {
		return err
	}
	latency, jitter := time.Duration(d.Latency), time.Duration(d.Jitter)
	switch {
	case latency != 0 && latency < leastLatency || latency%time.Millisecond != 0:
		return fmt.Errorf(
			"latency is %s (want 0s, or whole milliseconds from %s on: less can't be told from none)",
			latency,
			leastLatency,
		)
	case jitter < 0 || jitter%time.Millisecond != 0 || jitter > latency/2:
		return fmt.Errorf(
			"jitter is %s (want whole milliseconds, at most half of the latency of %s: with more an "+
				"answer could come as if undelayed)",
			jitter,
			latency,
		)
	case latency+jitter > control.MaxConnectionLatency:
		return fmt.Errorf("latency and jitter are %s together (want at most %s)", latency+jitter,
			control.MaxConnectionLatency)
	}
	return nil
}

// delay returns the latency and the jitter as durations. A jitter left out is 0.
func (f *Latency) delay() (out control.ConnectionLatency, err error) {
	for _, one := range []struct {
		name, text string
		into       *control.Duration
	}{{"latency", f.Latency, &out.Latency}, {"jitter", f.Jitter, &out.Jitter}} {
		if one.text == "" && one.name == "jitter" {
			continue
		}
		d, err := time.ParseDuration(one.text)
		if err != nil {
			return out, fmt.Errorf(
				"%s is %q (want a duration with its unit: 250ms, 1.5s)",
				one.name,
				one.text,
			)
		}
		*one.into = control.Duration(d)
	}
	return out, nil
}

// LosesLease returns the client if it may give up the answers to its renewals, and so end itself.
func (f *Latency) LosesLease() string {
	d, err := f.delay()
	return f.electing(err == nil && time.Duration(d.Latency+d.Jitter) >= leaseAsked)
}

// Modelled returns a sentence on what is imitated, unless the latency is 0.
func (f *Latency) Modelled() []string {
	if d, err := f.delay(); err != nil || d.Latency == 0 {
		return nil
	}
	of := f.ends()
	return []string{
		fmt.Sprintf(
			"%s itself was not slow: a proxy delayed its answers to %s",
			of.Server,
			of.Client,
		),
	}
}

// added returns how much longer an answer must take for the delay to count as seen.
func added(d control.ConnectionLatency) time.Duration {
	return time.Duration(d.Latency-d.Jitter) * 8 / 10
}

// Inject arms the delay and returns once three answers in a row, on a warm connection through the proxy, took that much
// longer than answers that bypass the proxy. A latency of 0 arms nothing, and nothing is measured.
func (f *Latency) Inject(ctx context.Context, t fault.Target) error {
	d, err := f.delay()
	if err != nil {
		return err
	}
	most := time.Duration(d.Latency + d.Jitter)
	return f.onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.ConnectionClient) error {
		if d.Latency == 0 {
			Emit(t, event.Note, n, "a latency of 0 injects nothing: %s is as fast as before", f.ends().Server)
			return ctx.Err()
		}
		if _, err := c.ArmLatency(ctx, Arm(t), d); err != nil {
			return err
		}
		f.armed.Store(n.Name(), true)
		// A handshake and three answers take the latency four times.
		p, err := f.seen(ctx, c, SeenWithin+4*most, few(answerLimit+most), func(p control.ConnectionProbe) bool {
			return answered(p) && proxyAdds(p) >= added(d)
		})
		if err != nil {
			return fmt.Errorf("%s on %s armed and not measured: %w", t.Name, n.Name(), err)
		}
		Emit(t, event.FaultSeen, n, "%s answers within %s to %s through the proxy, within %s past it",
			f.ends().Server, round(control.Fastest(p.Through)),
			round(control.Slowest(p.Through)), round(control.Fastest(p.Direct)))
		return nil
	})
}

// Recover disarms the delay and returns once the delay is measured to be gone: the proxy adds less than 50 ms, and less
// than half of what counted as seen.
func (f *Latency) Recover(ctx context.Context, t fault.Target) error {
	d, err := f.delay()
	if err != nil {
		return err
	}
	gone := 50 * time.Millisecond
	if d.Latency > 0 {
		gone = min(gone, added(d)/2)
	}
	return f.onProxies(ctx, t, func(ctx context.Context, n cluster.Node, c *control.ConnectionClient) error {
		how, err := f.lift(ctx, n, c, t, control.FaultLatency)
		if err != nil {
			return err
		}
		p, unled, err := f.gone(ctx, c, SeenWithin, few(answerLimit),
			func(p control.ConnectionProbe) bool { return answered(p) && proxyAdds(p) < gone })
		if err != nil {
			return fmt.Errorf("%s on %s disarmed and not measured to be gone: %w", t.Name, n.Name(), err)
		}
		if unled != "" {
			emitUnled(t, n, how, unled)
			return nil
		}
		Emit(t, event.FaultGone, n, "%s; %s answers within %s through the proxy, within %s past it", how,
			f.ends().Server, round(control.Fastest(p.Through)),
			round(control.Fastest(p.Direct)))
		return nil
	})
}
