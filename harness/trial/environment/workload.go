package environment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// fieldManager is the owner of the fields of objects applied from a scenario's manifests.
const fieldManager = "relapse"

// deployed limits how long it may take until all arms' pods are Ready, on a machine that may be loaded.
const deployed = 5 * time.Minute

// installWorkloads loads each arm's image into the nodes, applies the scenario's manifests and waits until every arm's
// pod is Ready. If no kubelet runs pods, each arm is started as a plain process instead.
func (e *Environment) installWorkloads(ctx context.Context) (err error) {
	stage := e.events.Stage("deploy", "bringing the arms' images to the nodes and applying the manifests",
		20*time.Second)
	defer func() { stage(err) }()
	c := e.Cluster()
	runner := c.Abilities().Processes
	plain := runner != nil
	if !plain {
		g, gctx := errgroup.WithContext(ctx)
		for _, arm := range e.Trial.Arms {
			g.Go(func() error { return e.load(gctx, c, arm) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	a, err := newApplier(c.RESTConfig())
	if err != nil {
		return err
	}
	for _, arm := range e.Trial.Arms {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: arm.Namespace,
			Labels: map[string]string{plan.ArmLabel: arm.Name}}}
		if _, err := a.core.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the namespace %s: %w", arm.Namespace, err)
		}
	}
	for _, m := range e.Trial.Manifests {
		// plan.Trial's Process reads the arm's Deployment instead.
		without := func(kind string) bool { return plain && m.Arm != "" && plan.RunsAsProcess(kind) }
		if err := a.apply(ctx, m.File, strings.ReplaceAll(m.Content, plan.ImageReference, e.image(m.Arm)), without); err != nil {
			return err
		}
	}
	if plain {
		return e.armsReady(ctx, func(arm plan.Arm) error { return e.runProcess(ctx, runner, arm) })
	}
	return e.armsReady(ctx, func(arm plan.Arm) error { return e.podReady(ctx, a.core, arm) })
}

// runProcess starts an arm as a plain process and waits until the process is ready for work.
func (e *Environment) runProcess(ctx context.Context, runner cluster.Runner, arm plan.Arm) error {
	p, err := e.Trial.Process(arm.Name)
	if err != nil {
		return err
	}
	p.Program = e.builds[arm.Name].Path
	return runner.Run(ctx, e.workload(arm.Name), p)
}

// armsReady waits for all arms with ready, which waits for one. A control that doesn't get ready is an error. A
// candidate that doesn't is recorded as unresponsive: not starting where a control does is an answer.
func (e *Environment) armsReady(ctx context.Context, ready func(plan.Arm) error) error {
	errs := make([]error, len(e.Trial.Arms))
	var wg sync.WaitGroup
	for i, arm := range e.Trial.Arms {
		wg.Go(func() { errs[i] = ready(arm) })
	}
	wg.Wait()
	for i, arm := range e.Trial.Arms {
		if errs[i] != nil && (ctx.Err() != nil || !e.IsCandidate(arm.Name)) {
			return errs[i]
		}
	}
	for i, arm := range e.Trial.Arms {
		if errs[i] == nil {
			continue
		}
		e.events.Emit(event.Event{Type: event.Warning, Arm: arm.Name,
			Message: fmt.Sprintf("the %s of %s doesn't get ready: %v", e.Trial.Subject, arm.Name, errs[i])})
		e.mu.Lock()
		e.unresponsive = append(e.unresponsive, arm.Name)
		e.mu.Unlock()
	}
	return nil
}

// image returns the name of an arm's image, which is in no registry.
func (e *Environment) image(arm string) string {
	return fmt.Sprintf("relapse.invalid/%s:%.12s", e.Trial.Subject, e.builds[arm].Digest)
}

// load imports an arm's image into every node.
func (e *Environment) load(ctx context.Context, c cluster.Cluster, arm plan.Arm) error {
	dir, err := os.MkdirTemp("", "relapse-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // in the temporary directory, which the system cleans up if this fails
	archive := filepath.Join(dir, arm.Name+".tar")
	ref := e.image(arm.Name)
	if err := image.WriteProgram(archive, ref, e.Trial.Subject, e.builds[arm.Name].Path, runtime.GOARCH); err != nil {
		return err
	}
	for _, n := range c.Nodes() {
		if err := importImage(ctx, n, archive); err != nil {
			return fmt.Errorf("bringing image %s to node %s: %w", ref, n.Name(), err)
		}
	}
	return nil
}

func importImage(ctx context.Context, n cluster.Node, archive string) error {
	x, err := cluster.Commands(n)
	if err != nil {
		return err
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = x.Exec(ctx, f, "ctr", "--namespace", "k8s.io", "images", "import", "--digests", "-")
	return err
}

// applier applies manifests.
type applier struct {
	core    kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(cfg *rest.Config) (*applier, error) {
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	var d discovery.DiscoveryInterface = core.Discovery()
	return &applier{core, dyn, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}, nil
}

// apply applies the objects of a file, in the file's order, without those of some kinds. It waits for kinds that were
// declared just before.
func (a *applier) apply(ctx context.Context, file, text string, without func(kind string) bool) error {
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for n := 1; ; n++ {
		obj := &unstructured.Unstructured{}
		switch err := d.Decode(&obj.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading object %d of %s: %w", n, file, err)
		case len(obj.Object) == 0, without(obj.GetKind()): // the first is nothing between two separators
			continue
		}
		if err := a.one(ctx, obj); err != nil {
			return fmt.Errorf("applying %s %s of %s: %w", obj.GetKind(), obj.GetName(), file, err)
		}
	}
}

// declared is how long the API server may take to serve a kind after its declaration was applied.
const declared = 30 * time.Second

func (a *applier) one(ctx context.Context, obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, declared, true,
		func(ctx context.Context) (bool, error) {
			var m *meta.RESTMapping
			if m, last = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); last == nil {
				client := a.dynamic.Resource(m.Resource).Namespace(obj.GetNamespace()) // "" without a namespace
				_, last = client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager})
			}
			if last != nil && (meta.IsNoMatchError(last) || apierrors.IsNotFound(last)) {
				a.mapper.Reset()
				return false, nil
			}
			return true, last
		})
	return cmp.Or(last, err)
}

