package faults

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
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
	try(context.Context) (code int, past bool, err error)
	// remove has the API server forget the endpoint, and returns when that was seen, and whether try can show more. It is
	// idempotent and works from any process.
	remove(context.Context) (more bool, err error)
}

// Inject registers the webhooks and returns once the API server was seen to ask them.
func (f *Webhook) Inject(ctx context.Context, t fault.Target) error {
	return f.each(t, func(n cluster.Node, r registered) error {
		w, err := f.wayOf(t, n)
		if err != nil {
			return err
		}
		e, err := f.serve(ctx, t, n, r, w)
		if err != nil {
			return err
		}
		if err := w.open(ctx, e); err != nil {
			return err
		}
		if err := r.add(ctx, e); err != nil {
			return err
		}
		before := e.Seen()
		if err := webhook.Await(ctx, func(ctx context.Context) (bool, error) {
			code, _, err := r.try(ctx)
			return grown(before, e.Seen()), unseen(code, err, "and the webhook was not asked")
		}); err != nil {
			return err
		}
		Emit(t, event.FaultSeen, n, "%s asks the webhook", f.askedBy())
		return nil
	})
}

// askedBy returns who asks the webhook when Inject sees that it is in force.
func (f *Webhook) askedBy() string {
	if f.Extender != nil {
		return "the extender that kube-scheduler has"
	}
	return "the API server"
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
func (f *Webhook) Recover(ctx context.Context, t fault.Target) error {
	return f.each(t, func(n cluster.Node, r registered) error {
		w, err := f.wayOf(t, n)
		if err != nil {
			return err
		}
		more, err := r.remove(ctx)
		if err != nil {
			return err
		}
		f.mu.Lock()
		e := f.serving[n.Name()]
		delete(f.serving, n.Name())
		f.mu.Unlock()
		if e != nil {
			defer e.Close()
		}
		if e != nil && more {
			if err := unasked(ctx, r, e); err != nil {
				return err
			}
		}
		if err := w.close(ctx); err != nil {
			return err
		}
		Emit(t, event.FaultGone, n, "the webhook is gone")
		return nil
	})
}

// unasked returns once a request without effect got past the place where the API server asks, and it did not ask.
func unasked(ctx context.Context, r registered, e *webhook.Endpoint) error {
	return webhook.Await(ctx, func(ctx context.Context) (bool, error) {
		before := e.Seen()
		code, past, err := r.try(ctx)
		now := e.Seen()
		what := "and the webhook was not asked"
		if !slices.Equal(now, before) {
			what = "and the webhook was asked"
		}
		return past && slices.Equal(now, before), unseen(code, err, "its registration is gone, "+what)
	})
}

// unseen says how a request without effect was answered, which wasn't as it should be.
func unseen(code int, err error, what string) error {
	if err != nil {
		return fmt.Errorf("a request without effect was answered with %d, %s: %v", code, what, err) // whatever it is, the next may see it
	}
	return fmt.Errorf("a request without effect was answered with %d, %s", code, what)
}

// outlives is how much longer the endpoint of an extender serves than the extender forwards, and a way leads to a webhook
// than the webhook is there: no request is to be forwarded to nobody, and the harness ends a way itself unless it is dead.
const outlives = 15 * time.Second

// serve returns the endpoint for a node's API server, and starts it if there is none. After the fault's time limit it
// removes the registration and the way w, and ends.
func (f *Webhook) serve(
	ctx context.Context,
	t fault.Target,
	n cluster.Node,
	r registered,
	w *way,
) (*webhook.Endpoint, error) {
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
	limit := t.Expires
	if f.Extender != nil {
		limit += outlives
	}
	time.AfterFunc(limit, func() {
		f.mu.Lock()
		mine := f.serving[n.Name()] == e
		f.mu.Unlock()
		if mine && f.Extender == nil { // an extender has the time limit itself
			f.over(t, n, r, w, e)
		}
		e.Close()
	})
	if f.serving == nil {
		f.serving = map[string]*webhook.Endpoint{}
	}
	f.serving[n.Name()] = e
	return e, nil
}

// each acts at all places of registration at once, and returns all errors. An admission webhook is registered for each
// node of the target, and a conversion webhook once.
func (f *Webhook) each(t fault.Target, act func(cluster.Node, registered) error) error {
	client, err := APIClient(t)
	if err != nil {
		return err
	}
	nodes, place := t.Nodes, func(n cluster.Node) (registered, error) {
		return admission{
			f,
			webhook.Registration{Client: client, Run: t.Run, Node: n.Name(), Fault: t.Name},
		}, nil
	}
	if f.Extender != nil {
		place = func(n cluster.Node) (registered, error) { return newExtended(f, t, n) }
	}
	if f.Conversion != nil {
		nodes, place = t.Nodes[:1], func(n cluster.Node) (registered, error) { return newConversion(f, t, n, client) }
	}
	return Each(nodes, func(n cluster.Node) error {
		r, err := place(n)
		if err == nil {
			err = act(n, r)
		}
		if err != nil {
			return fmt.Errorf("%s: the webhook for %s: %w", t.Name, n.Name(), err)
		}
		return nil
	})
}
