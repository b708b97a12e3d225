package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/judge"
	onkube "github.com/kube-relapse/relapse/harness/kubernetes"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
	reports "github.com/kube-relapse/relapse/harness/report"
)

// defaultBase is the image below a run's own layers. A trial needs its shell and coreutils.
const defaultBase = "docker.io/library/debian:trixie-slim"

// onHelp describes runs on a cluster that is there.
const onHelp = `--on kubernetes has the trials made in a cluster that is there: an Indexed Job in the namespace -n, a pod for each trial,
with the provider processes. Arms are built here, and pushed with this program to --registry as an image, from which the
pods run. Each pod pushes its trial's bundle there, leaves it on the volume --storage, or with --exec waits until its
bundle is fetched from it. The bundles are fetched and judged here. The Job, the image and the bundles stay until
relapse clean RUN removes them. Ctrl-C leaves the Job: relapse attach RUN follows it again. See docs/scale.md.`

// kubeFlags say in which cluster trials are made, and how.
type kubeFlags struct {
	on, kubeconfig, context  string
	spec                     onkube.JobSpec
	memory, cpu, base, queue string
	exec, wait, dryRun       bool
	imageVolume              bool
}

// onOnly are the flags that mean something with --on kubernetes alone.
var onOnly = []string{"kubeconfig", "context", "namespace", "parallelism", "registry", "insecure-registry", "registry-secret", "storage", "exec",
	"hold", "base", "image-volume", "memory", "cpu-limit", "queue", "suspend", "wait", "dry-run"}

// hereOnly are the flags of run that mean nothing, or aren't there yet, with --on kubernetes.
var hereOnly = []string{"parallel", "retain", "all", "node-image"}

func (k *kubeFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&k.on, "on", "", "where trials are made: kubernetes, which is an Indexed Job in a cluster that is there (default: on this host)")
	fl.StringVar(&k.kubeconfig, "kubeconfig", "", "with --on: the path of the kubeconfig (default: as for kubectl)")
	fl.StringVar(&k.context, "context", "", "with --on: the context of the kubeconfig (default: the current context)")
	fl.StringVarP(&k.spec.Namespace, "namespace", "n", "", "with --on: the namespace of the Job (default: the context's)")
	fl.IntVar(&k.spec.Parallelism, "parallelism", 2, "with --on: how many pods run at once")
	fl.StringVar(&k.spec.Registry.Repository, "registry", "", "with --on: the repository for the image, and for the bundles unless they go another way, "+
		"as this host and the nodes reach it, such as registry.example.com/team/relapse")
	fl.BoolVar(&k.spec.Registry.Insecure, "insecure-registry", false, "with --on: the registry may be one without TLS")
	fl.StringVar(&k.spec.Secret, "registry-secret", "", "with --on: the secret with the pods' login to the registry, of type kubernetes.io/dockerconfigjson")
	fl.StringVar(&k.spec.Storage, "storage", "", "with --on: the persistentVolumeClaim of a volume for the bundles, instead of the registry")
	fl.BoolVar(&k.exec, "exec", false, "with --on: take the bundles from their pods by pods/exec, instead of from the registry")
	durationVar(fl, &k.spec.Hold, "hold", time.Hour, "with --exec: how long a pod waits for its bundle to be fetched")
	fl.StringVar(&k.base, "base", defaultBase, "with --on: the image below the run's own, with sh and coreutils: a reference, or a file that docker save wrote")
	fl.BoolVar(&k.imageVolume, "image-volume", false, "with --on: mount the programs as an image volume (Kubernetes 1.36 or later), and run them in the image --base itself")
	fl.StringVar(&k.memory, "memory", "", "with --on: the memory of a trial, requested and the limit (default: 2Gi for each of its nodes)")
	fl.StringVar(&k.cpu, "cpu-limit", "", "with --on: the CPU of a trial, requested and the limit, where a quota wants both (default: neither)")
	fl.StringVar(&k.queue, "queue", "", "with --on: the queue of Kueue that admits the Job")
}

