package harness

import (
	"fmt"
	"path/filepath"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
)

// turns hands out a run's trials: those that its plan lists, or in an open-ended run one after the other, by what came of those before.
type turns struct {
	plan     *plan.Plan
	schedule *report.Schedule // nil unless the run is open-ended
	had      int              // trials that are over

	trial plan.Trial // the one whose turn it is
	last  bool       // there will be none after it, as far as can be known before it
	err   error
}

func newTurns(p *plan.Plan) *turns {
	t := &turns{plan: p}
	if p.Until != nil {
		t.schedule = report.NewSchedule(p)
	}
	return t
}

// next goes to the next trial; false when there is none, or on an error.
func (t *turns) next() bool {
	if t.schedule == nil {
		if t.had == len(t.plan.Trials) {
			return false
		}
		t.trial, t.last = t.plan.Trials[t.had], t.had == len(t.plan.Trials)-1
		return true
	}
	pair, number, ok := t.schedule.Next()
	if !ok {
		return false
	}
	t.trial, t.err = t.plan.Another(pair, number)
	return t.err == nil
}

// over ends the trial's turn. In an open-ended run its bundle is judged, and what is known by now is said.
func (t *turns) over(dir string, events *event.Stream) error {
	t.had++
	if t.schedule == nil {
		return nil
	}
	judged, err := report.JudgeTrial(filepath.Join(dir, "trials", t.trial.ID))
	if err != nil {
		return err
	}
	d := t.schedule.Judged(judged)
	goes := "it goes on"
	if d.Done() {
		goes = "that ends the pair's trials"
	}
	events.Say(event.Note, fmt.Sprintf("trial %s, pair %s: %s, %s; %s: %s", judged.ID, judged.Pair, judged.Verdict, judged.Sentence, goes, d.Why))
	return nil
}
