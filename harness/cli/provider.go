package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/kind"
	"github.com/kube-relapse/relapse/harness/cluster/processes"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// newProvider returns the provider with a name; "" is the default, kind. The private files of its clusters are next to
// the ledgers of the runs.
func newProvider(name string, events *event.Stream, retain bool) (cluster.Provider, error) {
	switch name {
	case "", providers.Kind:
		return newKind(events, retain)
	case providers.Processes:
		return newProcesses(events)
	}
	return nil, fmt.Errorf(
		"there is no provider %q: want one of %s",
		name,
		strings.Join(providers.All, ", "),
	)
}

func newProcesses(events *event.Stream) (*processes.Provider, error) {
	return newProcessesWith(events, "")
}

// newProcessesWith is newProcesses in a pod with containers for components whose memory is limited.
func newProcessesWith(events *event.Stream, containers string) (*processes.Provider, error) {
	state, err := ledger.StateDir()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf(
			"looking for the program that supervises clusters, which is this one: %w",
			err,
		)
	}
	return processes.New(processes.Options{Dir: filepath.Join(filepath.Dir(state), "processes"),
		Supervisor: []string{self, superviseCommand}, Events: events, Containers: containers})
}

// superviseCommand is the command with which this program supervises the processes of a cluster. Only the program
// itself calls it.
const superviseCommand = "supervise"

// Supervises reports whether a program was started with these arguments, its name first, to supervise a cluster. Each
// program that makes clusters starts itself for that, and has to call Main then.
func Supervises(args []string) bool { return len(args) == 3 && args[1] == superviseCommand }

func newSuperviseCmd() *cobra.Command {
	return &cobra.Command{
		Use:    superviseCommand + " FOLDER",
		Short:  "Supervise the processes of a cluster; only relapse itself starts this command",
		Hidden: true,
		Args:   exactly(1, "folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return processes.Supervise(cmd.Context(), args[0], cmd.InOrStdin())
		},
	}
}

func newKind(events *event.Stream, retain bool) (*kind.Provider, error) {
	state, err := ledger.StateDir()
	if err != nil {
		return nil, err
	}
	return kind.New(kind.Options{
		Dir:    filepath.Join(filepath.Dir(state), "clusters"),
		Events: events,
		Retain: retain,
	})
}

// fitProvider refuses a provider that there isn't, or that can't make what a scenario needs, with the reasons.
func fitProvider(cmd *cobra.Command, s *scenario.Scenario, o plan.Options) error {
	known := s.Spec.RunsOn()
	if o.Provider == "" || slices.Contains(known, o.Provider) {
		return nil
	}
	hint := fmt.Sprintf("%s %s --provider %s", cmd.CommandPath(), s.Metadata.Name, known[0])
	if !slices.Contains(providers.All, o.Provider) {
		return usage(fmt.Errorf("there is no provider %q %s; %s can use %s", o.Provider, oneOf(o.Provider, providers.All),
			s.Metadata.Name, strings.Join(known, ", ")), hint)
	}
	said := fmt.Sprintf("%s can't run on the provider %s: it is made for %s", s.Metadata.Name, o.Provider,
		strings.Join(known, ", "))
	if err := lacking(cmd.Context(), s, o); err != nil {
		return usage(fmt.Errorf("%s\n%w", said, err), hint)
	}
	return usage(errors.New(said), hint)
}

// lacking returns what a scenario needs and a provider doesn't have that the scenario doesn't name, nil if that can't
// be told here: what the provider kind has is known only once a node was started.
func lacking(ctx context.Context, s *scenario.Scenario, o plan.Options) error {
	if o.Provider != providers.Processes {
		return nil
	}
	there := *s
	there.Spec.Providers = []string{o.Provider}
	p, err := plan.New(&there, plan.Options{Pair: o.Pair, Provider: o.Provider, Base: o.Base})
	if err != nil {
		return err
	}
	provider, err := newProcesses(nil)
	if err != nil {
		return nil
	}
	have, err := provider.Capabilities(ctx)
	if err != nil {
		return nil
	}
	return p.ValidateFor(have)
}

// keepers returns the providers that may keep something between runs.
func keepers() ([]cluster.Keeper, error) {
	k, err := newKind(nil, false)
	return []cluster.Keeper{k}, err
}

// onProviders gives a plan to do. If another provider is used than the plan was made for, it plans again.
func (f *runFlags) onProviders(
	cmd *cobra.Command,
	args []string,
	p *plan.Plan,
	do func(*plan.Plan) error,
) error {
	if f.file != "" {
		return do(p)
	}
	s, err := loadScenario(cmd, args[0])
	if err != nil {
		return err
	}
	return f.firstProvider(cmd, s, func(name string) error {
		if name != cmp.Or(p.Provider, providers.Kind) {
			f.options.Provider = name
			var err error
			if p, err = f.plan(cmd, args); err != nil {
				return err
			}
		}
		return do(p)
	})
}

// firstProvider calls try with the provider that was asked for, or else with the scenario's providers in order until
// one works on this host. It prints which provider is used and why.
func (f *planFlags) firstProvider(
	cmd *cobra.Command,
	s *scenario.Scenario,
	try func(name string) error,
) error {
	all := s.Spec.RunsOn()
	if f.provider != autoProvider {
		all = []string{f.provider}
	}
	for i, name := range all {
		if len(all) > 1 {
			note(
				cmd,
				"provider %s: %s of the scenario's (%s); --provider asks for one",
				name,
				[]string{"the first", "the next"}[min(i, 1)],
				strings.Join(all, ", "),
			)
		}
		err := try(name)
		var host *cluster.HostError
		if !errors.As(err, &host) || i+1 == len(all) {
			return err
		}
		note(cmd, "provider %s can't be used: %v", name, host)
	}
	return nil
}

// hostHint adds the next step to an error of a host that can't make the clusters of a provider. What kind needs not
// every scenario needs.
func hostHint(cmd *cobra.Command, provider string, err error) error {
	var host *cluster.HostError
	if !errors.As(err, &host) {
		return err
	}
	hint := host.Hint
	if names := engineless(cmd); cmp.Or(provider, providers.Kind) == providers.Kind && len(names) > 0 {
		hint += fmt.Sprintf("; no container engine is needed by %s (relapse run %s --provider %s)",
			strings.Join(names, ", "), names[0], providers.Processes)
	}
	return hinted(err, hint)
}

// engineless returns the names of the scenarios here that can run on plain processes.
func engineless(cmd *cobra.Command) []string {
	return scenariosWith(
		cmd,
		func(s *scenario.Scenario) bool { return slices.Contains(s.Spec.RunsOn(), providers.Processes) },
	)
}

func (f *planFlags) registerProvider(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.provider, "provider", autoProvider,
		"what makes the clusters: kind, processes, or auto, which is the first of the scenario's providers that works on this host")
}
