package fault

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
)

const (
	// etcdLimit is how long a request waits for an etcd that isn't delayed on purpose.
	etcdLimit = 3 * time.Second
	// etcdRequests is how many answers in a row have to agree.
	etcdRequests = 3
)

// onProxies acts on the etcd proxies of all nodes of the target at once and returns all errors.
func onProxies(ctx context.Context, t Target,
	act func(context.Context, cluster.Node, *control.EtcdClient) error) error {
	return Each(t.Nodes, func(n cluster.Node) error {
		c, err := seam.EtcdProxy(n)
		if err != nil {
			return err
		}
		return act(ctx, n, c)
	})
}

// lift disarms a fault and returns how it ended, in words.
func lift(ctx context.Context, c *control.EtcdClient, t Target, fault string) (string, error) {
	d, err := c.Disarm(ctx, control.Disarm{ID: t.Name, Owner: t.Run, Fault: fault})
	if err != nil {
		return "", err
	}
	if len(d.IDs) > 0 {
		return "lifted", nil
	}
	s, err := c.State(ctx)
	if err != nil {
		return "", err
	}
	for i := len(s.Arms) - 1; i >= 0; i-- {
		if r := s.Arms[i]; r.ID == t.Name && r.Owner == t.Run && r.Fault == fault && !r.Armed() {
			if r.Expired {
				return "lifted by its own time limit after " + round(r.EndedAt.Sub(r.ArmedAt)).String(), nil
			}
			return "lifted already", nil
		}
	}
	return "not armed", nil
}

// answered reports whether every request got an answer of a healthy etcd, through the proxy and past it.
func answered(p control.EtcdProbe) bool {
	return p.Healthy && len(p.Through) == etcdRequests && p.DirectErr == "" && len(p.Direct) == etcdRequests
}

// proxyAdds returns how much longer the fastest answer through the proxy takes than the fastest one past it: a request
// that happens to be slow must not pass for the fault.
func proxyAdds(p control.EtcdProbe) time.Duration {
	return control.Fastest(p.Through) - control.Fastest(p.Direct)
}

// measure probes etcd until want is true of a probe, for no longer than within. limit bounds each answer.
func measure(ctx context.Context, c *control.EtcdClient, within, limit time.Duration,
	want func(control.EtcdProbe) bool) (control.EtcdProbe, error) {
	return ProbeUntil(ctx, within,
		func(ctx context.Context) (control.EtcdProbe, error) { return c.Probe(ctx, etcdRequests, limit) }, want)
}

// ProbeUntil calls probe until want is true of its result, for no longer than within. The error shows the last result.
func ProbeUntil[P any](ctx context.Context, within time.Duration, probe func(context.Context) (P, error),
	want func(P) bool) (P, error) {
	var seen P
	last := fmt.Errorf("within %s", within)
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, within, true,
		func(ctx context.Context) (bool, error) {
			p, err := probe(ctx)
			switch {
			case err == nil:
				seen, last = p, fmt.Errorf("within %s; the last probe: %+v", within, p)
				return want(p), nil
			case ctx.Err() == nil:
				last = err
			}
			return false, nil
		})
	if err != nil && ctx.Err() == nil {
		return seen, last
	}
	if err != nil {
		return seen, context.Cause(ctx)
	}
	return seen, nil
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
