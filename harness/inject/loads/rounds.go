package loads

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
)

// again is how long creating the objects of a round is retried: an API server that was killed is back by then.
const again = 2 * time.Minute

// Run makes the calls, round after round. It returns nil after the last answer, or soon after the end of ctx: the
// artifacts have what became of the calls, and their summary is always written. An error means that evidence could
// not be written. If a round's objects can't be created within two minutes, an event says so and there are no further
// rounds.
func (l *DeleteCollection) Run(ctx context.Context, t load.Target, w *bundle.Writer) (err error) {
	o, err := l.objects(t)
	if err != nil {
		return err
	}
	calls, err := w.Stream(bundle.Meta{Kind: bundle.Calls, Arm: t.Arm}, "jsonl")
	if err != nil {
		return err
	}
	calls.Alive(time.Now())
	r := &rounds{objects: o, calls: calls, sum: bundle.Load{
		Name: t.Name, Way: l.By, Objects: l.Items, Bytes: o.bytes, Rounds: []bundle.LoadRound{},
		Codes: map[string]int{}, Planned: l.Rounds * l.Calls,
	}}
	defer func() {
		calls.Alive(time.Now())
		_, e := w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: t.Arm}, r.sum)
		err = errors.Join(err, calls.Close(), e)
	}()
	var over time.Time // when the last round was
	for n := 1; n <= l.Rounds; n++ {
		if n > 1 && wait(ctx, time.Until(over.Add(l.Pause.Duration))) != nil {
			break
		}
		if !r.round(ctx, n) {
			break
		}
		over = time.Now()
		r.noteLeft(ctx, &r.sum.Rounds[len(r.sum.Rounds)-1])
	}
	return nil
}

// rounds is the state of one Run.
type rounds struct {
	*objects
	calls *bundle.Stream
	sum   bundle.Load
}

// round makes one round's calls, and reports false when there should be no further one.
func (r *rounds) round(ctx context.Context, n int) bool {
	ctx, cancel := context.WithCancel(ctx) // ends the watch with the round
	defer cancel()
	defer r.tell(n, false)
	deleted, err := r.ready(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.emit(event.Warning, n, "can't start, and the load ends: %v", err)
		}
		return false
	}
	p := &progress{
		rounds: r,
		out: bundle.LoadRound{Round: n, Start: time.Now().UTC(), Wanted: r.spec.Rate,
			Codes: map[string]int{}},
	}
	p.follow(ctx, deleted)
	r.sum.Rounds = append(r.sum.Rounds, p.out)
	return ctx.Err() == nil
}

// ready makes the missing objects and returns a watch of deletions from then on.
func (r *rounds) ready(ctx context.Context) (watch.Interface, error) {
	for until := time.Now().Add(again); ; {
		if err := r.ensure(ctx, again); err != nil {
			return nil, err
		}
		deleted, err := r.deletions(ctx)
		if err == nil {
			return deleted, nil
		}
		if time.Now().After(until) || wait(ctx, time.Second) != nil {
			return nil, err
		}
	}
}

// deletions watches the load's ConfigMaps from now on, until ctx ends. It returns when the watch is there.
func (o *objects) deletions(ctx context.Context) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(asking, cancel) // a time limit for the beginning of the watch only
	defer late.Stop()
	list, err := o.metadata.Resource(configMaps).
		List(ctx, metav1.ListOptions{LabelSelector: o.selector(), Limit: 1})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("listing the ConfigMaps of load %s: %w", o.Name, err)
	}
	opts := metav1.ListOptions{LabelSelector: o.selector(), ResourceVersion: list.ResourceVersion}
	w, err := o.typed.CoreV1().ConfigMaps(metav1.NamespaceAll).Watch(ctx, opts)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watching the ConfigMaps of load %s: %w", o.Name, err)
	}
	return w, nil
}

// tell passes on that a round began or is over.
func (r *rounds) tell(n int, began bool) {
	if r.Round != nil {
		r.Round(n, began)
	}
}

func (r *rounds) emit(typ string, n int, format string, args ...any) {
	r.Events.Emit(event.Event{Type: typ, Arm: r.Arm,
		Message: fmt.Sprintf("%s: round %d ", r.Name, n) + fmt.Sprintf(format, args...),
		Fields:  map[string]any{"load": r.Name, "round": n}})
}
