package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// NextStep introduces the next step, at the end of the reason of an Inconclusive arm and of the sentence of an
// Inconclusive trial.
const NextStep = "; next: "

// again is the next step if only chance or load can have been the cause.
const again = "run it again on a machine that is less busy"

// withFaults is the next step after a null control, which answers nothing about the incident.
const withFaults = "run it again without --no-faults"

// The next steps of a trial whose arms don't say what to do.
const (
	nextForSameBinary   = "run it again with --repeat 5, which shows how often either outcome comes of the same binary"
	nextForNoJudged     = "run it again with the fixed arm, or give it a build to judge with --candidate"
	nextForNoVulnerable = "run it again with the vulnerable arm beside the candidate; without --arms all arms take part"
	nextForGoneFiles    = "judge a copy of the bundle that has all of its files, or run it again"
)

// nextOf returns an Inconclusive arm's own next step, or again if it has none.
func nextOf(a ArmOutcome) string {
	if a.Next == "" {
		return again
	}
	return a.Next
}

// nextForControl returns what to do about a control whose outcome isn't the expected one.
func nextForControl(c ArmOutcome) string {
	switch {
	case c.Outcome == Inconclusive:
		return nextOf(c)
	case c.Role == scenario.Vulnerable && c.Outcome == NotReproduced:
		return "run it again with a larger fault, which brings the incident back in " + c.Name +
			" (--set; relapse explain says what can be set)"
	}
	return again + "; if " + c.Name + " is " + string(c.Outcome) +
		" again, its log in the bundle says what else happened to it"
}

// step is an arm with the data from which its next step is derived if the arm is Inconclusive.
type step struct {
	view  bundle.View
	trial plan.Trial
	arm   *Arm
	in    Inputs
}

func (s step) otherBinary() string {
	if slices.ContainsFunc(only(s.arm.Identity, check.False),
		func(f check.Finding) bool { return f.Name == CheckBinary }) {
		return "run it again, and leave the arm's binary alone while it runs"
	}
	return "run relapse cache prune and then it again, so that both arms are built by one toolchain with one set of " +
		"flags"
}

func (s step) unknownBinary() string {
	upgraded := slices.ContainsFunc(
		s.trial.Arms,
		func(a plan.Arm) bool { return a.Name == s.arm.Name && len(a.Source.Builds()) > 1 },
	)
	if s.trial.NoFaults && upgraded { // nothing put its last build in place
		return withFaults
	}
	return s.evidence(
		bundle.Identity,
		"the running binary has to be hashed before the fault and in the recovery",
	)
}

func (s step) unknownProcess() string {
	if endedSomehow(s.arm.Signature) {
		return "run it again with a smaller load or fault, so that more snapshots show what came before the end of " +
			"the process (--set; relapse explain says what can be set)"
	}
	return s.evidence(
		bundle.Identity,
		fmt.Sprintf(
			"the process has to be looked at within %s of the beginning and of the end",
			question.MaxIdentityGap,
		),
	)
}

func (s step) neverSteady() string {
	if s.in.Steady == check.Unknown {
		return s.unknown(s.arm.Steady, s.trial.Steady, check.Steady)
	}
	return "give it longer to become steady, with " + s.lengthenPhase(check.Steady) +
		", or see in the arm's log in the bundle what keeps it"
}

func (s step) illBefore() string {
	return again +
		"; if it is the same, this build shows the signature without any fault, and what the fault does to it can't " +
		"be judged"
}

func (s step) unknownBaseline() string {
	return s.unknown(s.arm.Baseline, InPhase(s.trial.Signature, check.Baseline), check.Baseline)
}

func (s step) notExposed() string {
	switch {
	case s.trial.NoFaults:
		return withFaults
	case s.in.Exposure == check.Unknown:
		return s.unknown(s.arm.Exposure, s.trial.Exposure, check.Fault)
	}
	return "run it again with a larger fault, or give it longer to take effect, with " + s.lengthenPhase(check.Fault) +
		" (relapse explain says what can be set)"
}

func (s step) missedFault() string {
	return again + "; if it is the same, the log of " + s.arm.Name + " in the bundle says what kept it from what " +
		"the missing one comes after"
}

