package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// paired is the scenario as the trials of one of its pairs have it.
type paired struct {
	*scenario.Scenario
	pair scenario.Pair
	set  map[string]string // the settings that are the pair's own
}

func selectPairs(s *scenario.Scenario, name string) ([]scenario.Pair, error) {
	pairs := s.Spec.Pairs
	if name == AllPairs && len(pairs) > 0 {
		return pairs, nil
	}
	var known []string
	for _, p := range pairs {
		known = append(known, p.Name)
		if p.Name == name || (name == "" && (p.Default || len(pairs) == 1)) {
			return []scenario.Pair{p}, nil
		}
	}
	return nil, fmt.Errorf(
		"scenario %s has no pair %q: want one of %s, or %s%s",
		s.Metadata.Name,
		name,
		strings.Join(known, ", "),
		AllPairs,
		scenario.Meant(name, known),
	)
}

// forPair returns the scenario as the trials of pair have it: with the pair's settings and flags, and only with the
// collectors and checks that are meant for the pair and the provider. base is s with the layers of the run's settings.
func forPair(
	s, base *scenario.Scenario,
	pair scenario.Pair,
	o Options,
	layers []map[string]string,
) (paired, error) {
	out := paired{base, pair, pairSettings(pair, o.Params)}
	if len(out.set) > 0 {
		var err error
		if out.Scenario, err = override(s, append([]map[string]string{texts(pair.Set)}, layers...)...); err != nil {
			return out, scenario.InField(fmt.Errorf("planning pair %s: %w", pair.Name, err), "pairs", pair.Name, "set")
		}
	}
	own := *out.Scenario
	own.Spec.Args = withFlags(own.Spec.Args, pair.Args)
	own.Spec.Collectors = slices.DeleteFunc(slices.Clone(own.Spec.Collectors),
		func(c scenario.Collector) bool { return !meant(c.Providers, o.Provider) })
	for _, l := range own.Spec.CheckLists() {
		var err error
		if *l.Checks, err = checksFor(*l.Checks, pair.Name, o.Provider, l.Name); err != nil {
			return out, scenario.Within(err, "planning %s", s.Metadata.Name)
		}
	}
	out.Scenario = &own
	return out, nil
}

// withFlags returns the flags of components with those of a pair added.
func withFlags(all, pair map[string]map[string]string) map[string]map[string]string {
	if len(pair) == 0 {
		return all
	}
	out := map[string]map[string]string{}
	for _, args := range []map[string]map[string]string{all, pair} {
		for component, flags := range args {
			if out[component] == nil {
				out[component] = map[string]string{}
			}
			maps.Copy(out[component], flags)
		}
	}
	return out
}

// meant reports whether what is meant for some names only, or for all if there are none, is meant for name.
func meant(only []string, name string) bool { return len(only) == 0 || slices.Contains(only, name) }

// checksFor returns the checks of a list that are meant for a pair and a provider. A group that has no alternative left
// is an error. path leads to the list in the scenario.
func checksFor(
	all []scenario.Check,
	pair, provider string,
	path ...string,
) ([]scenario.Check, error) {
	var out []scenario.Check
	var errs []error
	for _, c := range all {
		if !meant(c.Pairs, pair) || !meant(c.Providers, provider) {
			continue
		}
		group := len(c.AnyOf) > 0
		var err error
		at := slices.Concat(path, []string{c.Name, "anyOf"})
		if c.AnyOf, err = checksFor(c.AnyOf, pair, provider, at...); group && len(c.AnyOf) == 0 {
			err = scenario.InField(fmt.Errorf("check %q has no alternative for the pair %s on the provider %s", c.Name, pair,
				provider), at...)
		}
		out, errs = append(out, c), append(errs, err)
	}
	return out, errors.Join(errs...)
}
