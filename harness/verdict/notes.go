package verdict

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// notes returns what a reader must know of a trial in addition to the outcomes. The notes are in the trial's sentence,
// and in the reports under deviates.
func notes(v bundle.View, t plan.Trial, arms []Arm) []string {
	return slices.Concat(
		sameBinary(v.World(), t),
		assumed(v.World(), t, arms),
		notHealedByRestart(arms),
	)
}

// sameBinary names the arms that are the same binary.
func sameBinary(w bundle.World, t plan.Trial) []string {
	var out []string
	for i, a := range t.Arms {
		for _, b := range t.Arms[i+1:] {
			d := armWorld(w, a.Name).Program()
			if d != "" && d == armWorld(w, b.Name).Program() &&
				(a.Role != b.Role || a.Role == scenario.Candidate) {
				out = append(
					out,
					fmt.Sprintf("the arms %s and %s are the same binary (SHA-256 %s)", a.Name,
						b.Name, short(d)),
				)
			}
		}
	}
	return out
}

// notHealedByRestart names arms that the final restart didn't heal.
func notHealedByRestart(arms []Arm) []string {
	var out []string
	for _, a := range arms {
		if a.Restart != nil && a.Restart.ReadySeconds < 0 {
			out = append(
				out,
				fmt.Sprintf(
					"the restart of %s did not heal its node within %.0f s, so the diagnosis lacks its last "+
						"proof",
					a.Name,
					a.Restart.LimitSeconds,
				),
			)
		}
	}
	return out
}
