package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/plan"
	counts "github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Rate is how often an arm of a pair had an outcome. A trial counts for N if it answers the question: its arm was
// Reproduced or NotReproduced, and for a judged arm the controls of the same trial were as expected. The other trials
// are in Others and count for nobody.
type Rate struct {
	Pair       string         `json:"pair"`
	Arm        string         `json:"arm"`
	Role       string         `json:"role"`
	Outcome    string         `json:"outcome"` // whose rate it is: Reproduced
	K          int            `json:"k"`       // trials with the outcome
	N          int            `json:"n"`       // trials that gave an answer
	Others     map[string]int `json:"others,omitempty"`
	Confidence float64        `json:"confidence"`
	Low        float64        `json:"low"`
	High       float64        `json:"high"`     // ends of Wilson's interval, 0 to 1; it holds if the number of trials was fixed beforehand
	Sentence   string         `json:"sentence"` // "0 of 20 with 20 of 20 in the control: at most 14 % at 95 %"
}

// fixedConfidence is the confidence of intervals unless another one was asked for.
const fixedConfidence = 0.95

// Rates sums up over trials, by pair and arm in the order of their first trials. until is nil if the number of trials
// was fixed beforehand.
func Rates(trials []verdict.Trial, until *plan.Until) []Rate {
	confidence := fixedConfidence
	if until != nil {
		confidence = until.Confidence
	}
	out := []Rate{}
	for _, t := range trials {
		for _, a := range t.Arms {
			i := slices.IndexFunc(out, func(r Rate) bool { return r.Pair == t.Pair && r.Arm == a.Name })
			if i < 0 {
				i = len(out)
				out = append(out, Rate{Pair: t.Pair, Arm: a.Name, Role: a.Role, Outcome: string(verdict.Reproduced),
					Confidence: confidence})
			}
			out[i].count(a.Outcome, proves(t, a.Name))
		}
	}
	for i := range out {
		out[i].Low, out[i].High = counts.Wilson(out[i].counted(), confidence)
	}
	for i, r := range out {
		out[i].Sentence = r.say(controlOf(out, r), judgedAmong(out, r), until != nil)
	}
	return out
}

// unproven marks an outcome that doesn't count.
const unproven = " in a trial that proves nothing"

func (r *Rate) count(o verdict.Outcome, counted bool) {
	c, what := r.counted(), string(o)
	if counted && answer(&c, o) {
		r.K, r.N = c.K, c.N
		return
	}
	if o == verdict.Reproduced || o == verdict.NotReproduced {
		what += unproven
	}
	if r.Others == nil {
		r.Others = map[string]int{}
	}
	r.Others[what]++
}

func (r Rate) counted() counts.Count { return counts.Count{K: r.K, N: r.N} }

// controlOf is the vulnerable arm beside another arm, nil if there is none.
func controlOf(all []Rate, r Rate) *Rate {
	i := slices.IndexFunc(all, func(o Rate) bool {
		return o.Pair == r.Pair && o.Role == scenario.Vulnerable && r.Role != scenario.Vulnerable
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// judgedAmong reports whether a rate is of an arm that is judged beside a control: the candidate, else the fixed arm.
func judgedAmong(all []Rate, r Rate) bool {
	if r.Role == scenario.Vulnerable || controlOf(all, r) == nil {
		return false
	}
	return r.Role == scenario.Candidate || !slices.ContainsFunc(all,
		func(o Rate) bool { return o.Pair == r.Pair && o.Role == scenario.Candidate })
}

// say puts a rate into words. In an open-ended run the bound allows for the choice of when to stop.
func (r Rate) say(control *Rate, judged, openEnded bool) string {
	s := r.counted().String()
	if control != nil {
		s += fmt.Sprintf(" with %s in the control", control.counted())
	}
	switch {
	case openEnded && judged && r.K > 0:
		s += ": it has it, and how often isn't said, as the first one ends the trials"
	case openEnded && judged && r.N > 0:
		s += ": " + counts.NoneSoFar(r.N, r.Confidence)
	case openEnded:
		s += ": " + counts.Anytime(r.counted(), r.Confidence)
	default:
		s += ": " + counts.Fixed(r.counted(), r.Confidence)
	}
	if left := r.left(); left != "" {
		s += "; not counted: " + left
	}
	return s
}

// left names the trials that gave no answer, "" if there are none.
func (r Rate) left() string {
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(r.Others)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Others[o], o))
	}
	return strings.Join(parts, ", ")
}

// rates writes k of n with its interval, and why an open-ended run stopped where it did.
func (p *printer) rates(v Verdict) {
	p.say("## How often\n\n| pair | arm | Reproduced | low | high | in words |\n|---|---|---|---|---|---|\n")
	for _, r := range v.Rates {
		p.say("| %s | %s | %s | %.1f %% | %.1f %% | %s |\n", cell(r.Pair), cell(r.Arm), r.counted(), r.Low*100,
			r.High*100, cell(r.Sentence))
	}
	p.say("\nLow and high are the ends of Wilson's interval. Trials that gave no answer are not counted, and are " +
		"named.\n\n")
	if v.Until != nil {
		p.say("Trials went on by the rule `%s`: until the judged arm is shown to show the incident in less than %s of them at %s, which takes %d trials without it, "+
			"or has shown it; at most %d of each pair.\n\n", v.Until.Rule, counts.Exactly(v.Until.Target), counts.Exactly(v.Until.Confidence), v.Until.Needed, v.Until.Max)
		for _, e := range v.Until.Pairs {
			p.say("- %s: %s\n", cell(e.Pair), cell(e.said()))
		}
		p.say("\n")
	}
}

// said is how a pair ended, in a line.
func (e Ending) said() string {
	s := fmt.Sprintf("%s: %s", e.Verdict, e.Why)
	if len(e.SetAside) > 0 {
		s += "; set aside: " + strings.Join(e.SetAside, ", ")
	}
	return s
}
