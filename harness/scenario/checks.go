package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// The names of a scenario's lists of checks. The checks of all but the last decide an arm's outcome.
const (
	SteadyList      = "steady"
	ExposureList    = "exposure"
	SignatureList   = "signature"
	HealedList      = "healed"
	InformationList = "information"
)

// CheckList is one of a scenario's lists of checks. Phase is that of the checks that name none.
type CheckList struct {
	Name, Phase string
	Checks      *[]Check
}

// CheckLists returns the scenario's lists of checks, in the order of the file.
func (s *Spec) CheckLists() []CheckList {
	return []CheckList{
		{SteadyList, "steady", &s.Steady}, {ExposureList, "fault", &s.Exposure}, {SignatureList, "recovery", &s.Signature},
		{HealedList, "recovery", &s.Healed}, {InformationList, "recovery", &s.Information},
	}
}

// checks validates a list of checks and the alternatives in its groups.
func (r *rules) checks(list, phase string, checks []Check) {
	r.unique(list, "check", each(checks, func(c Check) string { return c.Name }))
	for i, c := range checks {
		path := fmt.Sprintf("%s.%d", list, i)
		switch {
		case c.Kind == "" && len(c.AnyOf) == 0:
			r.add(path, "has neither kind nor anyOf (want one of them)")
		case c.Kind != "" && len(c.AnyOf) > 0:
			r.add(path, "has both kind and anyOf (want one of them)")
		case len(c.AnyOf) > 0 && (c.Spec != nil || c.After != nil):
			r.add(path, "is a group (want after and spec on its alternatives)")
		}
		r.inPairs(path+".pairs", c.Pairs, strings.HasSuffix(list, ".anyOf"))
		r.onProviders(path+".providers", c.Providers, r.s.Spec.RunsOn())
		r.phaseOf(path+".phase", list, c.Phase)
		in := phase
		if c.Phase != "" {
			in = c.Phase
		}
		if limit := r.deadline(in); c.After != nil && limit > 0 && c.After.Duration >= limit {
			r.add(
				path+".after",
				"%s is not before the end of phase %s, which lasts %s at most",
				c.After.Duration,
				in,
				limit,
			)
		}
		r.spec(kinds.Check, c.Kind, c.Spec, path)
		r.checks(path+".anyOf", in, c.AnyOf)
	}
}

// phaseOf refuses a phase that says nothing of what a list of checks is about: only the steady state is asked for before
// there is a fault, and a check that decides an outcome is asked only then or later.
func (r *rules) phaseOf(path, list, phase string) {
	before := phase == "steady" || phase == "baseline"
	name, _, _ := strings.Cut(strings.TrimPrefix(list, "spec."), ".")
	switch {
	case name == SteadyList && phase != "" && !before:
		r.add(
			path,
			"%s comes once faults are injected, and the steady state is what was before (want steady or baseline)",
			phase,
		)
	case slices.Contains([]string{ExposureList, SignatureList, HealedList}, name) && before:
		r.add(
			path,
			"%s has no fault: what is seen there is no sign of the incident, or of a cure (want fault or recovery)",
			phase,
		)
	}
}

// inPairs checks that pairs are names of the scenario's pairs, each given once. They belong on a group, not on its
// alternatives: in another pair, a group could be left without any alternative.
func (r *rules) inPairs(path string, pairs []string, alternative bool) {
	if alternative && len(pairs) > 0 {
		r.add(path, "stands on an alternative (want it on the group)")
		return
	}
	known := each(r.s.Spec.Pairs, func(p Pair) string { return p.Name })
	for i, name := range pairs {
		switch at := fmt.Sprintf("%s.%d", path, i); {
		case !slices.Contains(known, name):
			r.add(at, "%q names no pair %s", name, oneOf(name, known))
		case slices.Index(pairs, name) < i:
			r.add(at, "%q stands here a second time", name)
		}
	}
}

