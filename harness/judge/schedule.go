package judge

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	counts "github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Until says how an open-ended run ended, pair by pair in the order of their first trials.
type Until struct {
	plan.Until
	Needed int      `json:"needed"` // how many trials have to count, none of which shows the incident
	Pairs  []Ending `json:"pairs"`
}

// Ending says how the stopping rule ended a pair. Trials that are set aside decide nothing.
type Ending struct {
	Pair     string          `json:"pair"`
	Verdict  verdict.Verdict `json:"verdict"`
	ExitCode int             `json:"exitCode"`
	SetAside []string        `json:"setAside"`         // "003 Inconclusive"
	Silent   []string        `json:"silent,omitempty"` // trials that count but gave no answer about the judged arm
	Why      string          `json:"why"`
}

// String says in a line how a pair ended.
func (e Ending) String() string {
	s := fmt.Sprintf("%s: %s", e.Verdict, e.Why)
	if len(e.SetAside) > 0 {
		s += "; set aside: " + strings.Join(e.SetAside, ", ")
	}
	if len(e.Silent) > 0 {
		s += "; no answer: " + strings.Join(e.Silent, ", ")
	}
	return s
}

// Schedule says which pair comes next in an open-ended run: pairs take turns, and a pair that has ended is skipped. The
// same outcomes give the same schedule, during the run and when it is judged again.
type Schedule struct {
	plan   *plan.Plan
	trials []verdict.Trial
	lost   int // trials without evidence; each has ended its pair
	ended  map[string]Ending
	turn   int // index of the pair that comes next, unless it has ended
}

// NewSchedule returns the schedule of a plan that has Until, before its first trial.
func NewSchedule(p *plan.Plan) *Schedule { return &Schedule{plan: p, ended: map[string]Ending{}} }

// Next returns the pair of the next trial and that trial's number, from 1. ok is false when all pairs have ended.
func (s *Schedule) Next() (pair string, number int, ok bool) {
	pairs := s.plan.Pairs()
	for i := range pairs {
		at := (s.turn + i) % len(pairs)
		if _, over := s.ended[pairs[at]]; !over {
			return pairs[at], len(s.trials) + s.lost + 1, true
		}
	}
	return "", 0, false
}

// Judged records the verdict of the trial that Next asked for. It returns what is known of the pair, and whether the
// trials of the pair end.
func (s *Schedule) Judged(t verdict.Trial) counts.Decision {
	s.trials = append(s.trials, t)
	for i, pair := range s.plan.Pairs() {
		if pair == t.Pair {
			s.turn = i + 1
		}
	}
	d := s.plan.Until.Asks().Decide(tally(s.trials, t.Pair))
	if d.Done() {
		s.ended[t.Pair] = s.end(t, d)
	}
	return d
}

// Lost records that the trial that Next asked for left no evidence. That ends the trials of its pair: the incident may have
// destroyed what would have shown it.
func (s *Schedule) Lost(t bundle.LostTrial) {
	s.lost++
	s.ended[t.Pair] = s.end(
		verdict.Trial{Pair: t.Pair},
		counts.Decision{End: counts.Undecided, Why: fmt.Sprintf(
			"trial %s left no evidence, so a rate below %s can't be shown any more",
			t.ID,
			counts.Exactly(s.plan.Until.Target),
		)},
	)
}

// Endings returns how the pairs ended, in the plan's order. A pair that hasn't ended, because its run was cut short, is
// Inconclusive.
func (s *Schedule) Endings() []Ending {
	out := []Ending{}
	for _, pair := range s.plan.Pairs() {
		e, ok := s.ended[pair]
		if !ok {
			e = s.end(
				verdict.Trial{Pair: pair},
				s.plan.Until.Asks().Decide(tally(s.trials, pair)),
			)
		}
		out = append(out, e)
	}
	return out
}

