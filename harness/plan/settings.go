package plan

import (
	"fmt"
	"maps"
	"strings"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Settings returns what the options change in s: parameters by their names, and other fields by their paths. Several
// places may set one name. The order of precedence, from the weakest place to the strongest, is
//
//  1. set of a pair of the scenario, which counts in that pair's trials only and isn't among the returned settings
//  2. oracle.set of the scenario, with Options.Oracle
//  3. --set, which is Options.Params
//  4. set of the candidate file, if that candidate has the trial to itself
//
// A setting also replaces what weaker places set below its path.
func (o Options) Settings(s *scenario.Scenario) map[string]string { return merged(o.layers(s)...) }

// layers returns the settings of each place but the pair, the weakest first.
func (o Options) layers(s *scenario.Scenario) []map[string]string {
	var oracle, candidate map[string]scenario.Scalar
	if s.Spec.Oracle != nil && o.Oracle {
		oracle = s.Spec.Oracle.Set
	}
	if len(o.Candidates) == 1 && o.Candidates[0].Known != nil {
		candidate = o.Candidates[0].Known.Spec.Set
	}
	return []map[string]string{texts(oracle), o.Params, texts(candidate)}
}

// pairSettings returns what a pair sets, without what the run replaces.
func pairSettings(pair scenario.Pair, run map[string]string) map[string]string {
	out := texts(pair.Set)
	for name := range run {
		replace(out, name)
	}
	return merged(out)
}

// override returns s with settings applied, of which the last layer is the strongest. Without any it returns s itself.
func override(s *scenario.Scenario, layers ...map[string]string) (*scenario.Scenario, error) {
	if merged(layers...) == nil {
		return s, nil
	}
	out, err := scenario.Override(s, layers...)
	if err != nil {
		return nil, fmt.Errorf("applying settings to scenario %s: %w", s.Metadata.Name, err)
	}
	return out, nil
}

// merged returns the settings of all layers, of which the last one is the strongest. It returns nil if there are none.
func merged(layers ...map[string]string) map[string]string {
	var out map[string]string
	for _, l := range layers {
		if out == nil && len(l) > 0 {
			out = map[string]string{}
		}
		for name := range l {
			replace(out, name)
		}
		maps.Copy(out, l)
	}
	return out
}

// replace deletes from settings what a stronger setting of this name replaces: itself, and what is below its path.
func replace(settings map[string]string, name string) {
	maps.DeleteFunc(
		settings,
		func(weaker, _ string) bool { return weaker == name || strings.HasPrefix(weaker, name+".") },
	)
}

func texts(set map[string]scenario.Scalar) map[string]string {
	out := map[string]string{}
	for name, v := range set {
		out[name] = string(v)
	}
	return out
}