// registerSole adds the flags that are for one run alone.
func (k *kubeFlags) registerSole(fl *pflag.FlagSet) {
	fl.BoolVar(&k.spec.Suspend, "suspend", false, "with --on: create the Job suspended; its trials begin once somebody resumes it")
	fl.BoolVar(&k.wait, "wait", true, "with --on: wait for the trials, and judge them; --wait=false prints how to do that later")
	fl.BoolVar(&k.dryRun, "dry-run", false, "with --on: print the Role that the run needs and the Job, and do nothing")
}

// fits refuses flags that don't go together.
func (k *kubeFlags) fits(cmd *cobra.Command) error {
	changed := func(name string) bool { return cmd.Flags().Changed(name) }
	far := func(name string) bool { return changed(name) && strings.HasPrefix(cmd.Flag(name).Usage, "with --") } // survey has a --dry-run of its own
	switch {
	case k.on == "":
		if i := slices.IndexFunc(onOnly, far); i >= 0 {
			return usage(fmt.Errorf("--%s is for --on kubernetes", onOnly[i]), "add --on kubernetes, or leave it out")
		}
		return nil
	case k.on != "kubernetes":
		return usage(fmt.Errorf("--on %q is no place for trials (want kubernetes)", k.on), "leave out --on for this host")
	}
	if i := slices.IndexFunc(hereOnly, changed); i >= 0 {
		hint := "leave out one of them"
		if hereOnly[i] == "parallel" {
			hint = "--parallelism says how many pods run at once"
		}
		return usage(fmt.Errorf("--%s is for trials on this host, and --on kubernetes can't do it yet", hereOnly[i]), hint)
	}
	if p := cmd.Flag("provider"); p != nil && p.Value.String() != autoProvider && p.Value.String() != providers.Processes {
		return usage(fmt.Errorf("--on kubernetes makes clusters of plain processes in pods, and --provider %s needs a machine", p.Value), "leave out --provider")
	}
	if k.spec.Registry.Repository == "" {
		return usage(errors.New("--on kubernetes needs a registry for its image, whichever way bundles go"), "--registry registry.example.com/team/relapse")
	}
	if info, err := os.Stat(k.base); k.imageVolume && err == nil && info.Mode().IsRegular() {
		return usage(fmt.Errorf("--base %s is a file, and with --image-volume nodes pull the base by themselves", k.base), "--base REFERENCE, or leave out --image-volume")
	}
	if k.exec && k.spec.Storage != "" {
		return usage(errors.New("--storage and --exec are two ways for the bundles"), "leave out one of them")
	}
	if changed("hold") && !k.exec {
		return usage(errors.New("--hold is for --exec: pods wait for nothing where bundles go another way"), "leave it out")
	}
	if !k.exec {
		k.spec.Hold = 0
	} else if k.spec.Hold <= 0 {
		return usage(fmt.Errorf("--hold is %s (want more than 0)", k.spec.Hold), "leave it out for 1h")
	}
	if err := k.spec.Registry.Validate(); err != nil {
		return usage(err, "--registry registry.example.com/team/relapse")
	}
	if k.spec.Parallelism < 1 {
		return usage(fmt.Errorf("--parallelism is %d (want at least 1)", k.spec.Parallelism), "leave it out for 2")
	}
	return nil
}

// amounts reads what a trial of a plan gets. It refuses a plan that can't be made in a cluster.
func (k *kubeFlags) amounts(p *plan.Plan) (err error) {
	switch {
	case p.Until != nil && len(p.Pairs()) > 1:
		return usage(errors.New("--until-confident takes one pair with --on kubernetes: which trial comes next must be known before the others end"), "--pair NAME")
	case p.Until != nil && k.exec: // they could take all places, while one that is made again finds none
		return usage(errors.New("--until-confident doesn't go with --exec: pods would wait until those before them are done"),
			"let bundles go by the registry, or by --storage")
	}
	k.spec.Queue = k.queue
	if k.spec.Limited, err = onkube.LimitedIn(p); err != nil {
		return usage(err, "--pair NAME")
	}
	if len(k.spec.Limited) > 0 && k.cpu != "" {
		return usage(errors.New("--cpu-limit doesn't go with a scenario that limits a component's memory: nobody could say how much of it is for the component's container"),
			"leave it out")
	}
	if k.memory == "" {
		k.memory = fmt.Sprintf("%dGi", 2*p.Nodes())
	}
	if k.spec.Memory, err = resource.ParseQuantity(k.memory); err != nil {
		return usage(fmt.Errorf("--memory %q: %w", k.memory, err), "--memory 4Gi")
	}
	if k.cpu == "" {
		return nil
	}
	cpu, err := resource.ParseQuantity(k.cpu)
	k.spec.CPU = &cpu
	return usage(wrapped(err, "--cpu-limit "+k.cpu), "--cpu-limit 2")
}

