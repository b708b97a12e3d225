package report

import (
	"slices"

	counts "github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// tally counts the trials of a pair for the stopping rule by their verdicts.
func tally(trials []verdict.Trial, pair string) counts.Tally {
	var out counts.Tally
	for _, t := range trials {
		if t.Pair != pair {
			continue
		}
		judged, controls := roles(t)
		for _, a := range judged {
			out.Judged = a.Name
		}
		for _, a := range controls {
			if a.Role == scenario.Vulnerable {
				out.Control = a.Name
				answer(&out.Bites, a.Outcome)
			}
		}
		switch t.Verdict {
		case verdict.Validated:
			out.Clear++
		case verdict.StillVulnerable:
			out.Shown++
		case verdict.VerdictBroken:
			out.Broken++
		case verdict.VerdictError:
			out.Failed++
		default:
			out.SetAside++
			if slices.ContainsFunc(judged, func(a verdict.Arm) bool { return a.Outcome == verdict.Reproduced }) {
				out.Doubtful++
			}
		}
	}
	return out
}

// setAside reports whether a trial says nothing about its judged arm.
func setAside(t verdict.Trial) bool {
	return !slices.Contains([]verdict.Verdict{verdict.Validated, verdict.StillVulnerable, verdict.VerdictBroken,
		verdict.VerdictError}, t.Verdict)
}

// roles splits a trial's arms as the verdict table does: the candidates are judged if there are any, else the fixed
// arm.
func roles(t verdict.Trial) (judged, controls []verdict.Arm) {
	role := scenario.Fixed
	if slices.ContainsFunc(t.Arms, func(a verdict.Arm) bool { return a.Role == scenario.Candidate }) {
		role = scenario.Candidate
	}
	for _, a := range t.Arms {
		if a.Role == role {
			judged = append(judged, a)
		} else {
			controls = append(controls, a)
		}
	}
	return judged, controls
}

// proves reports whether a trial counts for one of its arms. It always counts for a control and for a lone arm. For a
// judged arm it counts if the controls were as expected and no arm with the same binary had another outcome.
func proves(t verdict.Trial, arm string) bool {
	judged, controls := roles(t)
	if len(controls) == 0 || !slices.ContainsFunc(judged, func(a verdict.Arm) bool { return a.Name == arm }) {
		return true
	}
	if len(judged) == 1 && setAside(t) {
		return false
	}
	return !slices.ContainsFunc(controls, func(a verdict.Arm) bool { return a.Outcome != a.Expected })
}

// answer counts an outcome that says whether an arm has the incident, and returns false for any other outcome.
func answer(c *counts.Count, o verdict.Outcome) bool {
	switch o {
	case verdict.Reproduced:
		c.K++
	case verdict.NotReproduced:
	default:
		return false
	}
	c.N++
	return true
}
