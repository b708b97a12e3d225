package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// validateVacuous refuses a check that decides an outcome and that is met where nothing was there at all, unless another
// check of its list, in the same phase, shows that the evidence which it reads was there.
func (t *Trial) validateVacuous() error {
	var errs []error
	for _, l := range t.deciding() {
		if l.name == scenario.SteadyList {
			continue
		}
		for i, c := range *l.checks {
			beside := slices.Delete(slices.Clone(*l.checks), i, i+1)
			errs = append(errs, vacuousIn(c, beside, l.name, c.Name))
		}
	}
	return errors.Join(errs...)
}

// vacuousIn refuses a vacuous check, or a vacuous alternative of a group. Any alternative alone meets the group, so the
// others show nothing for it, except that a name is not misspelt: one that is misspelt in both isn't noticed.
func vacuousIn(c Check, beside []Check, path ...string) error {
	if len(c.AnyOf) == 0 {
		return vacuous(c, beside, path...)
	}
	var errs []error
	for i, one := range c.AnyOf {
		beside := beside
		if _, ok := one.Spec.(check.VacuousByName); ok {
			beside = slices.Concat(beside, c.AnyOf[:i], c.AnyOf[i+1:])
		}
		errs = append(errs, vacuousIn(one, beside, slices.Concat(path, []string{"anyOf", one.Name})...))
	}
	return errors.Join(errs...)
}

// vacuous refuses a check that nothing would meet, and that no other check stands beside that shows the evidence.
func vacuous(c Check, beside []Check, path ...string) error {
	v, ok := c.Spec.(check.Vacuous)
	if !ok || !v.Vacuous() || slices.ContainsFunc(beside, func(other Check) bool { return shows(other, c) }) {
		return nil
	}
	return scenario.InField(fmt.Errorf("check %q is also met if there was nothing to see (want a check beside it that shows "+
		"there was something: of the same log, objects or metric, in the phase %s)", c.Name, c.Phase), append(path, "spec")...)
}

// shows reports whether a check that is met proves that the evidence which c reads was there. A group does if each of
// its alternatives does.
func shows(other, c Check) bool {
	if len(other.AnyOf) > 0 {
		return !slices.ContainsFunc(other.AnyOf, func(one Check) bool { return !shows(one, c) })
	}
	if v, ok := other.Spec.(check.Vacuous); ok && v.Vacuous() || other.Phase != c.Phase {
		return false
	}
	mine := kinds.References(c.Spec)
	return slices.ContainsFunc(kinds.References(other.Spec), func(r kinds.Reference) bool {
		return chosen[r.To].kind != "" &&
			slices.ContainsFunc(
				mine,
				func(m kinds.Reference) bool { return m.To == r.To && m.Name == r.Name },
			)
	})
}
