// Package campaign runs many runs, one after the other: every scenario with every pair, within limits of time and
// disk. Its summary says what became of each run, and an interrupted campaign can be resumed from it.
package campaign

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Unit is one run of a campaign: all trials of one pair of a scenario.
type Unit struct {
	Plan *plan.Plan
	key  string
}

// NewUnit makes a unit from a plan, which must have exactly one pair.
func NewUnit(p *plan.Plan) (Unit, error) {
	if n := len(p.Pairs()); n != 1 {
		return Unit{}, fmt.Errorf("a unit of %s has %d pairs: want 1", p.Scenario, n)
	}
	same := *p
	same.Trials = slices.Clone(p.Trials)
	for i := range same.Trials { // whether arms run in parallel depends on free memory, and makes no other unit
		same.Trials[i].Sequential, same.Trials[i].Why = false, ""
	}
	raw, err := plan.Encode(&same)
	if err != nil {
		return Unit{}, err
	}
	sum := sha256.Sum256(raw)
	return Unit{Plan: p, key: hex.EncodeToString(sum[:])}, nil
}

// Pair returns the name of the unit's pair.
func (u Unit) Pair() string { return u.Plan.Trials[0].Pair }

func (u Unit) name() string { return u.Plan.Scenario + ", pair " + u.Pair() }

// Options say what a campaign runs and within which limits. Prune gets the names of the campaign's own run directories,
// which it must keep.
type Options struct {
	Out       string // the folder of run directories, and of the summary
	Units     []Unit
	Relapse   string        // the version of the program: the summary of another version is not resumed
	Resume    bool          // take over what the summary in Out says is done
	TimeLimit time.Duration // 0 is none; like the budgets, it starts anew when a campaign is resumed
	Budget    time.Duration // of each scenario, in place of its own; 0 keeps its own
	Run       func(context.Context, Unit) (dir string, v judge.Verdict, err error)
	Prune     func(keep []string) ([]string, error) // called before each run and at the end; may be nil
	Say       func(string)
	Now       func() time.Time // nil is time.Now
}

// Nightly runs every unit and returns the summary, which is also written after each unit. A unit that fails, or is not
// as expected, doesn't stop the campaign. A unit for which its scenario's budget or the campaign's time limit is too
// short is ended cleanly and listed as not done. When ctx ends, so does the campaign; Resume continues from the
// summary.
func Nightly(ctx context.Context, o Options) (Summary, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s, err := begin(o)
	if err != nil {
		return s, err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if o.TimeLimit > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, o.TimeLimit,
			fmt.Errorf("the campaign's time limit of %s is over", o.TimeLimit))
	}
	defer cancel()
	spent := map[string]time.Duration{}
	for i, u := range o.Units {
		if s.Units[i].Status == Done {
			o.Say(
				fmt.Sprintf(
					"%s: done before, %s in %s",
					u.name(),
					s.Units[i].Verdict,
					s.Units[i].Dir,
				),
			)
			continue
		}
		if err := s.prune(o); err != nil {
			return s, err
		}
		before := s.Units[i].Seconds
		s.Units[i] = o.unit(limited, u, s.Units[i], spent[u.Plan.Scenario])
		spent[u.Plan.Scenario] += time.Duration((s.Units[i].Seconds - before) * float64(time.Second))
		if ctx.Err() != nil && s.Units[i].Status != Done {
			s.Units[i].Status, s.Units[i].Why = NotDone, "the campaign was interrupted"
		}
		s.conclude(o.Now())
		if err := s.write(o.Out, SummaryFile); err != nil {
			return s, err
		}
		if ctx.Err() != nil {
			return s, context.Cause(ctx)
		}
		o.Say(fmt.Sprintf("%s: %s", u.name(), s.Units[i].describe()))
	}
	if err := s.prune(o); err != nil {
		return s, err
	}
	s.conclude(o.Now())
	return s, s.write(o.Out, SummaryFile)
}

// unit runs one unit within the rest of its scenario's budget.
func (o Options) unit(ctx context.Context, u Unit, r Result, spent time.Duration) Result {
	r.Status, r.Why, r.Exit = NotDone, "", verdict.ExitInconclusive
	if ctx.Err() != nil {
		r.Why = context.Cause(ctx).Error()
		return r
	}
	if budget := cmp.Or(o.Budget, scenario.Length(u.Plan.Budget)); budget > 0 {
		over := fmt.Errorf("the budget of %s, %s, is used up", u.Plan.Scenario, budget)
		left := budget - spent
		if left <= 0 {
			r.Why = over.Error()
			return r
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left, over)
		defer cancel()
	}
	began := o.Now()
	dir, v, err := o.Run(ctx, u)
	r.Seconds += o.Now().Sub(began).Seconds()
	switch {
	case err == nil:
		r.Status, r.Dir, r.Verdict, r.Exit, r.Rates = Done, filepath.Base(dir), string(v.Verdict), v.ExitCode, v.Rates
	case ctx.Err() != nil:
		r.Why = context.Cause(ctx).Error()
		if err.Error() != r.Why {
			r.Why += "; it ended with: " + err.Error()
		}
	default:
		r.Status, r.Why, r.Verdict, r.Exit = Failed, err.Error(), string(verdict.VerdictError), verdict.ExitError
	}
	return r
}
