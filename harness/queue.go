package harness

import (
	"fmt"
	"path/filepath"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
)

// queue hands out a run's trials: those of its plan or, in an open-ended run, one after the other, depending on the
// verdicts so far.
type queue struct {
	plan     *plan.Plan
	schedule *judge.Schedule // nil unless the run is open-ended
	had      int             // number of finished trials

	trial plan.Trial // the current one
	last  bool       // no other trial follows, as far as is known before it runs
	err   error
}

func newQueue(p *plan.Plan) *queue {
	q := &queue{plan: p}
	if p.Until != nil {
		q.schedule = judge.NewSchedule(p)
	}
	return q
}

// next moves to the next trial. It returns false if there is none, or on an error.
func (q *queue) next() bool {
	if q.schedule == nil {
		if q.had == len(q.plan.Trials) {
			return false
		}
		q.trial, q.last = q.plan.Trials[q.had], q.had == len(q.plan.Trials)-1
		return true
	}
	pair, number, ok := q.schedule.Next()
	if !ok {
		return false
	}
	q.trial, q.err = q.plan.Another(pair, number)
	return q.err == nil
}

// over ends the current trial. In an open-ended run it judges the trial's bundle and reports what is known so far.
func (q *queue) over(dir string, events *event.Stream) error {
	q.had++
	if q.schedule == nil {
		return nil
	}
	judged, err := judge.Bundle(filepath.Join(dir, "trials", q.trial.ID))
	if err != nil {
		return err
	}
	d := q.schedule.Judged(judged)
	goes := "it goes on"
	if d.Done() {
		goes = "that ends the pair's trials"
	}
	events.Say(
		event.Note,
		fmt.Sprintf("trial %s, pair %s: %s, %s; %s: %s", judged.ID, judged.Pair, judged.Verdict,
			judged.Sentence, goes, d.Why),
	)
	return nil
}
