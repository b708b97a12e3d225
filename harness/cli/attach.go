package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster/processes"
	"github.com/kube-relapse/relapse/harness/event"
	onkube "github.com/kube-relapse/relapse/harness/kubernetes"
	"github.com/kube-relapse/relapse/harness/ledger"
)

func newAttachCmd() *cobra.Command {
	var f progressFlags
	cmd := &cobra.Command{
		Use:   "attach RUN",
		Short: "Follow a run on Kubernetes again, and judge it",
		Long: `Attach follows a run that relapse run --on kubernetes began on this host, after Ctrl-C, --wait=false or a crash. It
fetches the bundles of the trials that are done, waits for the others, judges them and prints the verdict.`,
		Args:              exactly(1, "run"),
		ValidArgsFunction: completeRuns,
		Example:           "  relapse attach relapse-1a2b3c4d",
		RunE: func(cmd *cobra.Command, args []string) error {
			run, events, done, err := openRun(cmd, &f, args[0], always)
			if err != nil {
				return err
			}
			defer done()
			return follow(cmd, run, events)
		},
	}
	f.register(cmd.Flags())
	return concluding(cmd)
}

func newFetchCmd() *cobra.Command {
	var f progressFlags
	var partial bool
	cmd := &cobra.Command{
		Use:   "fetch RUN",
		Short: "Fetch the bundles that a run on Kubernetes has so far",
		Long: `Fetch takes the bundles of a run on Kubernetes into the run's directory, and doesn't wait for trials that aren't done.
Where the registry has the bundles, it doesn't ask the cluster, which may be gone. Where all trials have their bundle, it
judges them. With --partial it takes what trials without a bundle have seen so far, to be looked at: no verdict reads it.`,
		Args:              exactly(1, "run"),
		ValidArgsFunction: completeRuns,
		Example:           "  relapse fetch relapse-1a2b3c4d",
		RunE: func(cmd *cobra.Command, args []string) error {
			run, events, done, err := openRun(cmd, &f, args[0], onkube.InCluster)
			if err != nil {
				return err
			}
			defer done()
			if partial {
				return fetchPartial(cmd, run)
			}
			missing, err := run.Fetch(cmd.Context())
			if err != nil {
				return failedOn(err)
			}
			if missing == 0 {
				return concludeOn(cmd, run, events)
			}
			_, err = fmt.Fprintf(
				cmd.OutOrStdout(),
				"%d of %d trials have no bundle yet; relapse judge %s judges what is here\n",
				missing,
				onkube.TrialsOf(run.Plan),
				short(run.Dir.Path()),
			)
			return err
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&partial, "partial", false, "take what trials without a bundle have seen so far, and nothing else")
	return cmd
}

// fetchPartial takes what trials without a bundle have seen so far.
func fetchPartial(cmd *cobra.Command, run *onkube.Run) error {
	fetched, err := run.FetchPartial(cmd.Context())
	if err != nil {
		return failedOn(err)
	}
	where := ""
	if fetched > 0 {
		where = ", which is in " + short(filepath.Join(run.Dir.Path(), onkube.PartialDir))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d trials without a bundle have left something%s\n", fetched, where)
	return err
}

// always is for commands that ask the cluster of every run.
func always(ledger.Job) bool { return true }

// openRun opens a run on Kubernetes by its name, for this process alone. asks says whether its cluster is asked: one that
// is not may be gone, with its kubeconfig. done ends the display of its progress.
func openRun(
	cmd *cobra.Command,
	f *progressFlags,
	name string,
	asks func(ledger.Job) bool,
) (run *onkube.Run, events *event.Stream, done func(), err error) {
	if err := areRuns([]string{name}); err != nil {
		return nil, nil, nil, err
	}
	l, err := ledger.TakeJob(name)
	if err != nil {
		return nil, nil, nil, usage(
			err,
			"relapse clean lists the runs of which something is left",
		)
	}
	var client kubernetes.Interface
	var exec onkube.Exec
	if asks(*l.Job) {
		if client, exec, err = connect(l.Job); err != nil {
			return nil, nil, nil, err
		}
	}
	sink, done, err := f.sink(cmd.ErrOrStderr(), 2)
	if err != nil {
		return nil, nil, nil, err
	}
	events = event.NewStream(sink)
	run, err = onkube.Open(l, client, exec, events)
	return run, events, done, err
}

// removeJob removes what a run has in its cluster and in its registry.
func removeJob(ctx context.Context, l ledger.Ledger) error {
	client, exec, err := connect(l.Job)
	if err != nil {
		return err
	}
	return onkube.Remove(ctx, client, exec, l)
}

func newRecorderCmd() *cobra.Command {
	var r onkube.Recorder
	var containers string
	cmd := &cobra.Command{
		Use:    onkube.RecorderCommand,
		Short:  "Make one trial in a pod; only relapse's own Jobs start this command",
		Hidden: true,
		Args:   exactly(0, "arguments"),
		RunE:   func(cmd *cobra.Command, _ []string) error { return runRecorder(cmd, r, containers) },
	}
	fl := cmd.Flags()
	fl.StringVar(&r.Run, "run", "", "the name of the run")
	fl.StringVar(&r.Registry.Repository, "registry", "", "the repository for the bundle")
	fl.BoolVar(
		&r.Registry.Insecure,
		"insecure-registry",
		false,
		"the registry may be one without TLS",
	)
	fl.StringVar(&r.Folder, "folder", "", "the folder for the bundle, instead of the registry")
	fl.DurationVar(
		&r.Hold,
		"hold",
		0,
		"how long to wait for the bundle to be fetched from the folder",
	)
	fl.StringVar(&containers, "containers", "", "the folder with the sockets of the containers of components whose memory is limited")
	return cmd
}

func newContainCmd() *cobra.Command {
	return &cobra.Command{
		Use:    onkube.ContainCommand + " SOCKET",
		Short:  "Run a component in a container of its own; only relapse's own Jobs start this command",
		Hidden: true,
		Args:   exactly(1, "socket"),
		RunE:   func(cmd *cobra.Command, args []string) error { return processes.Contain(cmd.Context(), args[0]) },
	}
}

// runRecorder makes the trial, and leaves the report as the container's termination message.
func runRecorder(cmd *cobra.Command, r onkube.Recorder, containers string) error {
	r.Events = event.NewStream(&event.Lines{W: cmd.ErrOrStderr()})
	r.Aside = event.NewStream(&event.Lines{W: cmd.ErrOrStderr()})
	provider, err := newProcessesWith(r.Events, containers)
	if err != nil {
		return err
	}
	r.Provider, r.Index = onkube.InPods{Provider: provider}, os.Getenv("JOB_COMPLETION_INDEX")
	r.Pod = os.Getenv(onkube.PodEnv)
	r.Again = !slices.Contains([]string{"", "0"}, os.Getenv(onkube.DisruptedEnv))
	report, err := r.Record(cmd.Context())
	told := report.Leave()
	if lost := (*onkube.LostError)(nil); errors.As(err, &lost) {
		return &exitError{code: onkube.ExitLost, err: errors.Join(err, told)}
	}
	return errors.Join(err, told)
}
