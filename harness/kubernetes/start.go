package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	authv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
)

// Options say where the Job of a run is created, and how. Of the Spec, Run, Image and Trials are set by Start.
type Options struct {
	Plan      *plan.Plan
	Provider  cluster.Provider     // makes the trials' clusters in the pods
	Artifacts *artifacts.Artifacts // makes here what the trials take there
	Out       string               // the directory of run directories
	Events    *event.Stream

	Client kubernetes.Interface
	Exec   Exec
	Spec   JobSpec
	Base   string // the image below the run's layers: a reference, or a file that docker saved
	// ImageVolume says that the programs are mounted in place of being layers over Base, which nodes pull by themselves.
	ImageVolume bool
	Self        string // this program's file
	Job         ledger.Job
}

// InPods is a provider as it is in a pod: without what a restricted container can't do.
type InPods struct{ cluster.Provider }

// Capabilities returns what clusters in a pod can do. There, no process can be given a cgroup of its own: the Job has a
// container for each component whose memory is limited.
func (p InPods) Capabilities(ctx context.Context) (cluster.Capabilities, error) {
	can, err := p.Provider.Capabilities(ctx)
	can.NoMemoryLimits = ""
	return can, err
}

// LimitedIn returns the limits of the components whose memory a plan's trials limit, the smallest first. All trials are
// made by pods of one form, so their limits must be the same.
func LimitedIn(p *plan.Plan) (limits []resource.Quantity, err error) {
	for i, t := range p.Trials {
		var own []resource.Quantity
		for _, c := range t.Clusters {
			for component, limit := range c.Memory {
				q, err := resource.ParseQuantity(limit)
				if err != nil {
					return nil, fmt.Errorf("the memory limit %q of %s: %w", limit, component, err)
				}
				own = append(own, q)
			}
		}
		slices.SortFunc(own, func(a, b resource.Quantity) int { return a.Cmp(b) })
		if i == 0 {
			limits = own
		}
		if !slices.EqualFunc(limits, own, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) {
			return nil, fmt.Errorf("the trials limit the memory of components in different ways (%s, and %s), and all pods of a run have one form",
				inWords(limits), inWords(own))
		}
	}
	return limits, nil
}

func inWords(limits []resource.Quantity) string {
	var out []string
	for _, l := range limits {
		out = append(out, l.String())
	}
	return cmp.Or(strings.Join(out, " and "), "none")
}

// ClusterError says what a cluster refuses, with the next step.
type ClusterError struct {
	Err  error
	Next string
}

// Error returns the cluster's answer.
func (e *ClusterError) Error() string { return e.Err.Error() }

// Unwrap returns the cluster's answer.
func (e *ClusterError) Unwrap() error { return e.Err }

// Hint returns what to do next.
func (e *ClusterError) Hint() string { return e.Next }

// Check asks the cluster whether it would take the Job and show its pods, before anything is built. It creates nothing.
func Check(ctx context.Context, o Options) error {
	s := o.Spec
	s.Run, s.Trials, s.Image = "relapse-"+harness.NewID(), TrialsOf(o.Plan), s.Registry.Repository+":unknown"
	if o.ImageVolume {
		s.Programs = s.Image
	}
	made, err := o.Client.BatchV1().Jobs(s.Namespace).Create(ctx, Job(s), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) && o.ImageVolume {
		return &ClusterError{err, "leave out --image-volume: a cluster of Kubernetes before 1.36 may have no image volumes"}
	}
	if err != nil {
		return refusedBy(err, s.Namespace)
	}
	if made.Spec.BackoffLimitPerIndex == nil || made.Spec.PodFailurePolicy == nil {
		return &ClusterError{errors.New("this cluster's Jobs know no backoffLimitPerIndex and no podFailurePolicy, by which trials are repeated or not"),
			"a cluster of Kubernetes 1.33 or later has both"}
	}
	if _, err = o.Client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{Limit: 1}); err != nil || !s.runsCommands() {
		return refusedBy(err, s.Namespace)
	}
	asked := []authv1.ResourceAttributes{{Resource: "pods", Subresource: "exec"}}
	if s.Storage != "" {
		if err := hasClaim(ctx, o.Client, s.Namespace, s.Storage); errors.Is(err, errNoClaim) {
			return &ClusterError{err, "kubectl -n " + s.Namespace + " get persistentvolumeclaims lists those that are there"}
		} else if err != nil {
			return err
		}
		asked = append(asked, authv1.ResourceAttributes{Resource: "pods"})
	}
	for _, what := range asked {
		if err := mayCreate(ctx, o.Client, s.Namespace, what); err != nil {
			return err
		}
	}
	return nil
}

