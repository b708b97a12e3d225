package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	counts "github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Rate is how often an arm of a pair had an outcome.
//
// For an arm that is judged, or that is the only one, a trial counts if the controls of the trial were as expected. If
// the arm was neither Reproduced nor NotReproduced in such a trial, the trial is in Against, because an incident may
// destroy its own evidence. For a control, a trial counts if the control was Reproduced or NotReproduced. All other
// trials are in Others, and don't count.
//
// Low and High are the ends of Wilson's interval, from 0 to 1. High takes the trials in Against for ones with the
// outcome. The interval holds if the number of trials was fixed beforehand.
type Rate struct {
	Pair       string         `json:"pair"`
	Arm        string         `json:"arm"`
	Role       string         `json:"role"`
	Outcome    string         `json:"outcome"`           // the one that is counted: Reproduced
	K          int            `json:"k"`                 // trials with the outcome
	N          int            `json:"n"`                 // trials that count
	Against    map[string]int `json:"against,omitempty"` // those of N that give no usable answer, by outcome
	Others     map[string]int `json:"others,omitempty"`
	Confidence float64        `json:"confidence"`
	Low        float64        `json:"low"`
	High       float64        `json:"high"`     // an end of Wilson's interval, as Low is
	Method     string         `json:"method"`   // of Low and High: Wilson
	Sentence   string         `json:"sentence"` // "0 of 20 with 20 of 20 in the control: 0 to 17 % (Wilson, 95 %)"
}

// fixedConfidence is the confidence of intervals unless a run asks for another one.
const fixedConfidence = 0.95

// Rates returns the rate of each arm over trials, by pair and arm in the order of their first trials. until is nil if
// the number of trials was fixed beforehand. A lost trial counts against each judged arm of its pair, unless what ended
// it was shown to come from outside.
func Rates(trials []verdict.Trial, until *plan.Until, lost ...bundle.LostTrial) []Rate {
	confidence := fixedConfidence
	if until != nil {
		confidence = until.Confidence
	}
	out := []Rate{}
	for _, t := range trials {
		for _, a := range t.Arms {
			i := slices.IndexFunc(
				out,
				func(r Rate) bool { return r.Pair == t.Pair && r.Arm == a.Name },
			)
			if i < 0 {
				i = len(out)
				out = append(
					out,
					Rate{
						Pair:       t.Pair,
						Arm:        a.Name,
						Role:       a.Role,
						Outcome:    string(verdict.Reproduced),
						Confidence: confidence,
						Method:     "Wilson",
					},
				)
			}
			out[i].count(t, a)
		}
	}
	for _, t := range lost {
		for i, r := range out {
			alone := !slices.ContainsFunc(
				out,
				func(o Rate) bool { return o.Pair == r.Pair && o.Arm != r.Arm },
			)
			if r.Pair == t.Pair && !t.Outside && (alone || judgedAmong(out, r)) {
				out[i].N++
				note(&out[i].Against, lostOutcome)
			}
		}
	}
	for i := range out {
		out[i].Low, out[i].High = counts.Interval(
			out[i].Counted(),
			out[i].CountsAgainst(),
			confidence,
		)
	}
	for i, r := range out {
		out[i].Sentence = r.describe(controlOf(out, r), judgedAmong(out, r), until != nil)
	}
	return out
}

// lostOutcome stands for the outcome of a trial that left no evidence.
const lostOutcome = "without evidence"

// unproven follows the name of an outcome that doesn't count.
const unproven = " in a trial that proves nothing"

// count adds one trial of an arm to the rate.
func (r *Rate) count(t verdict.Trial, a verdict.Arm) {
	judged, controls := roles(t)
	itself := len(t.Arms) == 1 ||
		slices.ContainsFunc(judged, func(j verdict.Arm) bool { return j.Name == a.Name })
	c, what := r.Counted(), string(a.Outcome)
	if answer(new(counts.Count), a.Outcome) {
		what += unproven
	}
	switch {
	case itself && !controlled(t):
		note(&r.Others, what)
	case itself && len(judged) == 1 && len(controls) > 0 && silent(t): // its twin may contradict its outcome
		r.N++
		note(&r.Against, what)
	case answer(&c, a.Outcome):
		r.K, r.N = c.K, c.N
	case itself:
		r.N++
		note(&r.Against, what)
	default:
		note(&r.Others, what)
	}
}

func note(in *map[string]int, what string) {
	if *in == nil {
		*in = map[string]int{}
	}
	(*in)[what]++
}

// Counted returns k of n.
func (r Rate) Counted() counts.Count { return counts.Count{K: r.K, N: r.N} }

// CountsAgainst returns how many trials count against the arm without showing the incident.
func (r Rate) CountsAgainst() (n int) {
	for _, k := range r.Against {
		n += k
	}
	return n
}

// controlOf returns the rate of the vulnerable arm in r's pair, nil if there is none or r is of that role.
func controlOf(all []Rate, r Rate) *Rate {
	i := slices.IndexFunc(all, func(o Rate) bool {
		return o.Pair == r.Pair && o.Role == scenario.Vulnerable && r.Role != scenario.Vulnerable
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// judgedAmong reports whether r is the rate of an arm that is judged and has a control: the candidate, or else the
// fixed arm.
func judgedAmong(all []Rate, r Rate) bool {
	if r.Role == scenario.Vulnerable || controlOf(all, r) == nil {
		return false
	}
	return r.Role == scenario.Candidate || !slices.ContainsFunc(all,
		func(o Rate) bool { return o.Pair == r.Pair && o.Role == scenario.Candidate })
}

// describe puts a rate into words. The bound of an open-ended run allows for the choice of when to stop.
func (r Rate) describe(control *Rate, judged, openEnded bool) string {
	s := r.Counted().String()
	if control != nil {
		s += fmt.Sprintf(" with %s in the control", control.Counted())
	}
	switch {
	case openEnded && judged && r.K > 0:
		s += ": it has it, and how often isn't said, as the first one ends the trials"
	case openEnded && judged && r.N > 0 && len(r.Against) == 0:
		s += ": " + counts.NoneSoFar(r.N, r.Confidence)
	case openEnded:
		s += ": " + counts.Anytime(r.Counted(), r.CountsAgainst(), r.Confidence)
	default:
		s += ": " + counts.InWords(r.Counted(), r.CountsAgainst(), r.Confidence)
	}
	if len(r.Against) > 0 {
		s += "; counted against it: " + each(r.Against)
	}
	if len(r.Others) > 0 {
		s += "; not counted: " + each(r.Others)
	}
	return s
}

// Aside says which trials of an arm gave no answer, in parentheses; "" if all did.
func (r Rate) Aside() string {
	var parts []string
	if len(r.Against) > 0 {
		parts = append(parts, "counted against it: "+each(r.Against))
	}
	if len(r.Others) > 0 {
		parts = append(parts, "not counted: "+each(r.Others))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// each lists how many trials had which outcome.
func each(trials map[string]int) string {
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(trials)) {
		parts = append(parts, fmt.Sprintf("%d %s", trials[o], o))
	}
	return strings.Join(parts, ", ")
}
