package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// ownArtifacts are the kinds of evidence that relapse itself records in every trial.
var ownArtifacts = []bundle.Kind{bundle.Identity, bundle.Host, bundle.Restart}

// Validate reports everything that keeps p from being run: unknown kinds, checks of evidence that no collector makes,
// faults whose seams or constants are missing, arms without a node.
func (p *Plan) Validate() error { return p.validate(nil) }

// ValidateFor is Validate for a provider whose capabilities are known.
func (p *Plan) ValidateFor(have cluster.Capabilities) error { return p.validate(&have) }

func (p *Plan) validate(have *cluster.Capabilities) error {
	if p.Schema != Schema {
		return fmt.Errorf("plan has schema %q: want %q", p.Schema, Schema)
	}
	var errs []error
	if p.Scenario == "" || p.Version == "" {
		errs = append(errs, errors.New("plan names no scenario or no Kubernetes version"))
	}
	if len(p.Trials) == 0 {
		errs = append(errs, errors.New("plan has no trials"))
	}
	errs = append(errs, p.validateUntil())
	seen, said := map[string]bool{}, map[string]bool{}
	for i := range p.Trials {
		t := &p.Trials[i]
		if t.ID == "" || seen[t.ID] {
			errs = append(errs, fmt.Errorf("trial id %q is empty or used twice", t.ID))
		}
		seen[t.ID] = true
		if said[t.Pair] {
			continue // further trials of the pair would only repeat its errors
		}
		if err := t.validate(have, p.Seed); err != nil {
			errs = append(errs, fmt.Errorf("planning %s, pair %s, trial %s: %w", p.Scenario, t.Pair, t.ID, err))
			said[t.Pair] = t.Pair != ""
		}
	}
	return errors.Join(errs...)
}

func (t *Trial) validate(have *cluster.Capabilities, seed int64) error {
	errs := []error{t.validateArms(), t.validateControlPlanes(have), t.validateMachines(have), t.validateTargets(seed)}
	made := slices.Clone(ownArtifacts)
	for _, c := range t.Collectors {
		if err := valid(kinds.Collector, c.Name, c.Spec); err != nil {
			errs = append(errs, err)
			continue
		}
		made = append(made, c.Spec.Makes()...)
	}
	for _, f := range t.Faults {
		errs = append(errs, t.validateFault(f, have))
		if maker, ok := f.Spec.(fault.Maker); ok {
			made = append(made, maker.Makes()...)
		}
	}
	for _, l := range t.Loads {
		makes, err := t.validateLoad(l, seed)
		made, errs = append(made, makes...), append(errs, err)
	}
	for _, c := range t.Clusters {
		for name := range c.Memory {
			if limited := component.Names(component.Limited); !slices.Contains(limited, name) {
				errs = append(errs, fmt.Errorf("the memory of %s can't be limited: want one of %s", name,
					strings.Join(limited, ", ")))
			}
		}
	}
	for _, s := range t.Seams {
		if _, err := kinds.Make[any](kinds.Seam, s); err != nil {
			errs = append(errs, err)
		}
	}
	for _, l := range t.checkLists() {
		if len(*l.checks) == 0 && l.name != scenario.InformationList {
			errs = append(errs, fmt.Errorf("%s has no checks: nothing would be asked", l.name))
		}
		errs = append(errs, t.validateChecks(*l.checks, made))
	}
	return errors.Join(errs...)
}

func (t *Trial) validateArms() error {
	if len(t.Arms) == 0 {
		return errors.New("no arm is left to run")
	}
	errs := []error{t.validateControl()}
	names := map[string]bool{}
	for _, c := range t.Arms {
		if names[c.Name] || c.Name == "" || c.Name == bundle.Shared {
			errs = append(errs, fmt.Errorf("arm name %q is empty, reserved or used twice", c.Name))
		}
		names[c.Name] = true
		if want := expected(c.Role); c.Expected != want {
			errs = append(errs, fmt.Errorf("arm %q, which is %s, expects %q: want %s", c.Name, c.Role, c.Expected,
				want))
		}
		errs = append(errs, t.Place().placed(c, t.ClusterOf(c.Name)))
	}
	for _, it := range t.injections() {
		if it.Target.Arm != "" && !names[it.Target.Arm] {
			errs = append(errs, fmt.Errorf("%q is aimed at arm %q, which this trial doesn't have", it.Name,
				it.Target.Arm))
		}
	}
	return errors.Join(errs...)
}

// nodes returns the names of all nodes, each once.
func (t *Trial) nodes() []string {
	var out []string
	for _, c := range t.Clusters {
		for _, n := range c.Topology.Nodes {
			if !slices.Contains(out, n.Name) {
				out = append(out, n.Name)
			}
		}
	}
	return out
}

func (t *Trial) declares(constant string) bool {
	return slices.ContainsFunc(t.Constants, func(c scenario.Constant) bool { return c.Name == constant })
}

// valid returns the error of a spec's own Validate method, if it has one.
func valid(category, name string, spec any) error {
	if v, ok := spec.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("%s %q: %w", category, name, err)
		}
	}
	return nil
}

