package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Until makes a run open-ended. Its plan lists the first trial of each pair. The pairs take turns, each with further
// trials like its first, until the rule ends the pair. Trials are numbered in the order in which they run. Their
// outcomes determine which trials there are. Each bundle holds the rule in its plan, so the bundles show whether a
// trial is missing.
type Until struct {
	Rule       string  `json:"rule"`       // one of rate.Rules
	Confidence float64 `json:"confidence"` // 0.95
	Target     float64 `json:"target"`     // 0.2: the judged arm is to be shown to have a lower rate than this
	Max        int     `json:"max"`        // trials of each pair, including those that are set aside
}

// Asks returns the rule.
func (u *Until) Asks() rate.Rule {
	return rate.Rule{Confidence: u.Confidence, Target: u.Target, Max: u.Max}
}

// maxTrials is how many trials a run can have, because their ids have three digits.
const maxTrials = 999

func trialID(n int) string { return fmt.Sprintf("%03d", n) }

func (p *Plan) validateUntil() error {
	if len(p.Trials) > maxTrials {
		return fmt.Errorf("plan has %d trials: want at most %d", len(p.Trials), maxTrials)
	}
	u := p.Until
	if u == nil {
		return nil
	}
	var errs []error
	if !slices.Contains(rate.Rules, u.Rule) {
		errs = append(errs, fmt.Errorf("plan goes on until the rule %q: want one of %s", u.Rule,
			strings.Join(rate.Rules, ", ")))
	}
	if err := u.Asks().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("plan goes on until a rule is satisfied: %w", err))
	} else if u.Max*len(p.Trials) > maxTrials {
		errs = append(
			errs,
			fmt.Errorf(
				"plan goes on for at most %d trials of each of %d pairs: want at most %d in all",
				u.Max,
				len(p.Trials),
				maxTrials,
			),
		)
	}
	pairs := map[string]bool{}
	for i, t := range p.Trials {
		if pairs[t.Pair] || t.ID != trialID(i+1) {
			errs = append(
				errs,
				errors.New(
					"plan goes on until a rule is satisfied: want the first trial of each pair, numbered from "+
						"001",
				),
			)
			break
		}
		pairs[t.Pair] = true
		if !t.has(scenario.Vulnerable) || !t.has(scenario.Fixed) && !t.has(scenario.Candidate) {
			errs = append(
				errs,
				fmt.Errorf(
					"pair %s goes on until a rule is satisfied: want a vulnerable arm as the control, and a "+
						"fixed one or a candidate to be judged",
					t.Pair,
				),
			)
		}
	}
	return errors.Join(errs...)
}

// Pairs returns the names of the plan's pairs, in the order of their first trials.
func (p *Plan) Pairs() []string {
	var out []string
	for _, t := range p.Trials {
		if !slices.Contains(out, t.Pair) {
			out = append(out, t.Pair)
		}
	}
	return out
}

// Another returns a further trial of a pair, with n as its number in the run, from 1. It shares no data with the
// planned one.
func (p *Plan) Another(pair string, n int) (Trial, error) {
	i := slices.IndexFunc(p.Trials, func(t Trial) bool { return t.Pair == pair })
	if i < 0 || n < 1 || n > maxTrials {
		return Trial{}, fmt.Errorf(
			"planning trial %d of %s: there is no pair %q, or no such number",
			n,
			p.Scenario,
			pair,
		)
	}
	raw, err := json.Marshal(p.Trials[i])
	if err != nil {
		return Trial{}, fmt.Errorf(
			"planning trial %d of %s, pair %s: %w",
			n,
			p.Scenario,
			pair,
			err,
		)
	}
	var t Trial
	if err := json.Unmarshal(raw, &t); err != nil {
		return Trial{}, fmt.Errorf(
			"planning trial %d of %s, pair %s: %w",
			n,
			p.Scenario,
			pair,
			err,
		)
	}
	t.ID = trialID(n)
	return t, nil
}

// howMany describes how many trials there will be.
func (p *Plan) howMany() string {
	if p.Until == nil {
		return count(len(p.Trials), "trial")
	}
	r := p.Until.Asks()
	return fmt.Sprintf(
		"trials of each pair until the judged arm is shown to show the incident in less than %s of "+
			"them at %s: %d without it, at most %d in all",
		rate.Exactly(r.Target),
		rate.Exactly(r.Confidence),
		r.Needed(),
		r.Max,
	)
}

// has reports whether an arm of the trial has a role.
func (t *Trial) has(role string) bool {
	return slices.ContainsFunc(t.Arms, func(c Arm) bool { return c.Role == role })
}