func wrapped(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// connect returns a client for the cluster that a run's Job is in, and what runs commands in its pods. It completes what the flags leave to the kubeconfig.
func connect(j *ledger.Job) (kubernetes.Interface, onkube.Exec, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = j.Kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: j.Context})
	const hint = "pass --kubeconfig and --context, or set KUBECONFIG"
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, nil, usage(err, hint)
	}
	if j.Context == "" {
		raw, err := config.RawConfig()
		if err != nil {
			return nil, nil, usage(err, hint)
		}
		j.Context = raw.CurrentContext
	}
	if j.Namespace == "" {
		if j.Namespace, _, err = config.Namespace(); err != nil {
			return nil, nil, usage(err, hint)
		}
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, nil, err
	}
	return client, onkube.NewExec(rest, client), nil
}

// runOn makes the trials of a run in a cluster that is there.
func runOn(cmd *cobra.Command, f runFlags, k kubeFlags, args []string) error {
	f.provider = providers.Processes
	root, p, err := f.ready(cmd, args)
	if err != nil {
		return err
	}
	if p.Provider != providers.Processes {
		return usage(errors.New("the plan is for the provider kind, and pods can make clusters of plain processes only"), "relapse plan NAME --provider processes")
	}
	if err := k.amounts(p); err != nil {
		return err
	}
	if k.dryRun {
		return k.printJob(cmd, p)
	}
	run, events, done, err := k.start(cmd, f, root, p)
	if err != nil {
		return failedOn(asRefusal(err))
	}
	defer done()
	note(cmd, "relapse attach %s follows it again, relapse clean %s removes it", run.Name, run.Name)
	if !k.wait {
		return nil
	}
	return follow(cmd, run, events)
}

// printJob prints the Role that a run of a plan needs, and its Job, whose name and image are those of no run.
func (k *kubeFlags) printJob(cmd *cobra.Command, p *plan.Plan) error {
	s := k.spec
	s.Run, s.Trials = "relapse-00000000", onkube.TrialsOf(p)
	s.Image = s.Registry.Repository + ":" + s.Run
	if k.imageVolume {
		s.Image, s.Programs = k.base, s.Image
	}
	role, err := yaml.Marshal(onkube.Role(s))
	if err != nil {
		return err
	}
	job, err := yaml.Marshal(onkube.Job(s))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "# What whoever starts the run may do in its namespace.\n%s---\n"+
		"# A run has a name of its own, and names the image by its digest.\n%s", role, job)
	return err
}

