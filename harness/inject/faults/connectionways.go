package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
)

// unledError says that a proxy whose servers come and go leads to none now.
type unledError struct{ why string }

func (e *unledError) Error() string { return "the proxy leads to no webhook: " + e.why }

// asked is one look at a server, through its proxy and past it.
type asked func(context.Context, *control.ConnectionClient) (control.ConnectionProbe, error)

// few asks for a few small answers, each of which may take up to limit.
func few(limit time.Duration) asked {
	return func(ctx context.Context, c *control.ConnectionClient) (control.ConnectionProbe, error) {
		return c.Probe(ctx, answers, limit)
	}
}

// seen asks the server until want is true of what is seen, for no longer than within. Where servers come and go, it asks
// all that the proxy leads to, at once, and want has to be true of each.
func (f *Connected) seen(
	ctx context.Context,
	c *control.ConnectionClient,
	within time.Duration,
	ask asked,
	want func(control.ConnectionProbe) bool,
) (control.ConnectionProbe, error) {
	return f.until(ctx, c, within, ask, want, func(*unledError) {})
}

// gone is like seen, once a fault is disarmed. It gives up once the proxy leads to no webhook, because nothing passes then
// that could be held back: why says so, and is "" otherwise.
func (f *Connected) gone(
	ctx context.Context,
	c *control.ConnectionClient,
	within time.Duration,
	ask asked,
	want func(control.ConnectionProbe) bool,
) (p control.ConnectionProbe, why string, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	p, err = f.until(ctx, c, within, ask, want, func(none *unledError) { end(none) })
	if none := new(unledError); errors.As(err, &none) {
		return p, none.Error(), nil
	}
	return p, "", err
}

func (f *Connected) until(
	ctx context.Context,
	c *control.ConnectionClient,
	within time.Duration,
	ask asked,
	want func(control.ConnectionProbe) bool,
	unled func(*unledError),
) (control.ConnectionProbe, error) {
	if !f.ends().Ways {
		return ProbeUntil(
			ctx,
			within,
			func(ctx context.Context) (control.ConnectionProbe, error) { return ask(ctx, c) },
			want,
		)
	}
	return ProbeUntil(ctx, within, func(ctx context.Context) (p control.ConnectionProbe, err error) {
		ways, err := openWays(ctx, c)
		if none := new(unledError); errors.As(err, &none) {
			unled(none)
		}
		if err != nil {
			return p, err
		}
		probes := make([]control.ConnectionProbe, len(ways))
		var all sync.WaitGroup
		errs := make([]error, len(ways))
		for i, name := range ways {
			all.Go(func() { probes[i], errs[i] = ask(ctx, c.On(name)) })
		}
		all.Wait()
		for _, p := range probes {
			if !want(p) {
				return p, errors.Join(errs...)
			}
		}
		return probes[0], errors.Join(errs...)
	}, want)
}

// openWays returns the ways that are open. If there are none, the error is an unledError.
func openWays(
	ctx context.Context,
	c *control.ConnectionClient,
) (open []control.WayName, err error) {
	s, err := c.State(ctx)
	if err != nil {
		return nil, err
	}
	why := "none was made yet"
	for _, w := range s.Ways {
		switch {
		case w.Armed():
			open = append(open, w.Name())
		case w.Expired:
			why = fmt.Sprintf(
				"that of %s ended by its time limit at %s",
				w.ID,
				w.EndedAt.UTC().Format(time.RFC3339),
			)
		default:
			why = fmt.Sprintf(
				"that of %s was removed at %s",
				w.ID,
				w.EndedAt.UTC().Format(time.RFC3339),
			)
		}
	}
	if len(open) == 0 {
		return nil, &unledError{why}
	}
	return open, nil
}

// emitUnled reports that a fault is gone where nothing is left to be measured.
func emitUnled(t fault.Target, n cluster.Node, how, unled string) {
	Emit(t, event.FaultGone, n, "%s; nothing was measured, because %s", how, unled)
}
