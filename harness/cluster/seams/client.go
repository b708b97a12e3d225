package seams

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
)

// Interposer returns the client of the CRI interposer on a node that runs commands. Faults drive the interposer with
// it, collectors read it.
func Interposer(n cluster.Node) (*control.Client, error) {
	run, err := runner(n, "CRI interposer")
	if err != nil {
		return nil, err
	}
	return control.NewClient(run), nil
}

// Proxy returns the client of a connection's proxy on a node that runs commands, or proxies' programs alone. Faults
// drive the proxy with it, collectors read it.
func Proxy(n cluster.Node, connection string) (*control.ConnectionClient, error) {
	of, err := control.ConnectionOf(connection)
	if err != nil {
		return nil, err
	}
	run, err := runner(n, "proxy of the connection "+connection)
	if err != nil {
		return nil, err
	}
	return control.NewConnectionClient(run, of), nil
}

// LoadBalancerAPI returns the client of the load balancer API on a node that runs commands, or proxies' programs
// alone. Faults drive the API with it.
func LoadBalancerAPI(n cluster.Node) (*control.LBaaSClient, error) {
	run, err := runner(n, "load balancer API")
	if err != nil {
		return nil, err
	}
	return control.NewLBaaSClient(run), nil
}

// ExtenderOf returns the client of kube-scheduler's extender on a node that runs commands, or proxies' programs alone.
// Faults drive the extender with it.
func ExtenderOf(n cluster.Node) (*control.ExtenderClient, error) {
	run, err := runner(n, "scheduler extender")
	if err != nil {
		return nil, err
	}
	return control.NewExtenderClient(run), nil
}

// runner returns a function that runs a proxy's program in the node. proxy is the name that an error gives it.
func runner(n cluster.Node, proxy string) (func(ctx context.Context, args []string,
	stdin []byte) ([]byte, error), error) {
	if run := n.Abilities().RunProxy; run != nil {
		return func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
			return run(ctx, stdin, args...)
		}, nil
	}
	x, err := cluster.Commands(n)
	if err != nil {
		return nil, fmt.Errorf("%w, which the %s needs", err, proxy)
	}
	return func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		if looks(args) {
			return x.Look(ctx, stdin, args...)
		}
		var in io.Reader
		if stdin != nil {
			in = bytes.NewReader(stdin)
		}
		return x.Exec(ctx, in, args...)
	}, nil
}

// looks reports whether a command of a proxy's program changes nothing.
func looks(args []string) bool {
	return slices.ContainsFunc(args[1:], func(a string) bool {
		return slices.Contains([]string{"probe", "counts", "state"}, a)
	})
}
