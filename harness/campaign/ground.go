package campaign

import (
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// answers maps the answer that a ground names to its value in a finding.
var answers = map[string]check.Truth{
	scenario.IsMet: check.True, scenario.IsNotMet: check.False, scenario.IsUnknown: check.Unknown,
}

// byItsGrounds grades an arm with the right outcome by the checks that led to it. The arm is right only if each of the
// candidate's grounds has the answer that it names, and if without all of them the outcome would be another one.
func (g *Graded) byItsGrounds(a verdict.Arm) (Grade, string) {
	var held []scenario.Ground
	must := 0
	for _, ground := range g.Because {
		said := a.Said(ground)
		if !ground.AskedIn(a.Pair) || len(said) == 0 && ground.Narrow {
			continue
		}
		if other, differs := otherAnswer(ground, said); !differs {
			held = append(held, ground)
		} else if !ground.Sometimes {
			grade := ByLuck
			if other == check.Unknown {
				grade = NoAnswer
			}
			return grade, fmt.Sprintf(
				"it is %s, but not because %s: that is %s; %s",
				a.Outcome,
				ground,
				other,
				a.Reason,
			)
		}
		if !ground.Sometimes {
			must++
		}
	}
	held = append(held, commonlyIll(a)...)
	if must == 0 {
		return NoAnswer, fmt.Sprintf(
			"it is %s, and nothing says by which check that is right; %s",
			a.Outcome,
			a.Reason,
		)
	}
	if a.Without(held) == a.Outcome {
		return ByLuck, fmt.Sprintf(
			"it is %s, and would be without what decides it (%s); %s",
			a.Outcome,
			listed(held),
			a.Reason,
		)
	}
	return Right, a.Reason
}

// commonlyIll returns the checks of the common health that are not met. Most things that go wrong leave goroutines,
// memory or a loop as well, in addition to what the candidate names.
func commonlyIll(a verdict.Arm) (out []scenario.Ground) {
	for _, f := range a.Healed {
		if strings.HasPrefix(f.Name, plan.BuiltIn) && f.Met == check.False {
			out = append(
				out,
				scenario.Ground{
					Check:     f.Name,
					Is:        scenario.IsNotMet,
					Sometimes: true,
					List:      scenario.HealedList,
					Name:      f.Name,
				},
			)
		}
	}
	return out
}

// otherAnswer returns the first answer that is not the ground's, and whether there is one. If the check has no answer,
// that is Unknown.
func otherAnswer(ground scenario.Ground, said []check.Truth) (check.Truth, bool) {
	if len(said) == 0 {
		return check.Unknown, true
	}
	for _, t := range said {
		if t != answers[ground.Is] {
			return t, true
		}
	}
	return check.Unknown, false
}

// listed joins grounds into one line.
func listed(grounds []scenario.Ground) string {
	var out []string
	for _, g := range grounds {
		out = append(out, g.String())
	}
	return strings.Join(out, ", ")
}
