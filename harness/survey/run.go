package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// tries is how often a release is run if nothing but its controls or the host is to blame for the lack of an answer.
const tries = 3

// Options say how a survey's releases are run.
type Options struct {
	File      string        // of the record, which is written after each run
	TimeLimit time.Duration // 0 is none
	// Run runs releases beside the controls, in one trial, and returns a run for each. Its error ends the survey, and
	// nothing is recorded of those releases.
	Run    func(ctx context.Context, versions []string) ([]Run, error)
	Beside int // the most releases that share a trial; below 1 is 1
	Say    func(string)
	Now    func() time.Time
	// Below has more members of classes drawn until the rate of those that differ is proven to be below it. 0 draws no more.
	Below float64
}

// Do runs every chosen release that has no answer yet. One that can't be built doesn't stop the survey: its neighbour is
// chosen for it. When ctx ends, the record is as far as it came, and Do returns ctx's cause.
func (r *Record) Do(ctx context.Context, o Options) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if o.TimeLimit > 0 {
		limited, cancel = context.WithTimeoutCause(
			ctx,
			o.TimeLimit,
			fmt.Errorf("the survey's time limit of %s is over", o.TimeLimit),
		)
	}
	defer cancel()
	if err := r.Write(o.File); err != nil {
		return err
	}
	for more := true; more; more = limited.Err() == nil && r.chooseMore(o.Below) {
		if err := r.runChosen(limited, o); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if limited.Err() != nil {
		o.Say(context.Cause(limited).Error())
	}
	return r.Write(o.File)
}

// Pending reports whether a chosen release still has to run.
func (r *Record) Pending() bool {
	return slices.ContainsFunc(
		r.Chosen,
		func(c Choice) bool { return !settled(r.Runs[c.Version], max(r.Repeat, 1)) },
	)
}

// runChosen runs the chosen releases that have no answer yet, until ctx ends. Those that share a trial are next to each
// other among the chosen.
func (r *Record) runChosen(ctx context.Context, o Options) error {
	for ctx.Err() == nil {
		next := r.next(max(o.Beside, 1))
		if len(next) == 0 {
			return nil
		}
		for _, c := range next {
			o.Say(
				fmt.Sprintf(
					"%d of %d: %s, %s",
					slices.Index(r.Chosen, c)+1,
					len(r.Chosen),
					c.Version,
					c.Why,
				),
			)
		}
		began := o.Now()
		versions := versionsOf(next)
		runs, err := o.Run(ctx, versions)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return fmt.Errorf("running %s: %w", strings.Join(versions, ", "), err)
		}
		r.Updated = o.Now().UTC()
		for i, one := range runs {
			if one.Result != Unbuildable || len(runs) == 1 { // else it took part in no trial
				one.Seconds = r.Updated.Sub(began.UTC()).Seconds()
			}
			r.Runs[versions[i]] = append(r.Runs[versions[i]], one)
		}
		if err := r.Write(o.File); err != nil {
			return err
		}
		for _, version := range versions {
			all := r.Runs[version]
			o.Say(fmt.Sprintf("%s: %s", version, all[len(all)-1].describe()))
		}
	}
	return nil
}

// next returns the first chosen releases that have no answer yet, at most so many.
func (r *Record) next(most int) (out []Choice) {
	for _, c := range r.Chosen {
		if !settled(r.Runs[c.Version], max(r.Repeat, 1)) && len(out) < most {
			out = append(out, c)
		}
	}
	return out
}

func versionsOf(list []Choice) (out []string) {
	for _, c := range list {
		out = append(out, c.Version)
	}
	return out
}

// settled reports whether a release needs no further run: it was good in so many as are asked for, or it wasn't once. What
// its controls or the host are to blame for is run again; what the release itself causes is not.
func settled(runs []Run, repeat int) bool {
	good := 0
	for _, one := range runs {
		switch {
		case one.Result == Unbuildable, one.Lost, one.Controls && one.Result != Good:
			return true
		case one.Controls:
			good++
		}
	}
	return good >= repeat || len(runs)-good >= tries
}

func (r Run) describe() string {
	took := time.Duration(r.Seconds * float64(time.Second)).Round(time.Second)
	said := string(r.Result)
	if !r.Controls && r.Result != Unbuildable {
		said = "no answer, the controls were not as expected"
	}
	if r.Why != "" {
		said += ": " + r.Why
	}
	return fmt.Sprintf("%s after %s", said, took)
}

// Judged returns what a run's verdict says of a candidate in it, as if its other candidates weren't there. Both controls
// have to be there, and as expected, and the verdict has to be that of the candidate's outcome: it isn't where equal binaries
// differ, or where the harness failed.
func Judged(dir, candidate string, v judge.Verdict) Run {
	if len(v.Trials) > 0 {
		v = v.Alone(candidate)
	}
	one := Run{Dir: dir, Result: Inconclusive, SHA256: v.Digests[candidate]}
	controls := map[string]bool{} // by role: all of them were as expected
	for _, a := range v.Arms {
		if a.Name == candidate {
			one.Result, one.Why = resultOf(a.Outcome), a.Reason
		}
		if a.Role == scenario.Candidate {
			continue
		}
		was, seen := controls[a.Role]
		controls[a.Role] = a.Outcome == a.Expected && (was || !seen)
	}
	one.Controls = controls[scenario.Vulnerable] && controls[scenario.Fixed] &&
		v.Verdict != verdict.VerdictError
	answers := map[Result]verdict.Verdict{Good: verdict.Validated, Bad: verdict.StillVulnerable}
	switch want, answer := answers[one.Result]; {
	case len(v.Index.Lost) > 0:
		one.Result, one.Lost, one.Why = Inconclusive, true, v.Sentence
	case !one.Controls:
		one.Why = v.Sentence
	case answer && v.Verdict != want:
		one.Result, one.Why = Inconclusive, v.Sentence
	case answer:
		one.Why = ""
	}
	return one
}

func resultOf(o verdict.Outcome) Result {
	switch o {
	case verdict.Reproduced:
		return Bad
	case verdict.NotReproduced:
		return Good
	case verdict.Broken:
		return Broken
	}
	return Inconclusive
}

// CountAnswered returns how many of the chosen releases have an answer.
func (r *Record) CountAnswered() (n int) {
	for _, row := range r.Rows() {
		for _, c := range row.Cells {
			if c.known() && r.chosen(c.Version) {
				n++
			}
		}
	}
	return n
}

// Answered reports whether there are chosen releases, and each of them has an answer. What turned out to be unavailable is
// no longer chosen.
func (r *Record) Answered() bool { return len(r.Chosen) > 0 && r.CountAnswered() == len(r.Chosen) }
