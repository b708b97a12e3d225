package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func (t *Trial) validateFault(f Fault, have *cluster.Capabilities) error {
	in := func(err error, below ...string) error {
		return scenario.InField(err, append([]string{"faults", f.Name}, below...)...)
	}
	if err := valid(kinds.Fault, f.Name, f.Spec); err != nil {
		return in(err, "spec")
	}
	needs := f.Spec.Needs()
	var errs []error
	for _, s := range needs.Seams {
		if !slices.Contains(t.Seams, s) {
			errs = append(errs, in(fmt.Errorf("fault %q needs the seam %s, which the scenario doesn't have (seams: [%s])",
				f.Name, s, strings.Join(t.Seams, ", ")), "kind"))
		}
	}
	if makes := func(o Fault) bool { w, ok := o.Spec.(fault.Webhooker); return ok && w.MakesWebhooks() }; needs.Webhook &&
		!slices.ContainsFunc(t.Faults, makes) {
		errs = append(errs, in(fmt.Errorf("fault %q acts on the connection to a webhook, and no fault of the scenario makes one "+
			"(want a fault of the kind webhook, other than an extender)", f.Name), "spec", "connection"))
	}
	for _, c := range needs.Constants {
		if !t.declares(c) {
			errs = append(errs, in(fmt.Errorf("fault %q needs the constant %s, which the scenario doesn't declare", f.Name,
				c), "spec"))
		}
	}
	if w, ok := f.Spec.(fault.ForAll); ok && w.ForAll() && !t.Place().OwnCluster() {
		errs = append(errs, in(fmt.Errorf("fault %q changes what all arms of a cluster share (want placement: cluster; objects "+
			"may have $(arm) or $(node) in each manifest instead)", f.Name), "spec"))
	}
	errs = append(
		errs,
		t.validateReplaced(f),
		in(t.validateRestarts(f), "spec"),
		in(t.validateFlags(f), "spec", "flags"),
		in(t.validateLease(f), "spec"),
		in(t.validateConversion(f), "spec", "conversion"),
	)
	if have != nil {
		errs = append(errs, t.validateProvided(f.Name, needs, *have))
	}
	return errors.Join(errs...)
}

// validateProvided refuses a fault that needs what the provider's clusters can't do.
func (t *Trial) validateProvided(
	name string,
	needs fault.Needs,
	have cluster.Capabilities,
) error {
	var errs []error
	for _, n := range []struct {
		lacks bool
		does  string
	}{
		{needs.Exec && have.Nodes().Commands == nil, "run commands in nodes"},
		{needs.Power && have.Nodes().Power == nil, "cut the power of nodes"},
		{needs.Network && have.Nodes().Network == nil, "cut nodes off from each other"},
	} {
		if n.lacks {
			errs = append(
				errs,
				fmt.Errorf("fault %q must %s, which this provider can't", name, n.does),
			)
		}
	}
	if needs.Nodes && !have.Kubelets &&
		slices.ContainsFunc(t.Clusters, func(c Cluster) bool { return c.Topology.Simulated == 0 }) {
		errs = append(errs, fmt.Errorf("fault %q acts on Node objects, and this provider has none but simulated ones "+
			"(nodes: {simulated: 1})", name))
	}
	return errors.Join(errs...)
}

