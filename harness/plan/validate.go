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
			errs = append(
				errs,
				scenario.Within(err, "planning %s, pair %s, trial %s", p.Scenario, t.Pair, t.ID),
			)
			said[t.Pair] = t.Pair != ""
		}
	}
	return errors.Join(errs...)
}

func (t *Trial) validate(have *cluster.Capabilities, seed int64) error {
	errs := []error{
		t.validateArms(),
		t.validateBuilds(),
		t.validateSubject(),
		t.validateControlPlanes(have),
		t.validateMachines(have),
		t.validateTargets(seed),
	}
	for _, c := range t.Collectors {
		at := []string{"collectors", c.Name}
		errs = append(errs, scenario.InField(valid(kinds.Collector, c.Name, c.Spec), append(at, "spec")...),
			validateResources(c, at), t.validateAudited(c, at),
			t.validateReferences(referring{what: fmt.Sprintf("collector %q", c.Name), path: at, spec: c.Spec}))
	}
	for _, f := range t.Faults {
		at := []string{"faults", f.Name}
		errs = append(errs, t.validateFault(f, have),
			t.validateReferences(referring{what: fmt.Sprintf("fault %q", f.Name), path: at, spec: f.Spec}))
	}
	for _, l := range t.Loads {
		at := []string{"loads", l.Name}
		errs = append(errs, scenario.InField(t.validateLoad(l, seed), at...), t.validateTakes(l, at),
			t.validateReferences(referring{what: fmt.Sprintf("load %q", l.Name), path: at, spec: l.Spec,
				phase: cmp.Or(l.Phase, check.Fault), after: scenario.Length(l.At)}))
	}
	for _, c := range t.Clusters {
		for name := range c.Memory {
			if limited := component.Names(component.Limited); !slices.Contains(limited, name) {
				errs = append(
					errs,
					scenario.InField(
						fmt.Errorf("the memory of %s can't be limited: want one of %s", name,
							strings.Join(limited, ", ")),
						"memory",
						name,
					),
				)
			}
		}
	}
	for _, s := range t.Seams {
		if _, err := kinds.Make[any](kinds.Seam, s); err != nil {
			errs = append(errs, scenario.InField(err, "seams"))
		}
	}
	records := t.records()
	for _, l := range t.checkLists() {
		if len(*l.checks) == 0 && l.name != scenario.InformationList {
			errs = append(
				errs,
				scenario.InField(
					fmt.Errorf("%s has no checks: nothing would be asked", l.name),
					l.name,
				),
			)
		}
		errs = append(errs, t.validateChecks(*l.checks, records, l.name))
	}
	return errors.Join(append(errs, t.validateVacuous())...)
}

func (t *Trial) validateArms() error {
	if len(t.Arms) == 0 {
		return errors.New("no arm is left to run")
	}
	errs := []error{t.validateControl()}
	names := map[string]bool{}
	for _, c := range t.Arms {
		if names[c.Name] || c.Name == "" || c.Name == bundle.Shared {
			errs = append(
				errs,
				fmt.Errorf("arm name %q is empty, reserved or used twice", c.Name),
			)
		}
		names[c.Name] = true
		if want := expected(c.Role); c.Expected != want {
			errs = append(
				errs,
				fmt.Errorf("arm %q, which is %s, expects %q: want %s", c.Name, c.Role, c.Expected,
					want),
			)
		}
		errs = append(errs, t.Place().placed(c, t.ClusterOf(c.Name)))
	}
	for _, it := range t.injections() {
		if it.Target.Arm != "" && !names[it.Target.Arm] {
			errs = append(errs, scenario.InField(fmt.Errorf("%q is aimed at arm %q, which this trial doesn't have", it.Name,
				it.Target.Arm), t.listOf(it), it.Name, "target", "arm"))
		}
	}
	return errors.Join(errs...)
}

