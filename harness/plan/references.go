package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// referring is a load, fault, collector or check whose spec refers to other parts of the scenario.
type referring struct {
	what  string   // check "stuck"
	path  []string // to its place in the scenario
	spec  any
	phase string        // of a check or load
	after time.Duration // how long after the beginning of the phase it starts
}

// validateReferences refuses a spec that refers to something which the trial doesn't have. Evidence that a spec reads is
// left to validateReads.
func (t *Trial) validateReferences(of referring) error {
	var errs []error
	for _, r := range kinds.References(of.spec) {
		if err := t.refused(of, r); err != nil {
			errs = append(errs, scenario.InField(fmt.Errorf("%s %w", of.what, err),
				slices.Concat(of.path, []string{"spec"}, r.Path)...))
		}
	}
	return errors.Join(errs...)
}

// refused says why the trial doesn't have what a reference names, nil if it does.
func (t *Trial) refused(of referring, r kinds.Reference) error {
	var have []string
	noun := ""
	switch r.To {
	case kinds.ToLoad:
		if err := callless(of, r.Name, t.Loads); err != nil {
			return err
		}
		noun, have = "is about the load", names(t.Loads, func(l Load) string { return l.Name })
	case kinds.ToNode:
		noun, have = "is about the node", t.nodes()
	case kinds.ToConstant:
		noun, have = "needs the constant", names(
			t.Constants,
			func(c scenario.Constant) string { return c.Name },
		)
	case kinds.ToComponent:
		if c, ok := of.spec.(capture.Collector); ok && t.Place().SharedNodes() && slices.Contains(c.Makes(), bundle.Statuses) {
			return nil // it is of the subject, whatever it names
		}
		noun, have = "is about the component", t.components()
	case kinds.ToProbe:
		return t.refusedProbe(of, r.Name)
	case kinds.ToStretch:
		return t.refusedStretch(of, r)
	default:
		return nil
	}
	if slices.Contains(have, r.Name) {
		return nil
	}
	return fmt.Errorf(
		"%s %q, which the scenario doesn't have %s",
		noun,
		r.Name,
		scenario.OneOf(r.Name, have),
	)
}

// callless says why a check can't ask about the calls of a load, nil if it can.
func callless(of referring, name string, loads []Load) error {
	i := slices.IndexFunc(loads, func(l Load) bool { return l.Name == name })
	if _, asks := of.spec.(check.Check); !asks || i < 0 || slices.Contains(loads[i].Spec.Makes(), bundle.LoadSummary) {
		return nil
	}
	return fmt.Errorf(
		"reads what the load %q did, a %s, which records no calls",
		name,
		loads[i].Kind,
	)
}

func names[T any](all []T, name func(T) string) (out []string) {
	for _, one := range all {
		out = append(out, name(one))
	}
	return out
}

// validateFaults refuses checks of a list, or alternatives of one of its checks, that are about a fault which the scenario
// doesn't have. It is asked before faults are left out.
func (t *Trial) validateFaults(list []Check, path ...string) error {
	have := names(t.Faults, func(f Fault) string { return f.Name })
	var errs []error
	for _, c := range list {
		at := slices.Concat(path, []string{c.Name})
		errs = append(errs, t.validateFaults(c.AnyOf, append(at, "anyOf")...))
		for _, r := range kinds.References(c.Spec) {
			if r.To == kinds.ToFault && !slices.Contains(have, r.Name) {
				errs = append(errs, scenario.InField(fmt.Errorf("check %q is about the fault %q, which the scenario doesn't have %s",
					c.Name, r.Name, scenario.OneOf(r.Name, have)), slices.Concat(at, []string{"spec"}, r.Path)...))
			}
		}
	}
	return errors.Join(errs...)
}

// refusedProbe says why a load is no probe in the phase of a check, nil if it is.
func (t *Trial) refusedProbe(of referring, name string) error {
	var probes []string
	for _, l := range t.Loads {
		if slices.Contains(l.Spec.Makes(), bundle.WorkProbe) {
			probes = append(probes, l.Name)
		}
	}
	i := slices.IndexFunc(t.Loads, func(l Load) bool { return l.Name == name })
	switch {
	case i < 0:
		return fmt.Errorf(
			"is about the probe %q, which the scenario doesn't have %s",
			name,
			scenario.OneOf(name, probes),
		)
	case !slices.Contains(probes, name):
		return fmt.Errorf("is about %q, a %s, which is no probe", name, t.Loads[i].Kind)
	}
	if in := cmp.Or(t.Loads[i].Phase, check.Fault); in != of.phase {
		return fmt.Errorf(
			"asks in the phase %s about the probe %q, which is of the phase %s",
			of.phase,
			name,
			in,
		)
	}
	return nil
}

// refusedStretch says why a stretch doesn't fit into the phase of a check, nil if it does.
func (t *Trial) refusedStretch(of referring, r kinds.Reference) error {
	d, err := time.ParseDuration(r.Name)
	longest := t.Phases.Longest(of.phase)
	if err != nil || longest == 0 { // refused for another reason
		return nil
	}
	field, after := r.Path[len(r.Path)-1], of.after
	if field == "lastAfter" { // counted from the beginning of the phase
		after = 0
	}
	switch {
	case d <= longest-after:
		return nil
	case after > 0:
		return fmt.Errorf(
			"has %s %s, and the phase %s lasts %s at most, of which %s are left after %s",
			field,
			d,
			of.phase,
			longest,
			longest-after,
			after,
		)
	}
	return fmt.Errorf("has %s %s, and the phase %s lasts %s at most", field, d, of.phase, longest)
}

// components returns the names of the components and containers that the arms' cluster can have.
func (t *Trial) components() []string {
	if t.Place().SharedNodes() {
		return t.containers()
	}
	// Besides Kubernetes' own components, kubeadm and kind run these in kube-system.
	return append(component.Names(nil), "coredns", "kindnet-cni")
}
