package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// phaseFault is the default phase of a load.
const phaseFault = "fault"

// placed is a load or fault with its place in the file.
type placed struct {
	Item
	path, category string
}

// phase returns the phase in which the item acts.
func (it placed) phase() string { return cmp.Or(it.Phase, phaseFault) }

// items checks loads and faults. A name must be unique among both, because each may come after any other.
func (r *rules) items() {
	var all []placed
	for i, it := range r.s.Spec.Loads {
		all = append(all, placed{it, fmt.Sprintf("spec.loads.%d", i), kinds.Load})
	}
	for i, it := range r.s.Spec.Faults {
		all = append(all, placed{it, fmt.Sprintf("spec.faults.%d", i), kinds.Fault})
	}
	byName := map[string]placed{}
	for _, it := range all {
		if first, dup := byName[it.Name]; dup && it.Name != "" {
			r.add(
				it.path+".name",
				"%q is named twice (first in %s)",
				it.Name,
				dotted(strings.Split(first.path, ".")),
			)
			continue
		}
		byName[it.Name] = it
	}
	delete(byName, "")
	if len(r.s.Spec.Faults) == 0 && !slices.ContainsFunc(all, func(it placed) bool { return it.Trigger && it.phase() == phaseFault }) {
		r.add("spec.faults", "is empty, and no load of the fault phase is a trigger: nothing brings the incident about")
	}
	for _, it := range all {
		r.target(it.path+".target", it.Target)
		r.spec(it.category, it.Kind, it.Spec, it.path)
		switch {
		case it.Duration != nil && it.category == kinds.Load:
			r.add(
				it.path+".duration",
				"stands on a load, which ends by itself (want it on a fault)",
			)
		case it.Duration != nil && it.Duration.Duration <= 0:
			r.add(it.path+".duration", "is 0 (want how long the fault lasts)")
		}
		r.tooLong(it)
		if it.Phase != "" && it.category == kinds.Fault {
			r.add(
				it.path+".phase",
				"stands on a fault, which is the fault phase's own (want it on a load)",
			)
		}
		if it.Trigger && it.category == kinds.Fault {
			r.add(
				it.path+".trigger",
				"stands on a fault, which always is one (want it on a load)",
			)
		}
		if it.At != nil && it.After != nil {
			r.add(it.path+".after", "stands beside at (want one of them)")
		}
		if r.after(it, byName) {
			r.tooLate(it, byName)
		}
	}
}

// after checks which item another one comes after. It returns false if that makes no sense, or can't be told.
func (r *rules) after(it placed, byName map[string]placed) bool {
	if it.After == nil {
		return true
	}
	if it.After.Name == "" {
		return false
	}
	at := it.path + ".after.name"
	first, ok := byName[it.After.Name]
	switch {
	case !ok:
		r.add(at, "%q names no load or fault %s", it.After.Name,
			oneOf(it.After.Name, slices.Sorted(maps.Keys(byName))))
		return false
	case first.phase() != it.phase():
		r.add(at, "%q is of another phase (want one of the phase %s)", it.After.Name, it.phase())
		return false
	case byName[it.Name].path != it.path:
		return false // a second item of that name: nobody can tell which one an after names
	}
	trail := []string{it.Name}
	for next := it.After; next != nil; next = byName[next.Name].After {
		trail = append(trail, next.Name)
		if next.Name == it.Name {
			r.add(it.path+".after", "waits for itself: %s", strings.Join(trail, " -> "))
			return false
		}
		if len(trail) > len(byName)+1 {
			return false // a cycle that this item leads into but isn't part of; its members are reported
		}
	}
	return r.takesEffect(it, first)
}

// takesEffect refuses an item that comes after one which can't take effect where the item acts: it would never come.
func (r *rules) takesEffect(it, first placed) bool {
	at := it.path + ".after.name"
	n := len(r.out)
	if e, ok := kinds.Lookup(first.category, first.Kind); ok {
		if p, ok := e.New().(interface{ Probe() bool }); ok && p.Probe() {
			r.add(
				at,
				"%q is a %s, a probe, which never takes effect (want a fault, or a load that is no probe)",
				first.Name,
				first.Kind,
			)
		}
	}
	if first.Target.Arm != it.Target.Arm && slices.Contains(r.armNames(), first.Target.Arm) {
		acts := "acts in every arm"
		if it.Target.Arm != "" {
			acts = "acts in arm " + it.Target.Arm
		}
		r.add(at, "%q takes effect in arm %s only, and %q %s (want one that acts in the same arms)", first.Name,
			first.Target.Arm, it.Name, acts)
	}
	if r.s.Spec.Placement == "workload" && it.category == kinds.Fault && first.category == kinds.Load {
		r.add(at, "%q is a load, which each arm has for itself, and with placement workload a fault acts once, for all "+
			"arms (want a fault, or at instead of after)", first.Name)
	}
	return len(r.out) == n
}

// tooLate refuses an item that would start only when its phase is over.
func (r *rules) tooLate(it placed, byName map[string]placed) {
	starts, path := Length(it.At), it.path+".at"
	if it.After != nil {
		path = it.path + ".after"
		for next := it; next.After != nil; next = byName[next.After.Name] {
			starts += Length(next.After.Plus) + Length(byName[next.After.Name].At)
		}
	}
	if limit := r.deadline(it.phase()); limit > 0 && starts >= limit {
		r.add(
			path,
			"starts %s or more into phase %s, which lasts %s at most (want a time within the phase)",
			starts,
			it.phase(),
			limit,
		)
	}
}

// tooLong refuses a fault that lasts longer than its phase.
func (r *rules) tooLong(it placed) {
	limit := r.deadline(it.phase())
	if d := Length(it.Duration); limit > 0 && d > limit {
		r.add(
			it.path+".duration",
			"%s is longer than phase %s, which lasts %s at most (leave it out for a fault that stays "+
				"to its end)",
			d,
			it.phase(),
			limit,
		)
	}
}

func (r *rules) target(path string, t Target) {
	s := t.Selector
	r.component(path+".selector.component", s.Component)
	if len(s.Nodes)+len(s.NodeSelectors)+len(s.Namespaces)+len(s.LabelSelectors) == 0 && s.Component == "" {
		r.add(path+".selector",
			"is empty, which would select everything (want nodes, nodeSelectors, namespaces, labelSelectors or "+
				"component)",
		)
	}
	n, err := strconv.Atoi(t.Value)
	percent := t.Mode == "fixed-percent" || t.Mode == "random-max-percent"
	switch {
	case t.Mode == "fixed" && (err != nil || n < 1):
		r.add(
			path+".value",
			"%q is no number of targets (want at least 1 with mode fixed)",
			t.Value,
		)
	case percent && (err != nil || n < 1 || n > 100):
		r.add(path+".value", "%q is no percentage (want 1 to 100 with mode %s)", t.Value, t.Mode)
	case t.Mode != "fixed" && !percent && t.Value != "":
		r.add(
			path+".value",
			"stands beside mode %s (want it with mode fixed, fixed-percent or random-max-percent only)",
			t.Mode,
		)
	}
	if t.Arm == "" {
		return
	}
	if arms := r.armNames(); !slices.Contains(arms, t.Arm) {
		r.add(path+".arm", "%q names no arm %s", t.Arm, oneOf(t.Arm, arms))
	}
}

// armNames returns the names of the arms of all pairs, sorted, each once.
func (r *rules) armNames() []string {
	var out []string
	for _, p := range r.s.Spec.Pairs {
		out = append(out, each(p.Arms, func(a Arm) string { return a.Name })...)
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}