// validateFlags refuses a fault that gives a component flags which it has in some cluster from the start, and a second
// fault that gives the component flags: lifting the one would take those of the other.
func (t *Trial) validateFlags(f Fault) error {
	r, ok := f.Spec.(fault.Reflagger)
	if !ok {
		return nil
	}
	name, flags := r.Flagged()
	if len(flags) == 0 {
		return nil
	}
	for _, o := range t.Faults {
		if o.Name == f.Name {
			break
		}
		if other, ok := o.Spec.(fault.Reflagger); ok {
			if of, theirs := other.Flagged(); of == name && len(theirs) > 0 {
				return fmt.Errorf(
					"fault %q gives %s flags, as fault %q does: lifting one would take those of the other "+
						"(want one fault with all flags)",
					f.Name,
					name,
					o.Name,
				)
			}
		}
	}
	for _, of := range t.Seams {
		s, err := kinds.Make[seam.Seam](kinds.Seam, of)
		if err != nil {
			continue // refused as a seam
		}
		for flag := range s.Args()[name] {
			if _, given := flags[flag]; given {
				return fmt.Errorf(
					"fault %q gives %s --%s, which leads it through the seam %s (want the flag left out)",
					f.Name,
					name,
					flag,
					of,
				)
			}
		}
	}
	for _, c := range t.Clusters {
		for _, n := range c.Topology.Nodes {
			if has := n.Args[name]; len(has) > 0 && holds(has, flags) {
				return fmt.Errorf(
					"fault %q gives %s the flags that it has anyway, by the scenario's args (want other values)",
					f.Name,
					name,
				)
			}
		}
	}
	return nil
}

// validateConversion refuses a second fault that changes what a CustomResourceDefinition converts by: what the one keeps as
// having stood there is the other's.
func (t *Trial) validateConversion(f Fault) error {
	c, ok := f.Spec.(fault.Converter)
	if !ok || c.Converts() == "" {
		return nil
	}
	for _, o := range t.Faults {
		if other, ok := o.Spec.(fault.Redefiner); ok && o.Name != f.Name && other.Redefines(c.Converts()) {
			return fmt.Errorf("faults %q and %q both change the CustomResourceDefinition %s, and each would bring back what the other left "+
				"(want one of them)", f.Name, o.Name, c.Converts())
		}
	}
	return nil
}

// validateLease refuses a fault in which the subject ends itself for want of its lease: a cured build would be Broken.
func (t *Trial) validateLease(f Fault) error {
	l, ok := f.Spec.(fault.LeaseLoser)
	if !ok || t.NoFaults || l.LosesLease() != t.Subject {
		return nil
	}
	for _, c := range t.Clusters {
		for _, n := range c.Topology.Nodes {
			if n.Role == cluster.ControlPlane && n.Args[t.Subject]["leader-elect"] != "false" {
				return fmt.Errorf(
					"fault %q keeps the subject %s from renewing its lease for so long that it may end itself, in every build "+
						"(want a lower atMost or latency, or a higher rate, or args: {%s: {leader-elect: \"false\"}})",
					f.Name,
					t.Subject,
					t.Subject,
				)
			}
		}
	}
	return nil
}

// holds reports whether all flags are among others, with the same values.
func holds(all, flags map[string]string) bool {
	for name, value := range flags {
		if have, ok := all[name]; !ok || have != value {
			return false
		}
	}
	return true
}

// validateRestarts refuses a fault that makes the subject another process, with a check that needs the process of the
// baseline: nobody could answer it.
func (t *Trial) validateRestarts(f Fault) error {
	r, ok := f.Spec.(fault.Restarter)
	if !ok || t.NoFaults || !r.Restarts(t.Subject) {
		return nil
	}
	var errs []error
	for _, l := range t.checkLists() {
		errs = append(errs, sameProcess(f, *l.checks))
	}
	return errors.Join(errs...)
}

// sameProcess refuses the checks of a list that need the process of the baseline.
func sameProcess(f Fault, list []Check) error {
	var errs []error
	for _, c := range list {
		if n, ok := c.Spec.(check.Comparer); ok && n.NeedsBaselineProcess() {
			next := "want another check"
			if part, ok := strings.CutPrefix(c.Name, BuiltIn); ok {
				next = "want health: {without: [{part: " + part + ", why: …}]}"
			}
			errs = append(errs, fmt.Errorf("fault %q makes the subject another process, and check %q needs the one of the "+
				"baseline (%s)", f.Name, c.Name, next))
		}
		errs = append(errs, sameProcess(f, c.AnyOf))
	}
	return errors.Join(errs...)
}