// podReady waits until the pod of an arm is Ready.
func (e *Environment) podReady(ctx context.Context, core kubernetes.Interface, arm plan.Arm) error {
	var listed error
	last := ""
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, deployed, true,
		func(ctx context.Context) (bool, error) {
			var list *corev1.PodList
			list, listed = core.CoreV1().Pods(arm.Namespace).List(ctx,
				metav1.ListOptions{LabelSelector: subjectLabel + "=" + e.Trial.Subject})
			if listed != nil || len(list.Items) == 0 {
				last = "there is no such pod"
				return false, nil
			}
			last = describePod(list.Items[0])
			return len(list.Items) == 1 && ready(list.Items[0]), nil
		})
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("waiting for the %s of %s in %s: %s", e.Trial.Subject, arm.Name, arm.Namespace,
		last), listed, cmp.Or(context.Cause(ctx), err))
}

// subjectLabel is the label with the subject's name on each arm's pod.
const subjectLabel = "app.kubernetes.io/name"

func ready(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// describePod describes a pod's state and why it is not Ready.
func describePod(p corev1.Pod) string {
	out := fmt.Sprintf("%s is %s", p.Name, p.Status.Phase)
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			out += "; " + c.Message
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Waiting != nil {
			out += "; " + strings.TrimSpace(s.State.Waiting.Reason+" "+s.State.Waiting.Message)
		}
		if t := s.LastTerminationState.Terminated; t != nil {
			out += fmt.Sprintf("; ended with %s, exit code %d", t.Reason, t.ExitCode)
		}
	}
	return out
}

// Workload returns the component that an arm runs as.
func (e *Environment) Workload(ctx context.Context, arm string) (cluster.Component, error) {
	return e.ClusterOf(arm).Workload(ctx, e.workload(arm))
}

func (e *Environment) workload(arm string) cluster.Workload {
	return cluster.Workload{Name: e.Trial.Subject, Namespace: e.Namespace(arm), Arm: arm}
}

// Namespace returns the namespace of an arm, "" if it has none of its own.
func (e *Environment) Namespace(arm string) string {
	for _, c := range e.Trial.Arms {
		if c.Name == arm {
			return c.Namespace
		}
	}
	return ""
}