// onProviders checks that names are known providers, each given once.
func (r *rules) onProviders(path string, names, known []string) {
	for i, name := range names {
		switch at := fmt.Sprintf("%s.%d", path, i); {
		case !slices.Contains(known, name):
			r.add(at, "%q names no provider %s", name, oneOf(name, known))
		case slices.Index(names, name) < i:
			r.add(at, "%q stands here a second time", name)
		}
	}
}

// RunsOn returns the providers that can make the scenario's clusters, the preferred one first.
func (s *Spec) RunsOn() []string {
	if len(s.Providers) == 0 {
		return []string{providers.Kind}
	}
	return s.Providers
}

// fileName, flagName and fieldName match the names of a component's files, of its flags, and of fields in its
// configuration.
var (
	fileName  = regexp.MustCompile(`^[a-zA-Z0-9][-.a-zA-Z0-9]*$`)
	flagName  = regexp.MustCompile(`^[a-z][-a-z0-9]*$`)
	fieldName = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*(\.[a-z][a-zA-Z0-9]*)*$`)
)

// args checks the flags that the scenario gives to components.
func (r *rules) args(path []string, args map[string]map[string]string) {
	flagged := component.Names(component.Flagged)
	for _, c := range slices.Sorted(maps.Keys(args)) {
		at := slices.Concat(path, []string{c})
		if !slices.Contains(flagged, c) {
			r.about(at, "%q takes no flags %s", c, oneOf(c, flagged))
		}
		for _, flag := range slices.Sorted(maps.Keys(args[c])) {
			at := slices.Concat(at, []string{flag})
			if row, _ := component.Of(c); row.Kubeadm.Config != "" {
				if !fieldName.MatchString(flag) {
					r.about(
						at,
						"%q is no field's name (want one of %s's configuration: conntrack.maxPerCore)",
						flag,
						c,
					)
				}
			} else if !flagName.MatchString(flag) {
				r.about(
					at,
					"%q is no flag's name (want it without dashes in front and without a value: v)",
					flag,
				)
			}
		}
	}
}

// components checks the flags, files and memory limits that components get in every arm.
func (r *rules) components() {
	limited := component.Names(component.Limited)
	r.args([]string{"spec", "args"}, r.s.Spec.Args)
	for _, c := range slices.Sorted(maps.Keys(r.s.Spec.Files)) {
		if !slices.Contains(limited, c) {
			r.about(
				[]string{"spec", "files", c},
				"%q has no files of its own %s",
				c,
				oneOf(c, limited),
			)
		}
		for _, name := range slices.Sorted(maps.Keys(r.s.Spec.Files[c])) {
			at := []string{"spec", "files", c, name}
			if !fileName.MatchString(name) {
				r.about(
					at,
					"%q is no file's name (want letters, digits, dots and dashes: audit-policy.yaml)",
					name,
				)
			} else if !slices.Contains(slices.Collect(maps.Values(r.s.Spec.Args[c])), name) {
				r.about(
					at,
					"no flag of %s has the value %q, so nothing would use the file",
					c,
					name,
				)
			}
			if row, _ := component.Of(c); row.Kubeconfig == "" && strings.Contains(r.s.Spec.Files[c][name], component.KubeconfigWord) {
				r.about(at, "%s has no kubeconfig that %s could stand for", c, component.KubeconfigWord)
			}
		}
	}
	for _, c := range slices.Sorted(maps.Keys(r.s.Spec.Memory)) {
		at := []string{"spec", "memory", c}
		if !slices.Contains(limited, c) {
			r.about(at, "the memory of %q can't be limited %s", c, oneOf(c, limited))
			continue
		}
		q, err := resource.ParseQuantity(r.s.Spec.Memory[c])
		if err != nil || q.Sign() <= 0 {
			r.violate(
				at,
				"%q is no amount of memory (want a quantity above 0: 512Mi)",
				r.s.Spec.Memory[c],
			)
		}
	}
}
