package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/wait"
)

// NotReadyError says which nodes were not Ready at the timeout, and what was seen of them last.
type NotReadyError struct {
	After time.Duration
	Seen  []string // one sentence a node, in the order asked for
	Err   error    // why the last look failed, or nil
}

// Error lists the nodes with their last observed conditions.
func (e *NotReadyError) Error() string {
	msg := fmt.Sprintf(
		"nodes not Ready after %s: %s",
		e.After.Round(time.Second),
		strings.Join(e.Seen, "; "),
	)
	if e.Err != nil {
		msg += fmt.Sprintf(" (the last look at them failed: %v)", e.Err)
	}
	return msg
}

// Unwrap returns why the last look failed, if it did.
func (e *NotReadyError) Unwrap() error { return e.Err }

// readyInterval is the time between two looks at the nodes. It is short because a run waits meanwhile. That is
// affordable, because each look is one list request.
const readyInterval = 200 * time.Millisecond

// lookTime bounds one look at the nodes. WaitReady may outlast its timeout by as much.
const lookTime = 5 * time.Second

// WaitReady returns once all the named nodes are Ready. When timeout passes first, the error is a *NotReadyError;
// when ctx ends first, it is ctx's error.
func WaitReady(
	ctx context.Context,
	client klient.Client,
	nodes []string,
	timeout time.Duration,
) error {
	if len(nodes) == 0 {
		return errors.New("waiting for nodes to be Ready: no nodes were named")
	}
	seen := map[string]*corev1.Node{}
	var last error
	err := wait.For(func(context.Context) (bool, error) {
		// Each look has its own timeout. A look that the end of the wait cut off would be reported as a failing API
		// server.
		look, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		var list corev1.NodeList
		if last = client.Resources().List(look, &list); last != nil {
			return false, nil
		}
		clear(seen)
		for _, n := range list.Items {
			seen[n.Name] = &n
		}
		return !slices.ContainsFunc(
			nodes,
			func(name string) bool { return !ready(seen[name]) },
		), nil
	}, wait.WithContext(ctx), wait.WithTimeout(timeout), wait.WithInterval(readyInterval), wait.WithImmediate())
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf(
			"waiting for nodes %s to be Ready: %w",
			strings.Join(nodes, ", "),
			ctx.Err(),
		)
	}
	report := &NotReadyError{After: timeout, Err: last}
	for _, name := range nodes {
		report.Seen = append(report.Seen, describe(name, seen[name]))
	}
	return report
}

func ready(n *corev1.Node) bool {
	if n == nil {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func describe(name string, n *corev1.Node) string {
	if n == nil {
		return name + " was not there"
	}
	var words []string
	for _, c := range n.Status.Conditions {
		words = append(
			words,
			fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message),
		)
	}
	if len(words) == 0 {
		return name + " had no conditions"
	}
	return name + " was " + strings.Join(words, ", ")
}
