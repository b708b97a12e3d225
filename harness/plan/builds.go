package plan

import (
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// replaces returns the component of which a fault replaces the build, "" if it does no such thing, and the number of the
// build that an arm gets by it, from 1.
func replaces(f Fault, arm Arm) (component string, build int) {
	r, ok := f.Spec.(fault.Replacer)
	if !ok {
		return "", 0
	}
	if component, build = r.Replaces(); build == 0 {
		build = len(arm.Source.Builds())
	}
	return component, build
}

// validateReplaced refuses a fault that replaces what isn't the subject, or what an arm has no build for, or that would
// have to put an earlier build back.
func (t *Trial) validateReplaced(f Fault) error {
	component, _ := replaces(f, Arm{})
	in := func(field, format string, args ...any) error {
		return scenario.InField(fmt.Errorf("fault %q "+format, append([]any{f.Name}, args...)...), "faults", f.Name, "spec", field)
	}
	switch {
	case component == "":
		return nil
	case t.Place().SharedNodes():
		return in("action", "replaces a build, and with placement workload an arm has only one")
	case component != t.Subject:
		return in(
			"component",
			"replaces the build of %s, and only the subject %s has builds",
			component,
			t.Subject,
		)
	case scenario.Length(f.Duration) > 0:
		return scenario.InField(
			fmt.Errorf(
				"fault %q has a duration, and no fault puts an earlier build back (want none)",
				f.Name,
			),
			"faults",
			f.Name,
			"duration",
		)
	}
	var errs []error
	for _, c := range t.Arms {
		if f.Target.Arm != "" && f.Target.Arm != c.Name {
			continue
		}
		builds := len(c.Source.Builds())
		switch _, build := replaces(f, c); {
		case builds == 1:
			errs = append(
				errs,
				in(
					"action",
					"replaces the build of arm %s, which has only one (want others before it: source: "+
						"{before: [{version: v1.36.0}]})",
					c.Name,
				),
			)
		case build > builds:
			errs = append(errs, in("build", "puts build %d of arm %s in place, which has %d", build, c.Name, builds))
		}
	}
	return errors.Join(errs...)
}

// validateBuilds refuses an arm with several builds unless exactly one fault puts each but the first in place: the arm
// would never be what it is judged as. In a null control it keeps its first build, and the check of its binary says so.
// It also refuses builds that are too old or too new for their cluster.
func (t *Trial) validateBuilds() error {
	var errs []error
	for _, c := range t.Arms {
		all := c.Source.Builds()
		for n := 2; n <= len(all) && !t.NoFaults; n++ {
			var by []string
			for _, f := range t.Faults {
				if component, build := replaces(f, c); component != "" && build == n && (f.Target.Arm == "" || f.Target.Arm == c.Name) {
					by = append(by, f.Name)
				}
			}
			if len(by) != 1 {
				errs = append(errs, t.inBuilds(c, fmt.Errorf("arm %s has %d builds, and %d faults put build %d in place %q (want "+
					"one: process: {action: replace, component: %s, build: %d})", c.Name, len(all), len(by), n, by, t.Subject, n)))
			}
		}
		in := t.ClusterOf(c.Name)
		for i, s := range all[:len(all)-1] {
			if in == nil {
				continue
			}
			if want := fits(t.Subject, s.Version, in.Topology.Version); want != "" {
				errs = append(errs, t.inBuilds(c, fmt.Errorf("build %d of arm %s is %s %s, and its cluster %s: %s", i+1, c.Name,
					t.Subject, s.Version, in.Topology.Version, want)))
			}
		}
	}
	return errors.Join(errs...)
}

// inBuilds places an error at what an arm runs before its last build. A candidate has that from the scenario.
func (t *Trial) inBuilds(c Arm, err error) error {
	if c.Role == scenario.Candidate {
		return err
	}
	return scenario.InField(err, "pairs", t.Pair, "arms", c.Name, "source", "before")
}
