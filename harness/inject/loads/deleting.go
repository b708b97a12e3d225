package loads

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// askEvery is how often the API server is asked for its goroutines while calls are on their way to their first delete.
const askEvery = 100 * time.Millisecond

// inDelete is how many calls had a worker in a delete, as the API server's goroutines show, or why that is unknown.
type inDelete struct {
	calls int
	err   error
}

// deleting asks the API server repeatedly in how many calls a worker deletes: those calls have finished their lists. It
// ends with ctx.
func (o *objects) deleting(ctx context.Context) <-chan inDelete {
	out := make(chan inDelete)
	go func() {
		for {
			n, err := o.countDeleting(ctx)
			select {
			case out <- inDelete{n, err}:
			case <-ctx.Done():
				return
			}
			if wait(ctx, askEvery) != nil {
				return
			}
		}
	}()
	return out
}

func (o *objects) countDeleting(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	servers := o.Cluster.Components("kube-apiserver")
	if len(servers) == 0 {
		return 0, errors.New("there is no kube-apiserver to ask for its goroutines")
	}
	n := 0
	for _, s := range servers {
		in, err := countIn(ctx, s)
		if err != nil {
			return 0, fmt.Errorf("counting the calls that delete: %w", err)
		}
		n += in
	}
	return n, nil
}

// countIn counts goroutines in Store.Delete that were called by a worker of Store.DeleteCollection. With one worker for
// each call, that is the number of calls.
func countIn(ctx context.Context, server cluster.Component) (int, error) {
	rc, err := server.Get(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	defer rc.Close()
	d, err := goroutine.Read(rc)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, g := range d.Groups {
		one, collection := false, false
		for _, f := range g.Frames {
			one = one || strings.HasSuffix(f.Func, "registry.(*Store).Delete")
			collection = collection ||
				strings.Contains(f.Func, "registry.(*Store).DeleteCollection.func")
		}
		if one && collection {
			n += g.Count
		}
	}
	return n, nil
}
