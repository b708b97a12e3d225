package collectors

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

const (
	// again is the pause before a list or watch that failed is tried once more.
	again = 500 * time.Millisecond
	// catchUp is how long a watch may take to show what a list has.
	catchUp = 5 * time.Second
)

// watched records the versions of one resource: it lists the objects, and watches them from then on.
type watched struct {
	resource string
	api      *ObjectsAPI
	prover   *prover

	mu      sync.Mutex
	gvr     schema.GroupVersionResource // written by run only
	lost    error                       // used by run only: why the watch could not go on; nil at first
	version string                      // everything up to this version was seen; "" before a list
	shown   map[string]uint64           // object -> its version, for objects that are there
	dropped map[string]uint64           // object -> the version at which it was deleted
	changed chan struct{}               // closed and replaced whenever something was shown
	cancel  func()                      // ends the current watch
	err     error                       // the last thing that went wrong
}

// run follows the resource until ctx ends.
func (f *watched) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.follow(ctx)
		f.mu.Lock()
		f.err = err
		// The watch can't go on from its last version.
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsNotFound(err) {
			if f.version != "" {
				f.lost = err
			}
			f.version, f.gvr = "", schema.GroupVersionResource{}
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// follow takes the next step: finds the resource, lists it, or watches it until the watch ends.
func (f *watched) follow(ctx context.Context) error {
	if f.gvr.Resource == "" {
		gvr, err := f.api.Resolve(ctx, f.resource)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.gvr = gvr
		f.mu.Unlock()
	}
	if f.from() == "" {
		if err := f.list(ctx); err != nil {
			return err
		}
	}
	return f.watch(ctx)
}

func (f *watched) from() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// list records the objects that there are, and for how long versions may have been missed before.
func (f *watched) list(ctx context.Context) error {
	one, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	all, err := f.api.Objects(f.gvr).List(one, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	now := time.Now().UTC()
	if f.lost != nil {
		from := f.prover.last()
		mark := churn.Version{Time: now, Type: churn.Lost, From: from.UTC(), Resource: f.resource,
			Namespace: f.api.namespace,
			Reason:    f.lost.Error()}
		if err := f.prover.put(f.prover.stream, mark); err != nil {
			return err
		}
		if !from.IsZero() {
			f.prover.stream.Gap(
				from,
				now,
				fmt.Sprintf("%s had to be listed anew: %v", f.resource, f.lost),
			)
		}
	}
	shown := map[string]uint64{}
	for _, o := range all.Items {
		if err := f.record(one, churn.Listed, &o, shown); err != nil {
			return err
		}
	}
	mark := churn.Version{
		Time:            now,
		Type:            churn.Synced,
		Resource:        f.resource,
		Namespace:       f.api.namespace,
		ResourceVersion: all.GetResourceVersion(),
	}
	if err := f.prover.put(f.prover.stream, mark); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown, f.dropped, f.lost, f.version = shown, map[string]uint64{}, nil, all.GetResourceVersion()
	f.wake()
	return nil
}

// record records a version of a chosen object, and notes it in shown.
func (f *watched) record(
	ctx context.Context,
	typ string,
	o *unstructured.Unstructured,
	shown map[string]uint64,
) error {
	meant, err := f.api.Meant(ctx, o.GetNamespace())
	if err != nil || !meant {
		return err
	}
	raw, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	v := churn.Version{
		Time: time.Now().
			UTC(),
		Type:            typ,
		Resource:        f.resource,
		Namespace:       o.GetNamespace(),
		Name:            o.GetName(),
		UID:             string(o.GetUID()),
		ResourceVersion: o.GetResourceVersion(),
		Object:          bytes.TrimSpace(raw),
	}
	n, err := number(v.ResourceVersion)
	if err != nil {
		return err
	}
	shown[v.Namespace+"/"+v.Name] = n
	return f.prover.put(f.prover.stream, v)
}

// watch records what a watch shows, and returns why the watch ended.
func (f *watched) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.cancel = cancel
	f.mu.Unlock()
	w, err := f.api.Objects(f.gvr).
		Watch(ctx, metav1.ListOptions{ResourceVersion: f.from(), AllowWatchBookmarks: true})
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if err := f.show(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// show records one event of a watch. An event that can't be recorded isn't skipped: the next watch begins before it.
func (f *watched) show(ctx context.Context, e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	o, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("the watch showed a %T", e.Object)
	}
	one := map[string]uint64{}
	if e.Type != watch.Bookmark {
		if err := f.record(ctx, string(e.Type), o, one); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, n := range one {
		if e.Type == watch.Deleted {
			delete(f.shown, key)
			f.dropped[key] = n
		} else {
			f.shown[key] = n
		}
	}
	f.version = o.GetResourceVersion()
	f.wake()
	return nil
}

// wake wakes everyone who waits for something to be shown. The caller holds mu.
func (f *watched) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// prove asks for the current versions and waits until the watch has shown all of them. A watch that doesn't is begun
// anew from its last version, which loses nothing.
func (f *watched) prove(ctx context.Context) error {
	f.mu.Lock()
	version, err, gvr := f.version, f.err, f.gvr
	f.mu.Unlock()
	if version == "" {
		if err == nil {
			err = fmt.Errorf("it was not listed yet")
		}
		return err
	}
	all, err := f.api.versions(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("asking for versions: %w", err)
	}
	there := map[string]uint64{}
	for _, o := range all.Items {
		meant, err := f.api.Meant(ctx, o.Namespace)
		if err != nil {
			return err
		}
		if !meant {
			continue
		}
		if there[o.Namespace+"/"+o.Name], err = number(o.ResourceVersion); err != nil {
			return err
		}
	}
	upTo, err := number(all.ResourceVersion)
	if err != nil {
		return err
	}
	return f.await(ctx, there, upTo)
}

// await returns when the watch has shown everything in a list, which has the version upTo.
func (f *watched) await(ctx context.Context, there map[string]uint64, upTo uint64) error {
	late := time.After(catchUp)
	for {
		f.mu.Lock()
		missing, changed, cancel := f.missing(there, upTo), f.changed, f.cancel
		f.mu.Unlock()
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-late:
			if cancel != nil {
				cancel()
			}
			return fmt.Errorf("%w: %s within %s", errStale, missing, catchUp)
		}
	}
}

// missing names one difference between a list and what the watch has shown; "" if there is none. The caller holds mu.
func (f *watched) missing(there map[string]uint64, upTo uint64) string {
	if f.version == "" {
		return "it is being listed anew"
	}
	for key, n := range there {
		if f.shown[key] < n && f.dropped[key] < n {
			return fmt.Sprintf("version %d of %s", n, key)
		}
	}
	for key, n := range f.shown {
		if _, ok := there[key]; !ok && n <= upTo {
			return "the end of " + key
		}
	}
	return ""
}

// number returns a resourceVersion as a number: the API server's versions can be compared as numbers.
func number(version string) (uint64, error) {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is no number", version)
	}
	return n, nil
}