// start creates the Job of a run. done ends the display of its progress.
func (k *kubeFlags) start(cmd *cobra.Command, f runFlags, root string, p *plan.Plan) (run *onkube.Run, events *event.Stream, done func(), err error) {
	if k.kubeconfig != "" { // attach may be called in another folder
		if k.kubeconfig, err = filepath.Abs(k.kubeconfig); err != nil {
			return nil, nil, nil, err
		}
	}
	o := onkube.Options{Job: ledger.Job{Kubeconfig: k.kubeconfig, Context: k.context, Namespace: k.spec.Namespace, Registry: k.spec.Registry.Repository,
		Insecure: k.spec.Registry.Insecure, Storage: k.spec.Storage, Held: k.exec, Secret: k.spec.Secret, CPU: k.cpu}}
	if o.Client, o.Exec, err = connect(&o.Job); err != nil {
		return nil, nil, nil, err
	}
	k.spec.Namespace = o.Job.Namespace
	sink, done, err := f.sink(cmd.ErrOrStderr(), 2)
	if err != nil {
		return nil, nil, nil, err
	}
	events = event.NewStream(sink)
	announce(p, f.out, events)
	provider, err := newProvider(p.Provider, events, false)
	if err != nil {
		return nil, nil, done, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, done, fmt.Errorf("looking for the program that goes into the image, which is this one: %w", err)
	}
	made, err := artifacts.Open(f.artifactsOf(root, events))
	if err != nil {
		return nil, nil, done, err
	}
	defer made.Close() //nolint:errcheck // it only releases locks
	o.Plan, o.Provider, o.Artifacts = p, onkube.InPods{Provider: provider}, made
	o.Out, o.Events = f.out, events
	o.Spec, o.Base, o.ImageVolume, o.Self = k.spec, k.base, k.imageVolume, self
	run, err = onkube.Start(cmd.Context(), o)
	return run, events, done, err
}

// follow waits for the trials of a run, judges them and prints the verdict.
func follow(cmd *cobra.Command, run *onkube.Run, events *event.Stream) error {
	leaves(cmd.Context(), "the Job "+run.Name)
	if err := run.Follow(cmd.Context()); err != nil {
		if cmd.Context().Err() != nil {
			return hinted(err, fmt.Sprintf("relapse attach %s follows the Job again, relapse clean %s removes it", run.Name, run.Name))
		}
		return failedOn(err)
	}
	return concludeOn(cmd, run, events)
}

// perform makes the trials of a plan in the cluster, judges them and removes what the run has there. A run that broke off
// stays, for relapse attach and relapse clean.
func (k kubeFlags) perform(ctx context.Context, cmd *cobra.Command, f runFlags, root string, p *plan.Plan) (dir string, v judge.Verdict, err error) {
	if err := k.amounts(p); err != nil {
		return "", v, err
	}
	run, events, done, err := k.start(cmd, f, root, p)
	if err != nil {
		return "", v, err
	}
	defer done()
	dir = run.Dir.Path()
	leaves(ctx, "the Job "+run.Name)
	if err := run.Follow(ctx); err != nil {
		note(cmd, "relapse attach %s follows the Job again, relapse clean %s removes it", run.Name, run.Name)
		return dir, v, err
	}
	if v, err = harness.Conclude(harness.Options{Events: events, Report: reports.Write}, run.Dir); err != nil {
		return dir, v, err
	}
	leaves(ctx, "")
	l, err := ledger.TakeJob(run.Name)
	if err == nil {
		err = errors.Join(onkube.Remove(ctx, run.Client, run.Exec, l), l.Forget())
	}
	if err != nil {
		note(cmd, "the verdict stands, and relapse clean %s removes what is left in the cluster: %v", run.Name, err)
	}
	return dir, v, nil
}

// carryOut performs a plan in the cluster if the flags name one, and otherwise on this host.
func (k kubeFlags) carryOut(ctx context.Context, cmd *cobra.Command, f runFlags, root string, p *plan.Plan) (dir string, v judge.Verdict, err error) {
	if k.on == "" {
		return f.perform(ctx, cmd, root, p)
	}
	return k.perform(ctx, cmd, f, root, p)
}

// concludeOn judges a run whose bundles are all here.
func concludeOn(cmd *cobra.Command, run *onkube.Run, events *event.Stream) error {
	v, err := harness.Conclude(harness.Options{Events: events, Report: reports.Write}, run.Dir)
	if err != nil {
		return failed(err)
	}
	f := runFlags{out: filepath.Dir(run.Dir.Path())}
	if err := f.tell(cmd, run.Dir.Path(), v); err != nil {
		return err
	}
	printLast(cmd, v.Verdict, v.ExitCode)
	return exitWith(v.ExitCode)
}

// failedOn adds the next step to what a cluster refused.
func failedOn(err error) error {
	var refused *onkube.ClusterError
	if errors.As(err, &refused) {
		return hinted(err, refused.Next)
	}
	return failed(err)
}
