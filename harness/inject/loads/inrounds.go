package loads

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
)

// schedule says which rounds a load makes.
type schedule struct {
	rounds int
	calls  int     // in each round
	rate   float64 // calls a second; 0 for all at once
	// round makes the calls of the n-th round. The channel gets each call as it ends, and is closed after the last. A
	// call that shows that the load takes effect calls began before it ends; the first such call counts.
	round func(n int, began func()) <-chan bundle.Call
}

// inRounds makes the calls of a load round after round, and records each call and a summary. A round begins with the
// first call that takes effect, and ends with the last answer. An error means that evidence could not be written.
func inRounds(
	ctx context.Context,
	t load.Target,
	w *bundle.Writer,
	sum bundle.Load,
	s schedule,
) error {
	calls, err := w.Stream(bundle.Meta{Kind: bundle.Calls, Arm: t.Arm}, "jsonl")
	if err != nil {
		return err
	}
	calls.Alive(time.Now())
	sum.Rounds, sum.Codes, sum.Planned = []bundle.LoadRound{}, map[string]int{}, s.rounds*s.calls
	for n := 1; n <= s.rounds && ctx.Err() == nil; n++ {
		r := bundle.LoadRound{Round: n, Start: time.Now().UTC(), Wanted: s.rate}
		var first sync.Once
		began := func() {
			first.Do(func() {
				r.Began = time.Now().UTC()
				t.Round(n, true)
			})
		}
		answered := false
		for one := range s.round(n, began) {
			code := "none"
			if one.Code != 0 {
				code, answered = strconv.Itoa(one.Code), true
			}
			sum.Codes[code]++
			if r.Calls++; r.Sent.Before(one.Time) {
				r.Sent = one.Time
			}
			if e := calls.JSON(one); e != nil {
				err = errors.Join(err, e)
			}
		}
		r.End = time.Now().UTC()
		if spent := r.Sent.Sub(r.Start).Seconds(); spent > 0 {
			r.Rate = float64(r.Calls) / spent
		}
		sum.Rounds = append(sum.Rounds, r)
		t.Round(n, false)
		if !answered && r.Began.IsZero() {
			_ = wait(ctx, time.Second) // the end of ctx is seen next
		}
	}
	calls.Alive(time.Now())
	_, e := w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: t.Arm}, sum)
	return errors.Join(err, calls.Close(), e)
}

// paced makes a round's calls when they are due, each once there is room for it: rate is in calls a second, 0 for all at
// once, and parallel how many are under way at a time, 0 for all. The channel gets each call as it ends.
func paced(
	ctx context.Context,
	calls int,
	rate float64,
	parallel int,
	call func(i int) bundle.Call,
) <-chan bundle.Call {
	if parallel == 0 {
		parallel = calls
	}
	out, room, start := make(chan bundle.Call, calls), make(chan struct{}, parallel), time.Now()
	go func() {
		defer close(out)
		var all sync.WaitGroup
		defer all.Wait()
		for i := range calls {
			if rate > 0 {
				due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
				_ = wait(ctx, time.Until(due)) // the end of ctx is seen next
			}
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
			all.Go(func() {
				out <- call(i)
				<-room
			})
		}
	}()
	return out
}
