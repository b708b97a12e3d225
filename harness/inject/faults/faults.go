// Package faults has the faults that several scenarios can use, each in its own file. A fault that makes sense for one
// scenario only stands beside it, in scenarios/NAME/kinds, and can use what the faults here have in common.
package faults

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
)

// APIClient returns a client of the target's cluster whose requests never wait for each other. A request that waits its
// turn would be late to see a change. At the end it would say that time ran out instead of what it saw.
func APIClient(t fault.Target) (*kubernetes.Clientset, error) {
	cfg := t.Cluster.RESTConfig()
	cfg.QPS = -1
	return kubernetes.NewForConfig(cfg)
}

// Each calls act on all items, such as nodes, at once and joins the errors.
func Each[T any](all []T, act func(T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, n := range all {
		wg.Go(func() { errs[i] = act(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// SeenWithin is how long the effect of a delay may take to be observed.
const SeenWithin = 30 * time.Second

// Emit reports what the fault did on a node.
func Emit(t fault.Target, typ string, n cluster.Node, format string, args ...any) {
	t.Events.Emit(event.Event{Type: typ, Arm: t.Arm, Message: t.Name + ": " + fmt.Sprintf(format, args...),
		Fields: map[string]any{"fault": t.Name, "node": n.Name()}})
}

// Arm returns what arms a proxy for the target: whose it is, and after what time it lifts itself.
func Arm(t fault.Target) control.Arm {
	return control.Arm{ID: t.Name, Owner: t.Run, Expires: control.Duration(t.Expires)}
}
