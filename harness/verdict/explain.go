package verdict

import (
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
)

// explain adds to the reason what was seen of it, and finds the decisive stack or line.
func explain(a *Arm, in Inputs) {
	var because []check.Finding
	switch {
	case in.HarnessError != "":
	case in.Binary == check.NotMet || in.Process == check.NotMet:
		because = only(a.Identity, check.NotMet)
	case in.NeverReady:
		because = except(a.Steady, check.Met)
	case in.Binary != check.Met || in.Process != check.Met:
		because = except(a.Identity, check.Met)
	case in.Steady != check.Met:
		because = except(a.Steady, check.Met)
	case in.Baseline == check.Met:
		because = a.Baseline
	case in.Baseline != check.NotMet:
		because = only(a.Baseline, check.Unknown)
	case in.Exposure != check.Met:
		because = except(a.Exposure, check.Met)
	case in.Signature == check.Met:
		because = slices.Concat(a.Signature, shown(a.Exposure))
	case in.Signature != check.NotMet:
		because = only(a.Signature, check.Unknown)
	case in.Healed == check.Met:
		because = slices.Concat(shown(a.Exposure), a.Healed)
	default:
		because = except(a.Healed, check.Met)
	}
	if seen := sentences(because); seen != "" {
		a.Reason += ": " + seen
	}
	for _, f := range because {
		if a.Decisive == "" && f.Detail != "" {
			a.Decisive = f.Detail
		}
	}
}

// shown are findings with each group of alternatives replaced by those that held: how an arm was exposed is part of why it is judged, and
// an arm is only shown to survive what it was exposed to.
func shown(list []check.Finding) []check.Finding {
	var out []check.Finding
	for _, f := range list {
		if len(f.AnyOf) > 0 {
			out = append(out, only(f.AnyOf, check.Met)...)
			continue
		}
		out = append(out, f)
	}
	return out
}

func only(list []check.Finding, t check.Tri) []check.Finding {
	var out []check.Finding
	for _, f := range list {
		if f.Met == t {
			out = append(out, f)
		}
	}
	return out
}

// except is what isn't t; what is known goes before what is not, because it is what decided.
func except(list []check.Finding, t check.Tri) []check.Finding {
	var out []check.Finding
	for _, other := range []check.Tri{check.NotMet, check.Met, check.Unknown} {
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
