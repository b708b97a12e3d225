package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/scenario"
)

const (
	// answerLimit is how long a request waits for a server that isn't delayed on purpose.
	answerLimit = 3 * time.Second
	// answers is how many answers in a row have to agree.
	answers = 3
)

// onConnection is part of the docs of each fault on a connection.
const onConnection = "connection is one of the scenario's seams with a proxy: relapse list seams has them. With " +
	"apiserver-webhook, the fault acts on all webhooks of the trial, and has to come after one: after: {name: …}."

// Connected is the part that all faults on a connection have in common.
type Connected struct {
	Connection string `json:"connection" jsonschema:"the connection, by the name of its seam, as in etcd"`

	armed sync.Map // names of nodes whose proxy this process armed, and of which it wasn't lifted since
}

// Needs returns what the fault requires: the connection's seam, which the traffic passes through, and a webhook if its
// servers come and go.
func (f *Connected) Needs() fault.Needs {
	return fault.Needs{Seams: []string{f.Connection}, Webhook: f.ends().Ways}
}

// Choices lists the connections.
func (*Connected) Choices() map[string][]string {
	return map[string][]string{"connection": control.ConnectionNames()}
}

// A component that elects a leader renews its lease every 2 s, by default, gives up an answer after 5 s, and ends itself
// if it could not renew for 10 s. Until it was seen that a fault is gone takes a moment, too.
const (
	leaseRenewed = 7 * time.Second
	leaseAsked   = 4 * time.Second
)

// electing returns the connection's client if it elects a leader through the connection, and long is true.
func (f *Connected) electing(long bool) string {
	of := f.ends()
	if row, _ := component.Of(of.Client); long && of.Server == "kube-apiserver" && row.Elects {
		return of.Client
	}
	return ""
}

// known returns the connection, or an error that names all that there are.
func (f *Connected) known() (control.Connection, error) {
	of, ok := control.Connections[f.Connection]
	if !ok {
		all := control.ConnectionNames()
		return of, fmt.Errorf(
			"connection is %q (want one of %s%s)",
			f.Connection,
			strings.Join(all, ", "),
			scenario.Meant(f.Connection, all),
		)
	}
	return of, nil
}

// ends returns the connection. A fault is validated before anything asks for its ends.
func (f *Connected) ends() control.Connection { return control.Connections[f.Connection] }

// onProxies acts on the connection's proxies of all nodes of the target at once and returns all errors.
func (f *Connected) onProxies(ctx context.Context, t fault.Target,
	act func(context.Context, cluster.Node, *control.ConnectionClient) error) error {
	return Each(t.Nodes, func(n cluster.Node) error {
		c, err := seams.Proxy(n, f.Connection)
		if err != nil {
			return err
		}
		return act(ctx, n, c)
	})
}

// lift disarms a fault in a node and returns how it ended, in words. A proxy that knows nothing of a fault with which
// this process armed it was started anew, and nobody knows for how long the fault was in force.
func (f *Connected) lift(
	ctx context.Context,
	n cluster.Node,
	c *control.ConnectionClient,
	t fault.Target,
	fault string,
) (string, error) {
	how, known, err := disarm(ctx, c, t, fault)
	if err != nil {
		return "", err
	}
	if _, armed := f.armed.LoadAndDelete(n.Name()); armed && !known {
		return "", fmt.Errorf(
			"%s: the proxy of %s was started anew while the fault was in force, which ended it",
			t.Name,
			n.Name(),
		)
	}
	return how, nil
}

// disarm disarms a fault and returns how it ended, in words, and whether the proxy knows of it.
func disarm(
	ctx context.Context,
	c *control.ConnectionClient,
	t fault.Target,
	fault string,
) (how string, known bool, err error) {
	d, err := c.Disarm(ctx, control.Disarm{ID: t.Name, Owner: t.Run, Fault: fault})
	if err != nil {
		return "", false, err
	}
	if len(d.IDs) > 0 {
		return "lifted", true, nil
	}
	s, err := c.State(ctx)
	if err != nil {
		return "", false, err
	}
	for i := len(s.Arms) - 1; i >= 0; i-- {
		if r := s.Arms[i]; r.ID == t.Name && r.Owner == t.Run && r.Fault == fault && !r.Armed() {
			if r.Expired {
				return "lifted by its own time limit after " + round(r.EndedAt.Sub(r.ArmedAt)).String(), true, nil
			}
			return "lifted already", true, nil
		}
	}
	return "not armed", false, nil
}

// answered reports whether every request got an answer of a healthy server, through the proxy and past it.
func answered(p control.ConnectionProbe) bool {
	return p.Healthy && len(p.Through) == answers && p.DirectErr == "" && len(p.Direct) == answers
}

// proxyAdds returns how much longer the fastest answer through the proxy takes than the fastest one past it: a request
// that happens to be slow must not pass for the fault.
func proxyAdds(p control.ConnectionProbe) time.Duration {
	return control.Fastest(p.Through) - control.Fastest(p.Direct)
}

// ProbeUntil calls probe until want is true of its result, for no longer than within. The error shows the last result.
func ProbeUntil[P any](
	ctx context.Context,
	within time.Duration,
	probe func(context.Context) (P, error),
	want func(P) bool,
) (P, error) {
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
