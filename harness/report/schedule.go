package report

import (
	"fmt"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	counts "github.com/kube-relapse/relapse/harness/rate"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Until is how an open-ended run ended, by pair.
type Until struct {
	plan.Until
	Stopped map[string]string `json:"stopped"` // pair -> why it had no further trial
}

// Schedule says whose turn it is in an open-ended run: pairs take turns, and one that the rule is content with, or that has had all the trials that
// it may have, is passed over. The same outcomes give the same schedule, while the run goes on and when it is judged again.
type Schedule struct {
	plan    *plan.Plan
	trials  []verdict.Trial
	stopped map[string]string
	turn    int // index of the pair that comes next, unless it has stopped
}

// NewSchedule begins the schedule of a plan that has Until.
func NewSchedule(p *plan.Plan) *Schedule { return &Schedule{plan: p, stopped: map[string]string{}} }

// Next is the pair of the next trial and that trial's number, from 1. ok is false when all pairs have stopped.
func (s *Schedule) Next() (pair string, number int, ok bool) {
	pairs := s.plan.Pairs()
	for i := range pairs {
		at := (s.turn + i) % len(pairs)
		if _, over := s.stopped[pairs[at]]; !over {
			return pairs[at], len(s.trials) + 1, true
		}
	}
	return "", 0, false
}

// Judged takes what came of the trial that Next asked for. It returns what is known of the pair, and whether that ends its trials.
func (s *Schedule) Judged(t verdict.Trial) counts.Decision {
	s.trials = append(s.trials, t)
	for i, pair := range s.plan.Pairs() {
		if pair == t.Pair {
			s.turn = i + 1
		}
	}
	had := 0
	for _, o := range s.trials {
		if o.Pair == t.Pair {
			had++
		}
	}
	d := counts.Decide(armsOf(Rates(s.trials, s.plan.Until), t.Pair), s.plan.Until.Confidence)
	if !d.Done && had >= s.plan.Until.Max {
		d = counts.Decision{Done: true, Why: fmt.Sprintf("the rule was not content after %d trials: %s", had, d.Why)}
	}
	if d.Done {
		s.stopped[t.Pair] = d.Why
	}
	return d
}

// Stopped is why each pair that has stopped did.
func (s *Schedule) Stopped() map[string]string { return s.stopped }

func armsOf(rates []Rate, pair string) []counts.Arm {
	var out []counts.Arm
	for _, r := range rates {
		if r.Pair == pair {
			out = append(out, counts.Arm{Name: r.Arm, Role: r.Role, Count: r.counted()})
		}
	}
	return out
}

// JudgeTrial judges one bundle.
func JudgeTrial(dir string) (verdict.Trial, error) {
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

// sum adds the rates over all trials. The trials of an open-ended run must be those that its schedule asks for, up to its end: whoever takes one away
// changes what the others call for.
func (v *Verdict) sum(from bundles) error {
	var trials []verdict.Trial
	for _, t := range v.Trials {
		trials = append(trials, t.Trial)
	}
	p := from.plan
	if p == nil || p.Until == nil {
		v.Rates = Rates(trials, nil)
		return nil
	}
	v.Rates = Rates(trials, p.Until)
	s := NewSchedule(p)
	for _, t := range trials {
		pair, number, ok := s.Next()
		if want := fmt.Sprintf("%03d", number); !ok || t.Pair != pair || t.ID != want {
			if !ok {
				return fmt.Errorf("the run was over before trial %s: its rule was content with every pair", t.ID)
			}
			return fmt.Errorf("trial %s of pair %s stands where trial %s of pair %s belongs: one is missing, or isn't of this run", t.ID, t.Pair, want, pair)
		}
		s.Judged(t)
	}
	if pair, number, more := s.Next(); more && from.cut == "" {
		return fmt.Errorf("the run isn't over: trial %03d, of pair %s, comes next, and there is no bundle of it", number, pair)
	}
	v.Until = &Until{Until: *p.Until, Stopped: s.Stopped()}
	return nil
}