// mayCreate asks whether this user may create something, without which bundles would stay in the cluster.
func mayCreate(
	ctx context.Context,
	client kubernetes.Interface,
	namespace string,
	what authv1.ResourceAttributes,
) error {
	what.Namespace, what.Verb = namespace, "create"
	ask := &authv1.SelfSubjectAccessReview{
		Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}
	got, err := client.AuthorizationV1().
		SelfSubjectAccessReviews().
		Create(ctx, ask, metav1.CreateOptions{})
	if err != nil {
		return refusedBy(err, namespace)
	}
	if !got.Status.Allowed {
		return &ClusterError{
			fmt.Errorf(
				"the bundles come by commands in pods, and this user may not create %s in the namespace %s",
				path.Join(what.Resource, what.Subresource),
				namespace,
			),
			"--dry-run prints the Role that the run needs; with --registry alone, bundles go through the registry",
		}
	}
	return nil
}

// refusedBy adds the next step to what an API server refuses.
func refusedBy(err error, namespace string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return &ClusterError{err, "kubectl create namespace " + namespace}
	case apierrors.IsForbidden(err):
		return &ClusterError{
			err,
			"docs/scale.md has the Role that a run needs in its namespace; where a quota says it, change the quota, " +
				"or lower --parallelism and --memory",
		}
	}
	return &ClusterError{
		err,
		"kubectl get --raw /readyz tells whether the API server answers; --context names another cluster",
	}
}

// Start makes what the trials of a plan take, pushes it as an image and creates the Job. It returns the run, which has a
// directory and is noted down before anything of it exists outside.
func Start(ctx context.Context, o Options) (*Run, error) {
	if err := Check(ctx, o); err != nil {
		return nil, err
	}
	load, err := carry(ctx, o)
	if err != nil {
		return nil, err
	}
	id := harness.NewID()
	s := o.Spec
	s.Run, s.Trials = "relapse-"+id, TrialsOf(o.Plan)
	dir, err := filepath.Abs(filepath.Join(o.Out, id+"-"+o.Plan.Scenario))
	if err != nil {
		return nil, err
	}
	note, err := ledger.OpenJob(s.Run, dir, o.Job)
	if err != nil {
		return nil, err
	}
	r, err := start(ctx, o, s, load, note)
	if err != nil {
		note.Job.Storage = "" // no pod has been there
		return nil, errors.Join(
			err,
			Remove(context.WithoutCancel(ctx), o.Client, o.Exec, note),
			os.RemoveAll(dir),
			note.Forget(),
		)
	}
	return r, nil
}

func start(
	ctx context.Context,
	o Options,
	s JobSpec,
	load cargo,
	note ledger.Ledger,
) (r *Run, err error) {
	runDir, err := trial.CreateRunDir(note.Dir, s.Run, o.Plan)
	if err != nil {
		return nil, err
	}
	stage := o.Events.Stage(
		"push",
		"pushing the run's image to "+s.Registry.Repository,
		time.Minute,
	)
	defer func() { stage(err) }()
	if err := pushImage(ctx, o, &s, load); err != nil {
		return nil, err
	}
	if note.Job.Image = s.Image; s.Storage != "" { // for the pod that reads the volume
		if err := note.Save(); err != nil {
			return nil, err
		}
	}
	if _, err := o.Client.BatchV1().Jobs(s.Namespace).Create(ctx, Job(s), metav1.CreateOptions{}); err != nil {
		return nil, refusedBy(err, s.Namespace)
	}
	most := ""
	if o.Plan.Until != nil {
		most = "at most "
	}
	o.Events.Say(event.Note, fmt.Sprintf("the Job %s/%s makes %s%d trials, %d at once, from the image %s", s.Namespace, s.Run, most, s.Trials,
		s.Parallelism, cmp.Or(s.Programs, s.Image)))
	return &Run{Plan: o.Plan, Dir: runDir, Client: o.Client, Exec: o.Exec, Job: *note.Job, Name: s.Run, Events: o.Events}, nil
}

