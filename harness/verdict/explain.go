package verdict

import (
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
)

// explain adds to the reason what was seen, picks the decisive stack or line, and ends an Inconclusive reason with the
// next step.
func explain(s step) {
	a, r := s.arm, rowOf(s.in)
	a.Because = r.because(a)
	if seen := sentences(a.Because); seen != "" {
		a.Reason += ": " + seen
	}
	for _, f := range onlyDeciding(a.Because) {
		if a.Decisive == "" && f.Detail != "" {
			a.Decisive, a.DecidedBy = f.Detail, f.Name
		}
	}
	if r.outcome == Inconclusive {
		a.Next = r.next(s)
		a.Reason += NextStep + a.Next
	}
}

// onlyDeciding returns the findings with each group of alternatives replaced by those that held: an arm only survives
// the alternatives that it was exposed to.
func onlyDeciding(list []check.Finding) []check.Finding {
	var out []check.Finding
	for _, f := range list {
		if len(f.AnyOf) > 0 {
			out = append(out, only(f.AnyOf, check.True)...)
			continue
		}
		out = append(out, f)
	}
	return out
}

func only(list []check.Finding, t check.Truth) []check.Finding {
	var out []check.Finding
	for _, f := range list {
		if f.Met == t {
			out = append(out, f)
		}
	}
	return out
}

// except returns the findings whose answer isn't t. Known answers come first, because they decided.
func except(list []check.Finding, t check.Truth) []check.Finding {
	var out []check.Finding
	for _, other := range []check.Truth{check.False, check.True, check.Unknown} {
		if other != t {
			out = append(out, only(list, other)...)
		}
	}
	return out
}

func sentences(list []check.Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, f.Name+": "+f.Seen)
	}
	return strings.Join(out, "; ")
}
