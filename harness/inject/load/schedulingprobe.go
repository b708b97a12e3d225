package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[Load]{
		Name: "schedulingProbe",
		Doc: "Pods that the cluster's scheduler must bind to a node: they show that the scheduler works, where " +
			"health endpoints only show that it runs.\n\n" +
			"The load creates the pods in the given order. They ask for no particular node and tolerate every taint. " +
			"The probe is done once every pod was seen bound to a node. Whether the pods then run is up to the " +
			"kubelet, and the probe doesn't ask. A pod may have a disk, which is an inline in-tree volume. A pod may " +
			"also have a priority: a scheduler that has just started takes the pod with the highest priority first. " +
			"The pods stay, in the namespace relapse-<name>-<arm>, so that evidence can show what becomes of them " +
			"once the fault is gone.",
		Example: "name: pods\nkind: schedulingProbe\ntarget: {mode: all, selector: {component: " +
			"kube-scheduler}}\nspec:\n  timeout: 2m\n" +
			"  pods:\n    - {name: trigger, priorityClass: system-node-critical, gcePersistentDisk: d1}\n    - " +
			"{name: bystander}\n",
		Tested: `{"timeout":"1s","pods":[{"name":"first","gcePersistentDisk":"d1"},{"name":"second"}]}`,
		New:    func() Load { return &SchedulingProbe{Timeout: metav1.Duration{Duration: time.Minute}} },
	})
}

// SchedulingProbe makes a scheduler bind pods.
type SchedulingProbe struct {
	Pods    []ProbePod      `json:"pods" jsonschema:"the pods, in the order in which they are created; at least one"`
	Image   string          `json:"image,omitempty" jsonschema:"an image that the node has; default: the pause image that the node lists"`
	Timeout metav1.Duration `json:"timeout" refers:"stretch" jsonschema:"how long the pods may take until all are bound, counted from the creation of the last; also the time limit of each creation; above 0"`
}

// ProbePod is a pod that wants a node.
type ProbePod struct {
	Name              string `json:"name" jsonschema:"name of the pod, unique among the probe's pods"`
	PriorityClass     string `json:"priorityClass,omitempty" jsonschema:"a PriorityClass of the cluster, such as system-node-critical; default: none"`
	GCEPersistentDisk string `json:"gcePersistentDisk,omitempty" jsonschema:"name of a GCE disk, which the pod has as an inline volume of the in-tree plugin; default: none"`
}

// Makes returns the kind of artifact that the load records: the probe's record.
func (*SchedulingProbe) Makes() []bundle.Kind { return []bundle.Kind{bundle.WorkProbe} }

// Probe returns true: nothing can come after it.
func (*SchedulingProbe) Probe() bool { return true }

// Validate refuses a probe that nothing could pass, or that anything would pass.
func (l *SchedulingProbe) Validate() error {
	if len(l.Pods) == 0 {
		return errors.New("pods is empty (want at least one)")
	}
	seen := map[string]bool{}
	for i, p := range l.Pods {
		switch {
		case p.Name == "":
			return fmt.Errorf("pods[%d] has no name", i)
		case seen[p.Name]:
			return fmt.Errorf("pods has %q twice", p.Name)
		}
		seen[p.Name] = true
	}
	if l.Timeout.Duration <= 0 {
		return fmt.Errorf("timeout is %s (want above 0)", l.Timeout.Duration)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *SchedulingProbe) Describe() string {
	var names []string
	for _, p := range l.Pods {
		names = append(names, p.Name)
	}
	return fmt.Sprintf("the scheduler must bind %s to a node within %s", strings.Join(names, ", "), l.Timeout.Duration)
}

// Prepare makes the namespace, and checks by a dry run that the API server would take each pod.
func (l *SchedulingProbe) Prepare(ctx context.Context, t Target) error {
	p, err := probePods(t)
	if err != nil {
		return err
	}
	err = insist(ctx, time.Minute, func(ctx context.Context) error {
		if err := p.makeNamespace(ctx, p.namespace); err != nil {
			return err
		}
		for _, one := range l.Pods {
			if err := l.create(ctx, p, one, metav1.DryRunAll); err != nil {
				return describe("the pod "+one.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("preparing the pods of load %s: %w", t.Name, err)
	}
	return nil
}

// Run creates the pods and watches until all are bound.
func (l *SchedulingProbe) Run(ctx context.Context, t Target, w *bundle.Writer) error {
	p, err := probePods(t)
	if err != nil {
		return err
	}
	out := newProbe(t, "pods that want a node")
	for _, one := range l.Pods {
		err = out.step(1, "created "+one.Name, func() (string, error) {
			return "", insist(ctx, l.Timeout.Duration, func(ctx context.Context) error { return l.create(ctx, p, one) })
		})
		if err != nil {
			return out.record(ctx, w, err)
		}
	}
	err = out.step(1, "bound", func() (string, error) { return l.bound(ctx, p) })
	return out.record(ctx, w, err)
}

// create creates one pod, or with dryRun only has it checked. A pod that exists already was created by this load: its
// answer got lost.
func (l *SchedulingProbe) create(ctx context.Context, p *pods, one ProbePod, dryRun ...string) error {
	image := l.Image
	if image == "" {
		var err error
		if image, err = p.pause(ctx); apierrors.IsNotFound(err) {
			image = "pause" // there is no such node: no kubelet will look for it
		} else if err != nil {
			return err
		}
	}
	pod, err := p.pod(ctx, image, one.Name)
	if err != nil {
		return err
	}
	pod.Spec.NodeName, pod.Spec.HostNetwork, pod.Spec.PriorityClassName = "", false, one.PriorityClass
	if one.GCEPersistentDisk != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
			GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: one.GCEPersistentDisk}}}}
	}
	_, err = p.typed.CoreV1().Pods(p.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: dryRun})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// bound waits until all pods are bound, with one time limit for all of them, and returns where each pod is.
func (l *SchedulingProbe) bound(ctx context.Context, p *pods) (string, error) {
	until := time.Now().Add(l.Timeout.Duration)
	var seen, waiting []string
	for _, one := range l.Pods {
		where := ""
		_, err := p.await(ctx, one.Name, time.Until(until), func(pod *corev1.Pod) bool {
			if pod != nil {
				where = pod.Spec.NodeName
			}
			return where != ""
		})
		switch {
		case err == nil:
			seen = append(seen, one.Name+" is bound to "+where)
		case errors.Is(err, errIdle):
			seen, waiting = append(seen, one.Name+" has no node"), append(waiting, one.Name)
		default:
			return strings.Join(seen, ", "), err
		}
	}
	what := strings.Join(seen, ", ")
	if len(waiting) > 0 {
		return what, fmt.Errorf("%w within %s: %s", errIdle, l.Timeout.Duration, what)
	}
	return what, nil
}