// listOf returns the name of the scenario's list that has a load or fault.
func (t *Trial) listOf(it *scenario.ItemHeader) string {
	if slices.ContainsFunc(t.injections()[:len(t.Loads)], func(l *scenario.ItemHeader) bool { return l == it }) {
		return "loads"
	}
	return "faults"
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
	return slices.ContainsFunc(
		t.Constants,
		func(c scenario.Constant) bool { return c.Name == constant },
	)
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

// validateLoad checks a load.
func (t *Trial) validateLoad(l Load, seed int64) error {
	if err := valid(kinds.Load, l.Name, l.Spec); err != nil {
		return err
	}
	if !slices.Contains([]string{"", check.Baseline, check.Fault, check.Recovery}, l.Phase) {
		return fmt.Errorf(
			"load %q is of phase %q (want baseline, fault or recovery)",
			l.Name,
			l.Phase,
		)
	}
	one, ok := l.Spec.(load.OnNode)
	switch onNode := ok && one.OnNode(); {
	case onNode && t.Place().SharedNodes():
		return fmt.Errorf(
			"load %q acts on the node of an arm, which the arms share (placement: node or cluster)",
			l.Name,
		)
	case onNode:
		return t.oneNode(l.ItemHeader, seed)
	case t.Place().OwnCluster() || alike(l.Spec):
		return nil
	}
	switch one, ok := l.Spec.(load.Apart); {
	case ok && one.Apart():
		return nil
	case ok:
		return fmt.Errorf(
			"load %q reaches objects that are no arm's own, and the arms share a cluster (want $(arm) in the "+
				"namespace or the name of each, or placement: cluster)",
			l.Name,
		)
	default:
		return fmt.Errorf(
			"load %q acts on a whole cluster, which arms must have to themselves (placement: "+
				"cluster)",
			l.Name,
		)
	}
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

// validateChecks refuses checks of a list, or alternatives of one of its checks, that the trial can't answer. path leads
// to them in the scenario.
func (t *Trial) validateChecks(list []Check, records []record, path ...string) error {
	var errs []error
	for _, c := range list {
		at := slices.Concat(path, []string{c.Name})
		if len(c.AnyOf) > 0 {
			errs = append(errs, t.validateChecks(c.AnyOf, records, append(at, "anyOf")...))
			continue
		}
		if !slices.Contains([]string{check.Steady, check.Baseline, check.Fault, check.Recovery}, c.Phase) {
			errs = append(errs, scenario.InField(fmt.Errorf("check %q names no phase: %q", c.Name, c.Phase), append(at, "phase")...))
		}
		if err := valid(kinds.Check, c.Name, c.Spec); err != nil {
			errs = append(errs, scenario.InField(err, append(at, "spec")...))
			continue
		}
		errs = append(errs, t.validateAsked(c, at), validateReads(c, records, at), t.validateReferences(referring{
			what: fmt.Sprintf(
				"check %q",
				c.Name,
			),
			path:  at,
			spec:  c.Spec,
			phase: c.Phase,
			after: scenario.Length(c.After),
		}))
	}
	return errors.Join(errs...)
}

// validateReads refuses a check of evidence that nothing records, or of a part of it that nobody follows.
func validateReads(c Check, records []record, path []string) error {
	var errs []error
	said := map[bundle.Kind]bool{}
	refuse := func(err error, kind bundle.Kind, below ...string) {
		if err != nil {
			said[kind] = true
			errs = append(errs, scenario.InField(fmt.Errorf("check %q %w", c.Name, err), slices.Concat(path, below)...))
		}
	}
	for _, k := range c.Spec.Reads() {
		refuse(unread(records, k, "", ""), k)
	}
	for _, r := range kinds.References(c.Spec) {
		// What else the kind may read of elsewhere, by a component of its own, is its own affair.
		if part := chosen[r.To]; part.noun != "" && !said[part.kind] && slices.Contains(c.Spec.Reads(), part.kind) {
			refuse(unread(records, part.kind, r.Name, part.noun), part.kind, slices.Concat([]string{"spec"}, r.Path)...)
		}
	}
	return errors.Join(errs...)
}
