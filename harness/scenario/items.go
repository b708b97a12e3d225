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

// items checks loads and faults. A name must be unique among both, because each may come after any other.
func (r *rules) items() {
	type placed struct {
		Item
		path, category string
	}
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
			r.add(it.path+".name", "%q is named twice (first in %s)", it.Name, dotted(strings.Split(first.path, ".")))
			continue
		}
		byName[it.Name] = it
	}
	delete(byName, "")
	known := slices.Sorted(maps.Keys(byName))
	for _, it := range all {
		r.target(it.path+".target", it.Target)
		r.spec(it.category, it.Kind, it.Spec, it.path)
		switch {
		case it.Duration != nil && it.category == kinds.Load:
			r.add(it.path+".duration", "stands on a load, which ends by itself (want it on a fault)")
		case it.Duration != nil && it.Duration.Duration <= 0:
			r.add(it.path+".duration", "is 0 (want how long the fault lasts)")
		}
		if it.Phase != "" && it.category == kinds.Fault {
			r.add(it.path+".phase", "stands on a fault, which is the fault phase's own (want it on a load)")
		}
		if it.At != nil && it.After != nil {
			r.add(it.path+".after", "stands beside at (want one of them)")
		}
		if it.After == nil || it.After.Name == "" {
			continue
		}
		if _, ok := byName[it.After.Name]; !ok {
			r.add(it.path+".after.name", "%q names no load or fault %s", it.After.Name, oneOf(it.After.Name, known))
			continue
		}
		if first, phase := byName[it.After.Name], cmp.Or(it.Phase, phaseFault); cmp.Or(first.Phase,
			phaseFault) != phase {
			r.add(it.path+".after.name", "%q is of another phase (want one of the phase %s)", it.After.Name, phase)
			continue
		}
		if byName[it.Name].path != it.path {
			continue // a second item of that name: nobody can tell which one an after names
		}
		trail := []string{it.Name}
		for next := it.After; next != nil; next = byName[next.Name].After {
			trail = append(trail, next.Name)
			if next.Name == it.Name {
				r.add(it.path+".after", "waits for itself: %s", strings.Join(trail, " -> "))
				break
			}
			if len(trail) > len(all)+1 {
				break // a cycle that this item leads into but isn't part of; its members are reported
			}
		}
	}
}

func (r *rules) target(path string, t Target) {
	s := t.Selector
	if len(s.Nodes)+len(s.NodeSelectors)+len(s.Namespaces)+len(s.LabelSelectors) == 0 && s.Component == "" {
		r.add(path+".selector",
			"is empty, which would select everything (want nodes, nodeSelectors, namespaces, labelSelectors or "+
				"component)")
	}
	n, err := strconv.Atoi(t.Value)
	percent := t.Mode == "fixed-percent" || t.Mode == "random-max-percent"
	switch {
	case t.Mode == "fixed" && (err != nil || n < 1):
		r.add(path+".value", "%q is no number of targets (want at least 1 with mode fixed)", t.Value)
	case percent && (err != nil || n < 1 || n > 100):
		r.add(path+".value", "%q is no percentage (want 1 to 100 with mode %s)", t.Value, t.Mode)
	case t.Mode != "fixed" && !percent && t.Value != "":
		r.add(path+".value",
			"stands beside mode %s (want it with mode fixed, fixed-percent or random-max-percent only)", t.Mode)
	}
	if t.Arm == "" {
		return
	}
	var arms []string
	for _, p := range r.s.Spec.Pairs {
		for _, a := range p.Arms {
			arms = append(arms, a.Name)
		}
	}
	if !slices.Contains(arms, t.Arm) {
		r.add(path+".arm", "%q names no arm %s", t.Arm,
			oneOf(t.Arm, slices.Compact(slices.Sorted(slices.Values(arms)))))
	}
}
