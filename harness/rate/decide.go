package rate

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Separated is the name of the rule that Decide is.
const Separated = "separated"

// Rules are the names of all rules there are.
var Rules = []string{Separated}

// Arm is what is known of one arm: how many of its judged trials showed the incident.
type Arm struct {
	Name string
	Role string // vulnerable, fixed or candidate
	Count
}

// Decision is what the rule says after some trials. Why is what is then known, or why it isn't yet; it ends without a full stop.
type Decision struct {
	Done bool
	Why  string
}

// half is what a rate is compared with where there is no other arm to compare with: does the arm show the incident in most of its trials?
const half = 0.5

// Decide is the stopping rule: may a pair's trials end, after those that arms count? It may be asked after every trial. It says so as soon as one of these
// is known:
//
//  1. the judged arm (the candidate, else the fixed one) shows the incident less often than the vulnerable one does,
//  2. the judged arm shows it in more than half of its trials,
//  3. the vulnerable arm shows it in less than half of its trials, so that the pair is no proof of anything,
//  4. of a lone arm, on which side of one half it is.
//
// "Known" means by intervals of Sequence at (1-confidence)/len(arms) each. With a probability of at least confidence all of them hold at all times at
// once (Boole's inequality, which needs no independence), and then whatever is concluded from them is true. So the probability that a pair ever
// stops with a false statement is at most 1-confidence, however many trials there are and whenever one looks. Of several pairs, each has its own.
func Decide(arms []Arm, confidence float64) Decision {
	if len(arms) == 0 {
		return Decision{Why: "there is no arm"}
	}
	alpha := (1 - confidence) / float64(len(arms))
	if len(arms) == 1 {
		return lone(arms[0], alpha)
	}
	judged, control := named(arms, scenario.Candidate), named(arms, scenario.Vulnerable)
	if judged == nil {
		judged = named(arms, scenario.Fixed)
	}
	if judged != nil {
		low, high := Sequence(judged.Count, alpha)
		if control != nil {
			if least, _ := Sequence(control.Count, alpha); high < least {
				return Decision{true, fmt.Sprintf("%s shows it in at most %s of its trials, %s in at least %s", judged.Name, Percent(high, true), control.Name, Percent(least, false))}
			}
		}
		if low > half {
			return Decision{true, fmt.Sprintf("%s shows it in at least %s of its trials", judged.Name, Percent(low, false))}
		}
	}
	if control != nil {
		if _, high := Sequence(control.Count, alpha); high < half {
			return Decision{true, fmt.Sprintf("%s shows it in at most %s of its trials, which makes a poor control", control.Name, Percent(high, true))}
		}
	}
	return Decision{Why: "the arms can't be told apart yet"}
}

func lone(a Arm, alpha float64) Decision {
	switch low, high := Sequence(a.Count, alpha); {
	case low > half:
		return Decision{true, fmt.Sprintf("%s shows it in at least %s of its trials", a.Name, Percent(low, false))}
	case high < half:
		return Decision{true, fmt.Sprintf("%s shows it in at most %s of its trials", a.Name, Percent(high, true))}
	}
	return Decision{Why: fmt.Sprintf("%s may show it in more than half of its trials or in less", a.Name)}
}

// named is the first arm of a role, nil if there is none.
func named(arms []Arm, role string) *Arm {
	if i := slices.IndexFunc(arms, func(a Arm) bool { return a.Role == role }); i >= 0 {
		return &arms[i]
	}
	return nil
}
