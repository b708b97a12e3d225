package loads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
)

// errIdle says that the subject was asked for work and didn't do it. No other error of a probe's step says anything
// about the subject.
var errIdle = errors.New("not done")

// probe is one run of a probe and its record.
type probe struct {
	load.Target
	out bundle.ProbeRecord
}

func newProbe(t load.Target, work string) *probe {
	return &probe{
		t,
		bundle.ProbeRecord{
			Name:  t.Name,
			Work:  work,
			Start: time.Now().UTC(),
			Steps: []bundle.ProbeStep{},
		},
	}
}

// step runs one step and notes when it was asked for and seen. do returns what was seen, even with an error.
func (p *probe) step(try int, name string, do func() (what string, err error)) error {
	s := bundle.ProbeStep{Try: try, Step: name, Asked: time.Now().UTC()}
	what, err := do()
	if s.What = what; err == nil {
		s.Seen = time.Now().UTC()
	}
	p.out.Steps = append(p.out.Steps, s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// record writes the record of how the probe ended, which err says. If ctx has ended, that may have cut the probe off.
func (p *probe) record(ctx context.Context, w *bundle.Writer, err error) error {
	p.out.End = time.Now().UTC()
	typ := event.Warning
	switch {
	case err == nil:
		p.out.Ended, typ = bundle.ProbeDone, event.Note
	case errors.Is(err, errIdle):
		p.out.Ended = bundle.ProbeFailed
	case ctx.Err() != nil:
		p.out.Ended, typ = bundle.ProbeCut, event.Note
	default:
		p.out.Ended = bundle.ProbeUnasked
	}
	message := fmt.Sprintf(
		"%s: %s after %s",
		p.Name,
		p.out.Ended,
		brief(p.out.End.Sub(p.out.Start)),
	)
	if err != nil {
		p.out.Why = err.Error()
		message += ": " + p.out.Why
	}
	p.Events.Emit(event.Event{Type: typ, Arm: p.Arm, Message: message, Fields: map[string]any{"load": p.Name}})
	_, err = w.WriteJSON(bundle.Meta{Kind: bundle.WorkProbe, Arm: p.Arm, Time: p.out.Start}, p.out)
	return err
}

// insist calls try until it succeeds. It gives up with the last error after patience, or at once if another try is
// useless.
func insist(ctx context.Context, patience time.Duration, try func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for {
		err := try(limited)
		if err == nil || errors.Is(err, errForeign) || errors.Is(err, errUnfit) {
			return err
		}
		if limited.Err() == nil || last == nil {
			last = err // keep the last error, not that time was up
		}
		if wait(limited, time.Second) != nil {
			return errors.Join(last, context.Cause(ctx))
		}
	}
}
