package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/rate"
)

// Until makes a run open-ended. Its plan lists the first trial of each pair; the pairs take turns, and each goes on with further trials like its first
// until the rule is content with it or it has had Max. Trials are numbered as they come. Which trials there are follows from their outcomes, so that
// whoever has the bundles can tell whether one is missing.
type Until struct {
	Rule       string  `json:"rule"`       // one of rate.Rules
	Confidence float64 `json:"confidence"` // 0.95
	Max        int     `json:"max"`        // trials of each pair
}

// MaxTrials is how many trials a run can have: their ids have three digits.
const MaxTrials = 999

func trialID(n int) string { return fmt.Sprintf("%03d", n) }

func (p *Plan) validateUntil() error {
	if len(p.Trials) > MaxTrials {
		return fmt.Errorf("plan has %d trials: want at most %d", len(p.Trials), MaxTrials)
	}
	u := p.Until
	if u == nil {
		return nil
	}
	var errs []error
	if !slices.Contains(rate.Rules, u.Rule) {
		errs = append(errs, fmt.Errorf("plan goes on until the rule %q: want one of %s", u.Rule, strings.Join(rate.Rules, ", ")))
	}
	if !(u.Confidence > 0.5 && u.Confidence < 1) {
		errs = append(errs, fmt.Errorf("plan goes on until a confidence of %v: want one above 0.5 and below 1, as 0.95", u.Confidence))
	}
	if u.Max < 1 || u.Max*len(p.Trials) > MaxTrials {
		errs = append(errs, fmt.Errorf("plan goes on for at most %d trials of each of %d pairs: want at least 1 and at most %d in all", u.Max, len(p.Trials), MaxTrials))
	}
	pairs := map[string]bool{}
	for i, t := range p.Trials {
		if pairs[t.Pair] || t.ID != trialID(i+1) {
			errs = append(errs, errors.New("plan goes on until a rule is content: want the first trial of each pair, numbered from 001"))
			break
		}
		pairs[t.Pair] = true
	}
	return errors.Join(errs...)
}

// Pairs are the names of the plan's pairs in the order of their first trials.
func (p *Plan) Pairs() []string {
	var out []string
	for _, t := range p.Trials {
		if !slices.Contains(out, t.Pair) {
			out = append(out, t.Pair)
		}
	}
	return out
}

// Another is a further trial of a pair, the n-th of the run, counted from 1. It shares nothing with the planned one.
func (p *Plan) Another(pair string, n int) (Trial, error) {
	i := slices.IndexFunc(p.Trials, func(t Trial) bool { return t.Pair == pair })
	if i < 0 || n < 1 || n > MaxTrials {
		return Trial{}, fmt.Errorf("planning trial %d of %s: there is no pair %q, or no such number", n, p.Scenario, pair)
	}
	raw, err := json.Marshal(p.Trials[i])
	if err != nil {
		return Trial{}, fmt.Errorf("planning trial %d of %s, pair %s: %w", n, p.Scenario, pair, err)
	}
	var t Trial
	if err := json.Unmarshal(raw, &t); err != nil {
		return Trial{}, fmt.Errorf("planning trial %d of %s, pair %s: %w", n, p.Scenario, pair, err)
	}
	t.compact()
	t.ID = trialID(n)
	return t, nil
}

// howMany says in words how many trials there will be.
func (p *Plan) howMany() string {
	if p.Until == nil {
		return count(len(p.Trials), "trial")
	}
	return fmt.Sprintf("trials of each pair until the rule %q is content at %g %%, at most %d", p.Until.Rule, math.Round(p.Until.Confidence*1e6)/1e4, p.Until.Max)
}