// end says how the pair of the trial last ended, or how it stands.
func (s *Schedule) end(last verdict.Trial, d counts.Decision) Ending {
	e := Ending{Pair: last.Pair, SetAside: []string{}, Why: d.Why}
	switch d.End {
	case counts.Below:
		e.Verdict, e.ExitCode = verdict.Validated, verdict.ExitOK
		for _, t := range s.plan.Trials {
			if t.Pair == last.Pair && t.Tried != nil {
				e.Why += "; " + t.Tried.String()
			}
		}
	case counts.Shown, counts.Broken, counts.Failed:
		e.Verdict, e.ExitCode = last.Verdict, last.Exit
		e.Why += fmt.Sprintf("; trial %s: %s", last.ID, last.Sentence)
	case counts.Undecided:
		e.Verdict, e.ExitCode = verdict.VerdictInconclusive, verdict.ExitInconclusive
		e.Why += "; what was lacking stands with each trial: mend that, and run it again"
	default:
		e.Verdict, e.ExitCode = verdict.VerdictInconclusive, verdict.ExitInconclusive
	}
	for _, t := range s.trials {
		switch name := fmt.Sprintf("%s %s", t.ID, t.Verdict); {
		case t.Pair != last.Pair:
		case SetAside(t):
			e.SetAside = append(e.SetAside, name)
		case silent(t):
			e.Silent = append(e.Silent, name)
		}
	}
	return e
}

// Bundle judges one bundle.
func Bundle(dir string) (verdict.Trial, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return verdict.Trial{}, fmt.Errorf("judging %s: %w", dir, err)
	}
	p, err := readPlan(b)
	if err != nil {
		return verdict.Trial{}, fmt.Errorf("judging %s: %w", dir, err)
	}
	return verdict.Judge(b, p.Trials[0])
}

// expects returns an error if a trial isn't the one that comes next. After a trial without an answer a pair may have
// further trials, because older versions went on. None of these makes the pair Validated.
func (s *Schedule) expects(t verdict.Trial) error {
	pair, _, ok := s.Next()
	want := fmt.Sprintf("%03d", len(s.trials)+1)
	switch {
	case t.ID == want && (ok && t.Pair == pair || tally(s.trials, t.Pair).Silent > 0):
		return nil
	case !ok:
		return fmt.Errorf("the run was over before trial %s: its rule had ended every pair", t.ID)
	}
	return fmt.Errorf(
		"trial %s of pair %s stands where trial %s of pair %s belongs: one is missing, or "+
			"isn't of this run",
		t.ID,
		t.Pair,
		want,
		pair,
	)
}

// sum adds the rates over all trials. For an open-ended run it replaces the verdict with the answer of the stopping
// rule. The trials of such a run must be those that its schedule asks for, up to its end: taking one away changes which
// ones should follow. The rule also answers for a single trial, which it may find to be too little.
func (v *Verdict) sum(from bundles) error {
	var trials []verdict.Trial
	for _, t := range v.Trials {
		trials = append(trials, t.Trial)
	}
	p := cmp.Or(from.plan, from.alone)
	if p == nil || p.Until == nil {
		v.Rates = Rates(trials, nil, from.index.Lost...)
		return nil
	}
	if err := p.Until.Asks().Validate(); err != nil {
		return fmt.Errorf("reading %s: %w", bundle.PlanFile, err)
	}
	v.Rates = Rates(trials, p.Until, from.index.Lost...)
	s := NewSchedule(p)
	for _, t := range trials {
		if err := s.expects(t); err != nil && from.plan != nil {
			return err
		}
		s.Judged(t)
	}
	for _, t := range from.index.Lost {
		s.Lost(t)
	}
	if pair, number, more := s.Next(); more && from.cut == "" && from.plan != nil {
		return fmt.Errorf(
			"the run isn't over: trial %03d, of pair %s, comes next, and there is no bundle of it",
			number,
			pair,
		)
	}
	v.Until = &Until{Until: *p.Until, Needed: p.Until.Asks().Needed(), Pairs: s.Endings()}
	v.ruled()
	if from.plan == nil && v.ExitCode == verdict.ExitInconclusive {
		v.Sentence = "one trial of an open-ended run gives no verdict by itself: " + v.Sentence + verdict.NextStep +
			"judge the directory of its run"
	}
	return nil
}

// ruled replaces the verdict with the one that the rule gives. Of several pairs, the worst decides.
func (v *Verdict) ruled() {
	var exits []int
	for _, e := range v.Until.Pairs {
		exits = append(exits, e.ExitCode)
	}
	v.ExitCode = verdict.Combine(exits)
	for _, e := range v.Until.Pairs {
		if e.ExitCode != v.ExitCode {
			continue
		}
		v.Verdict, v.Sentence = e.Verdict, e.Why
		if len(v.Until.Pairs) > 1 {
			v.Sentence = fmt.Sprintf("pair %s: %s", e.Pair, e.Why)
		}
		return
	}
}