// validateLoad checks a load and returns the kinds of evidence that it makes.
func (t *Trial) validateLoad(l Load, seed int64) ([]bundle.Kind, error) {
	if err := valid(kinds.Load, l.Name, l.Spec); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"", check.Baseline, check.Fault, check.Recovery}, l.Phase) {
		return nil, fmt.Errorf("load %q is of phase %q (want baseline, fault or recovery)", l.Name, l.Phase)
	}
	one, ok := l.Spec.(load.OnNode)
	switch onNode := ok && one.OnNode(); {
	case onNode && t.Place().SharedNodes():
		return nil, fmt.Errorf("load %q acts on the node of an arm, which the arms share (placement: node or cluster)",
			l.Name)
	case onNode:
		return l.Spec.Makes(), t.oneNode(l.ItemHeader, seed)
	case !t.Place().OwnCluster() && !alike(l.Spec):
		return nil, fmt.Errorf("load %q acts on a whole cluster, which arms must have to themselves (placement: "+
			"cluster)", l.Name)
	}
	return l.Spec.Makes(), nil
}

// alike reports whether all arms of a cluster see a load in the same way.
func alike(l load.Load) bool {
	one, ok := l.(load.Alike)
	return ok && one.Alike()
}

// oneNode refuses a target that chooses several nodes of an arm. validateTargets reports other mistakes of targets.
func (t *Trial) oneNode(l scenario.ItemHeader, seed int64) error {
	for _, arm := range t.Arms {
		in := t.ClusterOf(arm.Name)
		if in == nil {
			continue
		}
		if nodes, err := fault.SelectNodes(l.Target, in.Topology.Nodes, arm.Name, seed); err == nil && len(nodes) > 1 {
			return fmt.Errorf("load %q acts on one node, and its target chooses %s of arm %s", l.Name,
				strings.Join(nodes, ", "), arm.Name)
		}
	}
	return nil
}

// validateProbes refuses a check that names a probe which doesn't run in the check's phase.
func (t *Trial) validateProbes(c Check, probes []string) error {
	var errs []error
	for _, name := range probes {
		i := slices.IndexFunc(t.Loads, func(l Load) bool { return l.Name == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("check %q is about the probe %q, which the scenario doesn't have", c.Name,
				name))
			continue
		}
		l := t.Loads[i]
		if !slices.Contains(l.Spec.Makes(), bundle.WorkProbe) {
			errs = append(errs, fmt.Errorf("check %q is about %q, a %s, which is no probe", c.Name, name, l.Kind))
		}
		if in := cmp.Or(l.Phase, check.Fault); in != c.Phase {
			errs = append(errs, fmt.Errorf("check %q asks in the phase %s about the probe %q, which is of the phase %s",
				c.Name, c.Phase, name, in))
		}
	}
	return errors.Join(errs...)
}

func (t *Trial) validateChecks(list []Check, made []bundle.Kind) error {
	var errs []error
	for _, c := range list {
		if len(c.AnyOf) > 0 {
			errs = append(errs, t.validateChecks(c.AnyOf, made))
			continue
		}
		if !slices.Contains([]string{check.Steady, check.Baseline, check.Fault, check.Recovery}, c.Phase) {
			errs = append(errs, fmt.Errorf("check %q names no phase: %q", c.Name, c.Phase))
		}
		if err := valid(kinds.Check, c.Name, c.Spec); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, k := range c.Spec.Reads() {
			if !slices.Contains(made, k) {
				errs = append(errs, fmt.Errorf("check %q reads %s, which no collector makes", c.Name, k))
			}
		}
		if n, ok := c.Spec.(check.Needer); ok {
			errs = append(errs, t.validateNeeds(c, n.Needs()))
		}
	}
	return errors.Join(errs...)
}

// validateNeeds refuses a check that names a probe, load, node or constant which the trial doesn't have.
func (t *Trial) validateNeeds(c Check, needs check.Needs) error {
	errs := []error{t.validateProbes(c, needs.Probes)}
	for _, name := range needs.Loads {
		i := slices.IndexFunc(t.Loads, func(l Load) bool { return l.Name == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("check %q reads what the load %q did, which the scenario doesn't have",
				c.Name, name))
		} else if l := t.Loads[i]; !slices.Contains(l.Spec.Makes(), bundle.LoadSummary) {
			errs = append(errs, fmt.Errorf("check %q reads what the load %q did, a %s, which records no calls", c.Name,
				name, l.Kind))
		}
	}
	for _, name := range needs.Nodes {
		if all := t.nodes(); !slices.Contains(all, name) {
			errs = append(errs, fmt.Errorf("check %q is about the node %s, which no cluster has (nodes: %s)",
				c.Name, name, strings.Join(all, ", ")))
		}
	}
	for _, name := range needs.Constants {
		if !t.declares(name) {
			errs = append(errs, fmt.Errorf("check %q needs the constant %s, which the scenario doesn't declare", c.Name,
				name))
		}
	}
	return errors.Join(errs...)
}
