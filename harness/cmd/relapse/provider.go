package main

import (
	"cmp"
	"context"
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
	reports "github.com/kube-relapse/relapse/harness/report"
)

// newProvider makes the provider of a name; "" is the default, kind. The private files of its clusters lie beside the
// notes of the runs.
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

// superviseCommand is the command by which this program supervises the processes of a cluster. Nobody but itself
// calls it.
const superviseCommand = "supervise"

func newSuperviseCmd() *cobra.Command {
	return &cobra.Command{
		Use: superviseCommand + " FOLDER", Short: "Supervise the processes of a cluster: relapse starts this itself",
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

// keepers are the providers that may keep something between runs.
func keepers() ([]cluster.Keeper, error) {
	k, err := newKind(nil, false)
	return []cluster.Keeper{k}, err
}

// onProviders runs a plan. Where this host can't do that on its provider, and nobody asked for that one, it is planned
// and run on the scenario's next one.
func (f *runFlags) onProviders(ctx context.Context, cmd *cobra.Command, root string, args []string, p *plan.Plan) (
	v reports.Verdict, err error) {
	all := []string{cmp.Or(p.Provider, providers.Kind)}
	if f.provider == autoProvider && f.file == "" {
		s, err := loadScenario(cmd, args[0])
		if err != nil {
			return v, err
		}
		all = s.Spec.RunsOn()
	}
	for i, name := range all {
		if len(all) > 1 {
			fmt.Fprintf(cmd.ErrOrStderr(), "provider %s: %s of the scenario's (%s); --provider asks for one\n",
				name, []string{"the first", "the next"}[min(i, 1)], strings.Join(all, ", "))
		}
		if i > 0 {
			f.options.Provider = name
			if p, err = f.plan(cmd, args); err != nil {
				return v, err
			}
		}
		_, v, err = f.execute(ctx, cmd, root, p)
		var host *cluster.HostError
		if !errors.As(err, &host) || i+1 == len(all) {
			break
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "provider %s can't be used: %v\n", name, host)
	}
	return v, err
}
