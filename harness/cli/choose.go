package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// chooseFlags choose scenarios by what they are about.
type chooseFlags struct{ components, failures []string }

// register adds the flags to cmd.
func (f *chooseFlags) register(cmd *cobra.Command, purpose string) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.components, "component", nil, purpose+" of these components: etcd,kubelet")
	fl.StringSliceVar(&f.failures, "failure", nil, purpose+" with these kinds of failure: "+strings.Join(scenario.Failures, ", "))
	completes(cmd, map[string]completion{
		"component": inList(func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			var subjects []string
			_ = scenariosWith(cmd, func(s *scenario.Scenario) bool {
				subjects = append(subjects, s.Spec.Subject)
				return false
			})
			slices.Sort(subjects)
			return slices.Compact(subjects), cobra.ShellCompDirectiveNoFileComp
		}),
		"failure": inList(cobra.FixedCompletions(scenario.Failures, cobra.ShellCompDirectiveNoFileComp)),
	})
}

// given reports whether one of the flags was.
func (f *chooseFlags) given() bool { return len(f.components)+len(f.failures) > 0 }

// fits refuses a kind of failure that there isn't.
func (f *chooseFlags) fits() error {
	for _, name := range f.failures {
		if !slices.Contains(scenario.Failures, name) {
			return usage(
				fmt.Errorf(
					"there is no kind of failure %q %s",
					name,
					oneOf(name, scenario.Failures),
				),
				"relapse list shows that of each scenario",
			)
		}
	}
	return nil
}

// of returns those of the scenarios that are chosen: all of them without a flag. It is an error if there are none, because
// an empty list would look like success.
func (f *chooseFlags) of(all []*scenario.Scenario) ([]*scenario.Scenario, error) {
	if err := f.fits(); err != nil {
		return nil, err
	}
	var subjects []string
	for _, s := range all {
		subjects = append(subjects, s.Spec.Subject)
	}
	slices.Sort(subjects)
	subjects = slices.Compact(subjects)
	for _, name := range f.components {
		if !slices.Contains(subjects, name) {
			return nil, usage(
				fmt.Errorf("no scenario is about %q %s", name, oneOf(name, subjects)),
				"relapse list shows the component of each",
			)
		}
	}
	var out []*scenario.Scenario
	for _, s := range all {
		if (len(f.components) == 0 || slices.Contains(f.components, s.Spec.Subject)) &&
			(len(f.failures) == 0 || slices.Contains(f.failures, s.Metadata.Failure)) {
			out = append(out, s)
		}
	}
	switch {
	case len(out) > 0:
	case len(f.components) > 0:
		return nil, usage(
			errors.New("no scenario is chosen by both --component and --failure"),
			"relapse list shows both of each",
		)
	case f.given():
		return nil, usage(
			errors.New("no scenario has one of these kinds of failure"),
			"relapse list shows that of each",
		)
	}
	return out, nil
}
