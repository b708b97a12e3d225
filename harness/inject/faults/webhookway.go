package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// way is how the API server reaches a fault's webhook through the proxy of the connection seams.Webhooks. A nil one stands
// for no proxy.
type way struct {
	proxy  *control.ConnectionClient
	name   control.WayName
	limit  time.Duration
	opened *sync.Map // names of ways that this process opened and hasn't closed since
}

// wayOf returns the way to the webhook for a node, or nil if the trial lacks the seam. The API servers of several control
// planes would look for the way on their own loopback interface each, where it isn't.
func (f *Webhook) wayOf(t fault.Target, n cluster.Node) (*way, error) {
	if f.Extender != nil || !slices.Contains(t.Seams, seams.Webhooks) {
		return nil, nil
	}
	planes := slices.DeleteFunc(
		slices.Clone(t.Cluster.Nodes()),
		func(n cluster.Node) bool { return n.Role() != cluster.ControlPlane },
	)
	if len(planes) != 1 {
		return nil, fmt.Errorf(
			"the seam %s leads one API server, and the cluster has %d control planes",
			seams.Webhooks,
			len(planes),
		)
	}
	proxy, err := seams.Proxy(planes[0], seams.Webhooks)
	if err != nil {
		return nil, err
	}
	return &way{
		proxy,
		control.WayName{ID: t.Name + " for " + n.Name(), Owner: t.Run},
		t.Expires + outlives,
		&f.opened,
	}, nil
}

// open makes the API server call the endpoint through the proxy. If another process opened the way, open replaces it: that
// one leads to an endpoint that may be gone.
func (w *way) open(ctx context.Context, e *webhook.Endpoint) error {
	if w == nil {
		return nil
	}
	want := control.Way{Server: e.Address(), CA: string(e.Client("").CABundle),
		Arm: control.Arm{ID: w.name.ID, Owner: w.name.Owner, Expires: control.Duration(w.limit)}}
	if _, ours := w.opened.Load(w.name); !ours {
		if err := w.close(ctx); err != nil {
			return err
		}
	}
	r, err := w.proxy.OpenWay(ctx, want)
	if err != nil {
		return err
	}
	w.opened.Store(w.name, true)
	e.Through(r.Listen)
	return nil
}

// close ends the way. It is idempotent and works from any process. A proxy that knows nothing of a way that this process
// opened was started anew, and nobody knows for how long the API server reached no webhook.
func (w *way) close(ctx context.Context) error {
	if w == nil {
		return nil
	}
	d, err := w.proxy.CloseWay(ctx, control.Disarm{ID: w.name.ID, Owner: w.name.Owner})
	if err != nil {
		return err
	}
	if _, ours := w.opened.Load(w.name); !ours || len(d.IDs) > 0 {
		w.opened.Delete(w.name)
		return nil
	}
	s, err := w.proxy.State(ctx)
	if err != nil {
		return err // the next close asks again
	}
	w.opened.Delete(w.name)
	if !slices.ContainsFunc(s.Ways, func(r control.WayRecord) bool { return r.Name() == w.name }) {
		return fmt.Errorf("the proxy of %s was started anew while the webhook was called through it, which ended that", seams.Webhooks)
	}
	return nil
}

// over ends a webhook by its time limit: first its registration, then its way, then the endpoint, and says so.
func (f *Webhook) over(
	t fault.Target,
	n cluster.Node,
	r registered,
	w *way,
	e *webhook.Endpoint,
) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*webhook.Seen)
	defer cancel()
	said := "its registration is removed"
	if _, err := r.remove(ctx); err != nil { // it gives up by itself; Recover will say what is in the way
		said = "its registration could not be removed: " + err.Error()
	}
	if err := w.close(ctx); err != nil {
		w.opened.Store(w.name, true) // so that Recover says it, too
		said += fmt.Sprintf(
			"; its way through the proxy of %s could not be closed: %v",
			seams.Webhooks,
			err,
		)
	} else if w != nil {
		said += fmt.Sprintf("; the proxy of %s leads nowhere for it any more", seams.Webhooks)
	}
	e.Close()
	Emit(t, event.Note, n, "the webhook ended by its time limit; %s", said)
}
