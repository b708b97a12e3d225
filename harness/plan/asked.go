package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// validateAsked refuses a check that the calls of a load can't meet.
func (t *Trial) validateAsked(c Check, path []string) error {
	asks, ok := c.Spec.(check.LoadAsker)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(t.Loads, func(l Load) bool { return l.Name == asks.AsksLoad() })
	if i < 0 {
		return nil // refused as a reference
	}
	err := asks.Fits(t.Loads[i].Spec)
	at := slices.Concat(path, []string{"spec"})
	var field *kinds.FieldError
	if errors.As(err, &field) {
		at, err = append(at, strings.Split(field.Field, ".")...), field.Err
	}
	if err == nil {
		return nil
	}
	return scenario.InField(err, at...)
}

// validateResources refuses a collector that follows objects of a resource which Kubernetes doesn't have, if it is plain
// which one was meant.
func validateResources(c Collector, path []string) error {
	var errs []error
	for _, r := range kinds.References(c.Spec) {
		if meant := manifest.MeantResource(r.Name); r.To == kinds.ToObjects && meant != "" {
			errs = append(errs, scenario.InField(fmt.Errorf("collector %q follows %s, which Kubernetes doesn't have; did you mean %s?",
				c.Name, r.Name, meant), slices.Concat(path, []string{"spec"}, r.Path)...))
		}
	}
	return errors.Join(errs...)
}

// validateAudited refuses a collector that records what one component alone has, of another one.
func (t *Trial) validateAudited(c Collector, path []string) error {
	only, ok := c.Spec.(interface{ OnlyOf() string })
	of := cmp.Or(c.Component, t.Subject)
	if !ok || of == only.OnlyOf() {
		return nil
	}
	return scenario.InField(fmt.Errorf("collector %q is of %s, and %s records what %s alone has (want component: %[4]s)",
		c.Name, of, c.Kind, only.OnlyOf()), append(path, "component")...)
}

// validateTakes refuses a load that can't end within its phase.
func (t *Trial) validateTakes(l Load, path []string) error {
	long, ok := l.Spec.(load.Long)
	if !ok {
		return nil
	}
	in := cmp.Or(l.Phase, check.Fault)
	takes, after, longest := long.Takes(), scenario.Length(l.At), t.Phases.Longest(in)
	if longest == 0 || takes <= longest-after {
		return nil
	}
	return scenario.InField(fmt.Errorf("load %q takes %s at least, by its rounds, pauses and rate, and the phase %s lasts %s at most",
		l.Name, short(takes+after), in, short(longest)), append(path, "spec")...)
}
