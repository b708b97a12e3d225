package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// registered is where an API server learns of a fault's endpoint, and where it forgets it.
type registered interface {
	// hooks returns the paths that the endpoint needs.
	hooks() []webhook.Hook
	// add tells the API server of the endpoint.
	add(context.Context, *webhook.Endpoint) error
	// try sends a request without effect about which the API server asks an endpoint that it was told of. It returns the
	// code of the answer, 0 if there was none, and whether the request got past the place where it asks.
	try(context.Context) (code int, past bool)
	// remove has the API server forget the endpoint, and returns when that was seen. It is idempotent and works from any
	// process.
	remove(context.Context) error
}

// Inject registers the webhooks and returns once the API server was seen to ask them.
func (f *Webhook) Inject(ctx context.Context, t Target) error {
	return f.each(t, func(n cluster.Node, r registered) error {
		e, err := f.serve(ctx, t, n, r)
		if err != nil {
			return err
		}
		if err := r.add(ctx, e); err != nil {
			return err
		}
		before := e.Seen()
		if err := webhook.Await(ctx, func(ctx context.Context) (bool, error) {
			code, _ := r.try(ctx)
			return grown(before, e.Seen()), fmt.Errorf("a request without effect was answered with %d, and the webhook was "+
				"not asked", code)
		}); err != nil {
			return err
		}
		Emit(t, event.FaultSeen, n, "the API server asks the webhook")
		return nil
	})
}

// grown tells whether every count is larger than it was.
func grown(before, now []int64) bool {
	for i := range now {
		if now[i] <= before[i] {
			return false
		}
	}
	return true
}

// Recover removes the webhooks, and returns when the registration was seen to be gone. Where this process serves them,
// the API server was also seen not to ask them.
func (f *Webhook) Recover(ctx context.Context, t Target) error {
	return f.each(t, func(n cluster.Node, r registered) error {
		if err := r.remove(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		e := f.serving[n.Name()]
		delete(f.serving, n.Name())
		f.mu.Unlock()
		if e != nil {
			defer e.Close()
			if err := unasked(ctx, r, e); err != nil {
				return err
			}
		}
		Emit(t, event.FaultGone, n, "the webhook is gone")
		return nil
	})
}

// unasked returns once a request without effect got past the place where the API server asks, and it did not ask.
func unasked(ctx context.Context, r registered, e *webhook.Endpoint) error {
	return webhook.Await(ctx, func(ctx context.Context) (bool, error) {
		before := e.Seen()
		code, past := r.try(ctx)
		return past && slices.Equal(e.Seen(), before), fmt.Errorf("its registration is gone; a request without effect was "+
			"answered with %d, and the webhook was asked %d times in all, %d before", code, e.Seen(), before)
	})
}

// serve returns the endpoint for a node's API server, and starts it if there is none. After the fault's time limit it
// removes the registration, and ends.
func (f *Webhook) serve(ctx context.Context, t Target, n cluster.Node, r registered) (*webhook.Endpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.serving[n.Name()]; e != nil {
		return e, nil
	}
	address, err := t.Cluster.CallableAddress(ctx)
	if err != nil {
		return nil, err
	}
	record, err := webhook.NewRecord(t.Writer, t.Arm, n.Name())
	if err != nil {
		return nil, err
	}
	e, err := webhook.Start(address, t.Arm, record, r.hooks()...)
	if err != nil {
		record.End()
		return nil, err
	}
	time.AfterFunc(t.Expires, func() {
		f.mu.Lock()
		mine := f.serving[n.Name()] == e
		f.mu.Unlock()
		if mine {
			_ = r.remove(context.Background()) // it gives up by itself; Recover will say what is in the way
		}
		e.Close()
	})
	if f.serving == nil {
		f.serving = map[string]*webhook.Endpoint{}
	}
	f.serving[n.Name()] = e
	return e, nil
}

// each acts for all nodes of the target at once, and returns all errors.
func (f *Webhook) each(t Target, act func(cluster.Node, registered) error) error {
	client, err := APIClient(t)
	if err != nil {
		return err
	}
	return Each(t.Nodes, func(n cluster.Node) error {
		r := admission{f, webhook.Registration{Client: client, Node: n.Name(), Fault: t.Name}}
		if err := act(n, r); err != nil {
			return fmt.Errorf("%s: the webhook for %s: %w", t.Name, n.Name(), err)
		}
		return nil
	})
}
