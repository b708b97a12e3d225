package loads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// look is the time between two looks whether namespaces are gone.
const look = 250 * time.Millisecond

// progress is a round in progress. Only follow uses it.
type progress struct {
	*rounds
	out     bundle.LoadRound
	written []time.Time // when each request was written, as the times come
	seen    int         // deletions since the last request was written
	lost    error       // why the watch ended, if it did
	ask     func() <-chan inDelete
	asked   <-chan inDelete // in how many calls a worker deletes; nil until that matters
}

// follow sends the calls and returns when the round is over: all calls have their answers, and the namespaces that
// the namespace controller deletes are gone or the round has lasted long enough.
func (p *progress) follow(ctx context.Context, deleted watch.Interface) {
	defer deleted.Stop()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	p.ask = func() <-chan inDelete { return p.deleting(asking) }
	written, answers := p.send(ctx)
	events := deleted.ResultChan()
	var over <-chan struct{}
	for answers != nil || over != nil {
		if events != nil && (p.lost != nil || !p.out.Began.IsZero()) {
			events, p.asked = nil, nil
			cancel()
			deleted.Stop()
		}
		select {
		case at := <-written:
			p.written = append(p.written, at)
		case c, more := <-answers:
			if more {
				p.record(c)
				continue
			}
			p.drain(written)
			if answers = nil; p.spec.By == ByNamespaceController && len(p.written) > 0 {
				over = p.deletionsDone(ctx)
			}
		case e, more := <-events:
			p.drain(written) // a request is written before anything is deleted for it
			p.deletion(e, more)
			if p.lost != nil {
				p.emit(
					event.Warning,
					p.out.Round,
					"can't be seen to begin any more, the watch was lost: %v",
					p.lost,
				)
			}
		case in := <-p.asked:
			p.inside(in)
		case <-over:
			over, p.out.End = nil, time.Now().UTC()
		}
	}
	p.finish(ctx)
}

// drain takes the times that are there already.
func (p *progress) drain(written <-chan time.Time) {
	for {
		select {
		case at := <-written:
			p.written = append(p.written, at)
		default:
			return
		}
	}
}

func (p *progress) record(c bundle.Call) {
	_ = p.calls.JSON(c) // a full disk shows in Close
	p.calls.Alive(c.Done)
	code := "none"
	if c.Code != 0 {
		code = strconv.Itoa(c.Code)
	}
	p.out.Codes[code]++
	p.sum.Codes[code]++
	p.out.Calls++
	switch {
	case p.out.Cut == nil || c.GaveUp && c.Code == 0:
	case c.Code == 0 || c.Code >= http.StatusInternalServerError:
		p.out.Cut.Failed++
	case bundle.Success(c.Code):
		p.out.Cut.Succeeded++
	}
	if c.Done.After(p.out.End) {
		p.out.End = c.Done
	}
}

// deletion counts the deletions that the watch shows after the last request was written. Earlier ones say nothing about
// the last call's list. After enough of them some call has finished its list, and the API server is asked how many of
// the load's own calls have.
func (p *progress) deletion(e watch.Event, more bool) {
	switch {
	case !more:
		p.lost = errors.New("the API server ended it")
	case e.Type == watch.Error:
		p.lost = apierrors.FromObject(e.Object)
	case e.Type == watch.Deleted && len(p.written) == p.spec.Calls:
		p.seen++
		switch {
		case p.seen == p.spec.Begun && p.spec.By == ByCalls:
			p.asked = p.ask()
		case p.seen == p.spec.Begun:
			p.begin("")
		}
	}
}

// inside takes the number of calls that delete. The round has begun when all calls without an answer delete, or when so
// many objects are gone that waiting for the other calls would leave too few. If the API server doesn't tell, it has
// begun when it was asked.
func (p *progress) inside(in inDelete) {
	open := p.spec.Calls - p.out.Calls
	switch {
	case in.err != nil:
		p.begin(fmt.Sprintf("; in how many calls is not known: %v", in.err))
	case in.calls >= open || p.seen > p.spec.Items/4:
		p.out.Cut = &bundle.CutCalls{Open: open, Deleting: min(in.calls, open)}
		p.begin(fmt.Sprintf(", with a worker deleting in %d of %d calls", p.out.Cut.Deleting, open))
	}
}

// begin notes that the round took effect.
func (p *progress) begin(how string) {
	p.out.Began = time.Now().UTC()
	first, last := p.span()
	p.emit(event.Note, p.out.Round, "began: %d requests were written within %s, and %d deletions seen %s later%s",
		len(p.written), brief(last.Sub(first)), p.seen, brief(p.out.Began.Sub(last)), how)
	p.tell(p.out.Round, true)
}

// span returns when the first and the last request were written.
func (p *progress) span() (first, last time.Time) {
	return slices.MinFunc(
			p.written,
			time.Time.Compare,
		), slices.MaxFunc(
			p.written,
			time.Time.Compare,
		)
}

// deletionsDone returns a channel that is closed when no namespace is being deleted any more, or when the round has
// lasted long enough.
func (p *progress) deletionsDone(ctx context.Context) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		ctx, cancel := context.WithTimeout(ctx, p.spec.Lasts.Duration)
		defer cancel()
		opts := metav1.ListOptions{LabelSelector: p.selector()}
		for {
			list, err := p.metadata.Resource(namespaces).List(ctx, opts)
			if err == nil && !slices.ContainsFunc(list.Items,
				func(ns metav1.PartialObjectMetadata) bool { return ns.DeletionTimestamp != nil }) {
				return
			}
			if err == nil {
				opts.ResourceVersion = list.ResourceVersion // from now on any list as new will do, without asking etcd
			}
			if wait(ctx, look) != nil {
				return
			}
		}
	}()
	return out
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// finish fills in what is known at the end, and reports how the round went.
func (p *progress) finish(ctx context.Context) {
	if p.out.End.IsZero() {
		p.out.End = time.Now().UTC()
	}
	if len(p.written) > 0 {
		first, last := p.span()
		p.out.Sent = last.UTC()
		if span := last.Sub(first); span > 0 {
			p.out.Rate = float64(len(p.written)-1) / span.Seconds()
		}
	}
	if p.out.Began.IsZero() {
		why := fmt.Sprintf(
			"all %d calls were over after %d deletions (want %d)",
			p.out.Calls,
			p.seen,
			p.spec.Begun,
		)
		switch {
		case ctx.Err() != nil:
			why = "it was cut off"
		case len(p.written) < p.spec.Calls:
			why = fmt.Sprintf("%d of %d requests were written", len(p.written), p.spec.Calls)
		case p.lost != nil:
			why = fmt.Sprintf(
				"the watch was lost after %d deletions (want %d): %v",
				p.seen,
				p.spec.Begun,
				p.lost,
			)
		}
		p.emit(event.Warning, p.out.Round, "never began: %s", why)
	}
	var codes []string
	for _, code := range slices.Sorted(maps.Keys(p.out.Codes)) {
		codes = append(codes, fmt.Sprintf("%d x %s", p.out.Codes[code], code))
	}
	p.emit(
		event.Note,
		p.out.Round,
		"is over after %s, its answers: %s",
		brief(p.out.End.Sub(p.out.Start)),
		strings.Join(codes, ", "),
	)
}

func brief(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
