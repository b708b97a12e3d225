package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// selectArms returns a pair's arms with the options applied, still without nodes. deviates names each change that
// weakens the trial.
func selectArms(pair scenario.Pair, o Options) (out []Arm, deviates Deviations, err error) {
	arms := slices.Clone(pair.Arms)
	if len(pair.Args) > 0 && len(o.Candidates) > 0 {
		return nil, nil, fmt.Errorf(
			"adding candidates: the pair %s has flags of its own, which only its versions are known to take: want another --pair",
			pair.Name,
		)
	}
	for _, given := range o.Candidates {
		c, doubts, err := candidate(pair, arms, given)
		if err != nil {
			return nil, nil, err
		}
		if doubt := doubtPatch(arms, c.Source, o.Swap); doubt != "" {
			doubts = append(doubts, doubt)
		}
		arms = append(arms, c)
		deviates.add(CodeDoubt, doubts...)
	}
	byName := map[string]scenario.Arm{}
	for _, a := range arms {
		byName[a.Name] = a
	}
	known := slices.Sorted(maps.Keys(byName))
	for _, name := range slices.Sorted(maps.Keys(o.Swap)) {
		for _, arm := range []string{name, o.Swap[name]} {
			if _, ok := byName[arm]; !ok {
				return nil, nil, fmt.Errorf(
					"swapping builds: there is no arm %q: want one of %s%s",
					arm,
					strings.Join(known, ", "),
					scenario.Meant(arm, known),
				)
			}
		}
	}
	for _, name := range o.Arms {
		if _, ok := byName[name]; !ok {
			return nil, nil, fmt.Errorf(
				"selecting arms: there is no arm %q: want one of %s%s",
				name,
				strings.Join(known, ", "),
				scenario.Meant(name, known),
			)
		}
	}
	for _, a := range arms {
		if a.Role == scenario.Candidate && len(o.Arms) > 0 && !slices.Contains(o.Arms, a.Name) {
			return nil, nil, fmt.Errorf(
				"selecting arms: %s leaves out the candidate, and another arm would be judged in place "+
					"of it: want %s among them, or no selection",
				strings.Join(o.Arms, ", "),
				a.Name,
			)
		}
	}
	for _, a := range arms {
		if len(o.Arms) > 0 && !slices.Contains(o.Arms, a.Name) {
			continue
		}
		buildOf := ""
		if other, ok := o.Swap[a.Name]; ok && other != a.Name {
			a.Source, buildOf = byName[other].Source, other
			deviates.add(
				CodeOption,
				fmt.Sprintf("arm %s runs the build of arm %s", a.Name, other),
			)
		}
		out = append(out, Arm{Arm: a, Expected: expected(a.Role), BuildOf: buildOf})
	}
	return out, deviates, nil
}

// expected returns the outcome that an arm's role calls for.
func expected(role string) string {
	if role == scenario.Vulnerable {
		return Reproduced
	}
	return NotReproduced
}

// leaveOut removes faults. An item that came after a removed fault now waits for what that fault waited for.
func (t *Trial) leaveOut(names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(t.Faults, func(f Fault) bool { return f.Name == name })
		if i < 0 {
			var known []string
			for _, f := range t.Faults {
				known = append(known, f.Name)
			}
			return fmt.Errorf("leaving out faults: there is no fault %q: want one of %s%s", name,
				strings.Join(known, ", "), scenario.Meant(name, known))
		}
		gone := t.Faults[i]
		t.Faults = slices.Delete(t.Faults, i, i+1)
		for _, it := range t.injections() {
			if it.After == nil || it.After.Name != name {
				continue
			}
			plus := it.After.Plus.Duration
			if gone.After != nil {
				it.After = &scenario.After{
					Name: gone.After.Name,
					Plus: &metav1.Duration{Duration: gone.After.Plus.Duration + plus},
				}
			} else {
				it.After, it.At = nil, &metav1.Duration{Duration: gone.At.Duration + plus}
			}
		}
		t.Deviates.add(CodeOption, fmt.Sprintf("fault %s is left out", name))
	}
	return nil
}

// injections returns the loads, followed by the faults.
func (t *Trial) injections() []*scenario.ItemHeader {
	var out []*scenario.ItemHeader
	for i := range t.Loads {
		out = append(out, &t.Loads[i].ItemHeader)
	}
	for i := range t.Faults {
		out = append(out, &t.Faults[i].ItemHeader)
	}
	return out
}
