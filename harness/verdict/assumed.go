package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// assumed notes, for each arm with unknown constants, which values stand for them and what the arm was really tried
// with. The arm is only proven to survive that much.
func assumed(w bundle.World, t plan.Trial, arms []Arm) []string {
	var out []string
	for _, c := range t.Arms {
		taken := armWorld(w, c.Name).Assumed
		if len(taken) == 0 {
			continue
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(taken)) {
			parts = append(parts, name+" "+amount(taken[name]))
		}
		note := fmt.Sprintf("constants of %s are not known, and these are assumed: %s", c.Name,
			strings.Join(parts, ", "))
		if with := tried(arms, c.Name); len(with) > 0 {
			note += fmt.Sprintf("; what was tried on it: %s", strings.Join(with, " and "))
		}
		out = append(out, note)
	}
	return out
}

// survived notes what the judged arms that don't show the incident were tried with, because a build that only fails
// later would seem to survive, too. It leaves out arms with unknown constants, for which assumed notes the same.
func survived(w bundle.World, t plan.Trial, arms []Arm) []string {
	judged := judgedRole(arms)
	var out []string
	for _, a := range arms {
		said := slices.ContainsFunc(t.Arms,
			func(c plan.Arm) bool { return c.Name == a.Name && len(armWorld(w, c.Name).Assumed) > 0 })
		if with := tried(arms, a.Name); a.Role == judged && a.Outcome == NotReproduced && !said && len(with) > 0 {
			out = append(out, fmt.Sprintf("what was tried on %s: %s", a.Name,
				strings.Join(with, " and ")))
		}
	}
	return out
}

// ways notes which ways to the bug a trial took, if a judged arm survived them.
func ways(t plan.Trial, arms []Arm) []string {
	judged := judgedRole(arms)
	if t.Tried == nil || !slices.ContainsFunc(arms, func(a Arm) bool { return a.Role == judged && a.Outcome == NotReproduced }) {
		return nil
	}
	return []string{t.Tried.String()}
}

// judgedRole returns the role of the arms that are judged: candidate if there is one, else fixed.
func judgedRole(arms []Arm) string {
	if slices.ContainsFunc(arms, func(a Arm) bool { return a.Role == scenario.Candidate }) {
		return scenario.Candidate
	}
	return scenario.Fixed
}

// tried returns what an arm's exposure checks measured, without repetitions. Only checks that are True count.
func tried(arms []Arm, name string) (out []string) {
	var collect func([]check.Finding)
	collect = func(list []check.Finding) {
		for _, f := range list {
			if f.Met == check.True && f.Tried != "" && !slices.Contains(out, f.Tried) {
				out = append(out, f.Tried)
			}
			collect(f.AnyOf)
		}
	}
	for _, a := range arms {
		if a.Name == name {
			collect(a.Exposure)
		}
	}
	return out
}

// amount formats a constant. One of a second or more in nanoseconds is shown as a duration: no count is that large.
func amount(n int64) string {
	if n >= int64(time.Second) {
		return time.Duration(n).String()
	}
	return fmt.Sprint(n)
}