func (s step) unknownSignature() string {
	return s.unknown(s.arm.Signature, s.trial.Signature, check.Recovery)
}

func (s step) unknownHealth() string { return s.unknown(s.arm.Healed, s.trial.Healed, check.Recovery) }

// evidence returns the next step if a kind of evidence is insufficient; wanted says what the evidence has to show.
func (s step) evidence(kind bundle.Kind, wanted string) string {
	if path, _ := missingFiles(s.view, s.arm.Name); path != "" {
		return nextForGoneFiles
	}
	return fmt.Sprintf(
		"%s, so that %s of %s is recorded all the time: %s",
		again,
		kind,
		s.arm.Name,
		wanted,
	)
}

// unknown returns the next step if checks have no answer. phase is for checks that name none.
func (s step) unknown(findings []check.Finding, list []plan.Check, phase string) string {
	if path, _ := missingFiles(s.view, s.arm.Name); path != "" {
		return nextForGoneFiles
	}
	var needs, phases []string
	for i, f := range findings {
		if f.Met == check.Unknown {
			n, p := asks(list[i], phase)
			needs, phases = append(needs, n...), append(phases, p...)
		}
	}
	switch {
	case len(list) == 0:
		return "give the scenario checks to ask: an empty list proves nothing"
	case len(needs) == 0 && s.trial.NoFaults: // without faults, loads that are triggers recorded nothing
		return withFaults
	case len(needs) == 0: // checks of what a load recorded
		return again
	}
	for _, p := range phases {
		if _, began := s.view.Phase(s.arm.Name, p); !began {
			last := s.lastPhase()
			return fmt.Sprintf(
				"run it again, and give it longer to get past the phase %s, with %s: the phase %s "+
					"never began",
				last,
				s.lengthenPhase(last),
				p,
			)
		}
	}
	slices.Sort(needs)
	return fmt.Sprintf(
		"%s, or give it longer, with %s, so that %s of %s says more",
		again,
		s.lengthenPhase(phases[0]),
		strings.Join(slices.Compact(needs), ", "),
		s.arm.Name,
	)
}

// asks returns the kinds of evidence that a check reads, and the phases in which it is asked.
func asks(c plan.Check, phase string) (kinds, phases []string) {
	phase = cmp.Or(c.Phase, phase)
	for _, alternative := range c.AnyOf {
		k, p := asks(alternative, phase)
		kinds, phases = append(kinds, k...), append(phases, p...)
	}
	if len(c.AnyOf) > 0 {
		return kinds, phases
	}
	for _, kind := range c.Spec.Reads() {
		kinds = append(kinds, string(kind))
	}
	return kinds, []string{phase}
}

// lastPhase returns the last phase that began for the arm; the steady state if none did.
func (s step) lastPhase() string {
	last := check.Steady
	for _, p := range []string{check.Baseline, check.Fault, check.Recovery} {
		if _, began := s.view.Phase(s.arm.Name, p); began {
			last = p
		}
	}
	return last
}

// lengthenPhase returns the flag that doubles the time of a phase.
func (s step) lengthenPhase(phase string) string {
	p := s.trial.Phases
	wait := map[string]scenario.DurationRange{check.Steady: p.Steady, check.Baseline: p.Baseline, check.Fault: p.Fault,
		check.Recovery: p.Recovery}[phase]
	field, now := "deadline", wait.Deadline.Duration
	if now == 0 {
		field, now = "atLeast", max(wait.AtLeast.Duration, 5*time.Second)
	}
	return fmt.Sprintf("--set phases.%s.%s=%s", phase, field, 2*now)
}

// missingFiles finds a file that the manifest lists and that isn't on disk, and counts such files. It looks at the
// evidence of an arm and at shared evidence; at that of all arms if arm is "".
func missingFiles(v bundle.View, arm string) (path string, n int) {
	for _, a := range v.Artifacts(bundle.Query{}) {
		if a.Missing && (arm == "" || a.Arm == arm || a.Arm == bundle.Shared) {
			path, n = cmp.Or(path, a.Path), n+1
		}
	}
	return path, n
}
