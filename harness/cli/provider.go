package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	return nil, fmt.Errorf("there is no provider %q: want one of %s", name, strings.Join(providers.All, ", "))
}

func newProcesses(events *event.Stream) (*processes.Provider, error) {
	state, err := ledger.StateDir()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for the program that supervises clusters, which is this one: %w", err)
	}
	return processes.New(processes.Options{Dir: filepath.Join(filepath.Dir(state), "processes"),
		Supervisor: []string{self, superviseCommand}, Events: events})
}

// superviseCommand is the command with which this program supervises the processes of a cluster. Only the program
// itself calls it.
const superviseCommand = "supervise"

func newSuperviseCmd() *cobra.Command {
	return &cobra.Command{
		Use: superviseCommand + " FOLDER", Short: "Supervise the processes of a cluster; only relapse itself starts this command",
		Hidden: true, Args: exactly(1, "folder"),
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
	return kind.New(kind.Options{Dir: filepath.Join(filepath.Dir(state), "clusters"), Events: events, Retain: retain})
}

// keepers returns the providers that may keep something between runs.
func keepers() ([]cluster.Keeper, error) {
	k, err := newKind(nil, false)
	return []cluster.Keeper{k}, err
}

// onProviders gives a plan to do. If another provider is used than the plan was made for, it plans again.
func (f *runFlags) onProviders(cmd *cobra.Command, args []string, p *plan.Plan, do func(*plan.Plan) error) error {
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
func (f *planFlags) firstProvider(cmd *cobra.Command, s *scenario.Scenario, try func(name string) error) error {
	all := s.Spec.RunsOn()
	if f.provider != autoProvider {
		all = []string{f.provider}
	}
	for i, name := range all {
		if len(all) > 1 {
			fmt.Fprintf(cmd.ErrOrStderr(), "provider %s: %s of the scenario's (%s); --provider asks for one\n",
				name, []string{"the first", "the next"}[min(i, 1)], strings.Join(all, ", "))
		}
		err := try(name)
		var host *cluster.HostError
		if !errors.As(err, &host) || i+1 == len(all) {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "provider %s can't be used: %v\n", name, host)
	}
	return nil
}

// hostHint adds the next step to an error of a host that can't make the clusters.
func hostHint(err error) error {
	var host *cluster.HostError
	if errors.As(err, &host) {
		return hinted(err, host.Hint)
	}
	return err
}

func (f *planFlags) registerProvider(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.provider, "provider", autoProvider,
		"what makes the clusters: kind, processes, or auto, which is the first of the scenario's providers that works on this host")
}
