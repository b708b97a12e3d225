package kubernetes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
)

// TrialsOf returns how many trials a plan has at most. That of an open-ended run lists the first one of its pair.
func TrialsOf(p *plan.Plan) int {
	if p.Until != nil {
		return p.Until.Max
	}
	return len(p.Trials)
}

// trialAt returns the trial of an index, from 0. All trials of an open-ended run are like its first: an index names the
// same trial before and after its outcome is known, as there is one pair.
func trialAt(p *plan.Plan, index int) (plan.Trial, error) {
	if p.Until != nil {
		return p.Another(p.Trials[0].Pair, index+1)
	}
	return p.Trials[index], nil
}

// replay asks the stopping rule of an open-ended run about the trials that are here already.
func (r *Run) replay() error {
	if r.Plan.Until == nil {
		return nil
	}
	x, err := bundle.ReadIndex(r.Dir.Path())
	if err != nil {
		return err
	}
	r.schedule = judge.NewSchedule(r.Plan)
	for _, t := range x.Trials {
		if t.Manifest == "" {
			continue
		}
		if err := r.rule(t.ID); err != nil {
			return err
		}
	}
	for _, l := range x.Lost {
		r.schedule.Lost(l)
	}
	return nil
}

// rule asks the stopping rule once more, after the trial of an id.
func (r *Run) rule(id string) error {
	if r.schedule == nil {
		return nil
	}
	judged, err := judge.Bundle(r.Dir.Trial(id))
	if err != nil {
		return err
	}
	d := r.schedule.Judged(judged)
	goes := "it goes on"
	if d.Done() {
		goes = "that ends the trials"
	}
	r.Events.Say(event.Note, fmt.Sprintf("trial %s: %s, %s; %s: %s", judged.ID, judged.Verdict, judged.Sentence, goes, d.Why))
	return nil
}

// cancelRest ends the trials that are still under way or to come once the rule has ended an open-ended run. It notes down
// how those came out that were over already.
func (r *Run) cancelRest(ctx context.Context, pods []*corev1.Pod) error {
	if r.schedule == nil {
		return nil
	}
	for _, p := range pods {
		report, _ := reportOf(p)
		if i := indexOf(p); i < 0 || r.settled(i) || p.Status.Phase != corev1.PodSucceeded || report == nil || report.Verdict == "" {
			continue
		}
		beyond := bundle.BeyondTrial{ID: report.Trial, Verdict: report.Verdict}
		r.Events.Say(event.Note, beyond.String())
		if err := r.Dir.LeaveOut(beyond); err != nil {
			return err
		}
	}
	r.Events.Say(
		event.Note,
		"the rule has ended the run: the Job "+r.Name+" is deleted, with the trials that are under way",
	)
	return deleteJob(ctx, r.Client, r.Job.Namespace, r.Name)
}

// next returns the one trial that an open-ended run takes next, with its index, and nothing once the rule has ended it. The
// rule sees trials in the order of their indices, in which a run on this host would have made them: which one ends
// first must not decide which ones count.
func (r *Run) next() map[int]plan.Trial {
	pair, number, ok := r.schedule.Next()
	if !ok {
		return nil
	}
	t, err := r.Plan.Another(pair, number)
	if err != nil { // the rule ends within the plan's numbers
		return nil
	}
	return map[int]plan.Trial{number - 1: t}
}