// pushImage pushes the image of a run, and says in the spec which images its pods take.
func pushImage(ctx context.Context, o Options, s *JobSpec, load cargo) error {
	base, err := openBase(ctx, o.Base, s.Registry)
	if err != nil {
		return err
	}
	img, into := v1.Image(nil), &s.Image
	if o.ImageVolume {
		if s.Image, err = pinned(o.Base, base, s.Registry); err != nil {
			return err
		}
		into = &s.Programs
		img, err = assembleVolume(o.Self, load, o.Plan)
	} else {
		img, err = assemble(base, o.Self, load, o.Plan)
	}
	if err != nil {
		return err
	}
	digest, err := s.Registry.push(ctx, s.Run, img)
	*into = s.Registry.Repository + "@" + digest
	return err
}

// Remove deletes the Job of a run with its pods, and the image and the bundles that the run has in its registry or on its
// volume. What is gone already is no error.
func Remove(ctx context.Context, client kubernetes.Interface, exec Exec, l ledger.Ledger) error {
	if l.Job.Storage != "" && l.Job.Image != "" { // first, as its pod needs the image
		if err := removeFolder(ctx, client, exec, l); err != nil {
			return err
		}
	}
	errs := []error{deleteJob(ctx, client, l.Job.Namespace, l.Run)}
	registry := registryOf(*l.Job)
	tags := []string{l.Run}
	if p, err := planIn(l.Dir); err == nil && inRegistry(*l.Job) {
		for i := range TrialsOf(p) {
			t, err := trialAt(p, i)
			if err != nil {
				return err
			}
			tags = append(tags, bundleTag(l.Run, t.ID), partialTag(l.Run, t.ID))
		}
	}
	for _, tag := range tags {
		errs = append(errs, registry.remove(ctx, tag))
	}
	return errors.Join(errs...)
}

// removeFolder removes the folder that a run has on its volume. With the claim that named it, the volume is out of reach.
func removeFolder(
	ctx context.Context,
	client kubernetes.Interface,
	exec Exec,
	l ledger.Ledger,
) error {
	if err := removeReaders(ctx, client, l); err != nil {
		return err
	}
	if err := hasClaim(ctx, client, l.Job.Namespace, l.Job.Storage); errors.Is(err, errNoClaim) {
		return nil
	} else if err != nil {
		return err
	}
	volume, end, err := volumeOf(ctx, client, exec, l.Run, *l.Job)
	if err != nil {
		return err
	}
	if err := errors.Join(volume.discard(ctx), end()); err != nil {
		return fmt.Errorf("removing the folder %s of the volume %s: %w", l.Run, l.Job.Storage, err)
	}
	return nil
}

// errNoClaim says that pods can't have a volume.
var errNoClaim = errors.New("there is no such persistentVolumeClaim, or it is being deleted")

// hasClaim asks for the claim of a volume. Whoever may not ask gets no error: a pod that needs the claim will tell.
func hasClaim(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	claim, err := client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && claim.DeletionTimestamp != nil:
		return fmt.Errorf("the volume %s in the namespace %s: %w", name, namespace, errNoClaim)
	case apierrors.IsForbidden(err):
		return nil
	}
	return refusedBy(err, namespace)
}

// deleteJob deletes a Job with its pods. One that is gone already is no error.
func deleteJob(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	policy := metav1.DeletePropagationBackground
	err := client.BatchV1().
		Jobs(namespace).
		Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
