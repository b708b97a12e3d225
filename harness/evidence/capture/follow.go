package capture

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const (
	// askTimeout bounds one question to a component: a wedged one must not hold up the next.
	askTimeout = 20 * time.Second
	// tolerated is the longest stretch between two answers that still counts as watching. What a single lost sample
	// leaves open is shorter; anything longer is a gap, and a gap in a judged window is unknown.
	tolerated = 10 * time.Second
)

// meta is what an artifact of this target is found by.
func (t Target) meta(kind bundle.Kind) bundle.Meta {
	m := bundle.Meta{Kind: kind, Arm: t.Arm, Time: time.Now().UTC(), Mark: t.Mark}
	if t.Node != nil {
		m.Node = t.Node.Name()
	}
	if t.Component != nil {
		m.Component = t.Component.Name()
	}
	m.Phase = t.phase()
	return m
}

// phase is the arm's phase right now, "" where nobody says.
func (t Target) phase() string {
	if t.Phase == nil {
		return ""
	}
	return t.Phase()
}

// follow asks again and again until ctx ends. What fails for longer than is tolerated becomes a gap with the last error
// as its reason; it never ends the collection.
func follow(ctx context.Context, every time.Duration, st *bundle.Stream, ask func(context.Context) error) {
	followed(ctx, every, st, ask, false)
}

// followKept is follow of what is kept until it was asked for, such as a file that only grows: what comes late is no
// gap. Only what was never answered, up to the end, is one.
func followKept(ctx context.Context, every time.Duration, st *bundle.Stream, ask func(context.Context) error) {
	followed(ctx, every, st, ask, true)
}

func followed(ctx context.Context, every time.Duration, st *bundle.Stream, ask func(context.Context) error, kept bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	answered := time.Now()
	var reason error
	for ctx.Err() == nil {
		asked := time.Now()
		one, cancel := context.WithTimeout(ctx, askTimeout)
		err := ask(one)
		cancel()
		switch {
		case ctx.Err() != nil: // what came of it is the end's doing
		case err != nil:
			reason = err
		default:
			if gap := asked.Sub(answered); gap > tolerated && !kept {
				st.Gap(answered, asked, why(reason, gap))
			}
			answered, reason = time.Now(), nil
			st.Alive(answered)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	if reason != nil && time.Since(answered) > tolerated {
		st.Gap(answered, time.Now(), reason.Error())
	}
}

func why(reason error, gap time.Duration) string {
	if reason == nil {
		return fmt.Sprintf("no answer for %s", gap.Round(time.Second))
	}
	return reason.Error()
}
