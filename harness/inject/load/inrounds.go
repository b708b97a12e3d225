package load

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// inRounds makes the calls of a load round after round, and records each call and a summary. A round begins with the
// first answer that shows an effect, and ends with the last answer. An error means that evidence could not be written.
func inRounds(ctx context.Context, t Target, w *bundle.Writer, sum bundle.Load, count int, effect func(code int) bool,
	round func(n int) <-chan bundle.Call) error {
	calls, err := w.Stream(bundle.Meta{Kind: bundle.Calls, Arm: t.Arm}, "jsonl")
	if err != nil {
		return err
	}
	calls.Alive(time.Now())
	sum.Rounds, sum.Codes = []bundle.LoadRound{}, map[string]int{}
	for n := 1; n <= count && ctx.Err() == nil; n++ {
		r := bundle.LoadRound{Round: n, Start: time.Now().UTC()}
		answered := false
		for one := range round(n) {
			if one.Code == 0 {
				sum.Codes["none"]++
			} else {
				sum.Codes[strconv.Itoa(one.Code)]++
				answered = true
			}
			if r.Calls++; r.Sent.Before(one.Time) {
				r.Sent = one.Time
			}
			if effect(one.Code) && r.Began.IsZero() {
				r.Began = time.Now().UTC()
				t.Round(n, true)
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
		if !answered {
			_ = wait(ctx, time.Second) // the end of ctx is seen next
		}
	}
	calls.Alive(time.Now())
	_, e := w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: t.Arm}, sum)
	return errors.Join(err, calls.Close(), e)
}
