package loads

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "podProbe",
		Doc: "A pod that a node's kubelet must run and end again: it shows that the kubelet works, where heartbeats " +
			"only show that it runs.\n\n" +
			"The pod is bound to the one node that the target chooses. It tolerates every taint, and uses the node's " +
			"network and an image that the node has. A try is done when the pod was seen Running and Ready, was " +
			"deleted, and is gone. The timeout of a step should stay below 1m: after that a kubelet looks at a pod " +
			"even without an event, and a kubelet that loses every event of its runtime would be seen to run the " +
			"pod. A kubelet whose channel overflowed may have lost the events of one pod, so there is a second try " +
			"with another pod. The result is recorded, and never fails the load. If the API server can't be asked, " +
			"the result says nothing about the kubelet. At the end the load deletes the pods and their namespace, " +
			"relapse-<name>-<arm>, by force if necessary.",
		Example: "name: pod\nkind: podProbe\nphase: recovery\nat: 10s\ntarget: {mode: all, selector: {component: " +
			"kubelet}}\nspec:\n  timeout: 55s\n  tries: 2\n",
		Tested: `{"timeout":"1s"}`,
		New:    func() load.Load { return &PodProbe{Timeout: metav1.Duration{Duration: 55 * time.Second}, Tries: 2} },
	})
}

// PodProbe makes a kubelet run a pod and end it again.
type PodProbe struct {
	Image   string          `json:"image,omitempty" jsonschema:"an image that the node has; default: the pause image that the node lists"`
	Timeout metav1.Duration `json:"timeout" refers:"stretch" jsonschema:"time limit of each step, above 0: creating the pod, seeing it run, deleting it, seeing it gone"`
	Tries   int             `json:"tries" jsonschema:"how many pods are tried at most, one after another, until one ran and is gone; at least 1"`
}

// Makes returns the kind of artifact that the load records: the probe's record.
func (*PodProbe) Makes() []bundle.Kind { return []bundle.Kind{bundle.WorkProbe} }

// Probe returns true: nothing can come after it.
func (*PodProbe) Probe() bool { return true }

// OnNode returns true: a pod on an arm's own node affects no other arm.
func (*PodProbe) OnNode() bool { return true }

// Validate refuses a probe that nothing could pass.
func (l *PodProbe) Validate() error {
	switch {
	case l.Timeout.Duration <= 0:
		return fmt.Errorf("timeout is %s (want above 0)", l.Timeout.Duration)
	case l.Tries < 1:
		return fmt.Errorf("tries is %d (want at least 1)", l.Tries)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *PodProbe) Describe() string {
	return fmt.Sprintf(
		"a pod must run within %s, and be gone within %s of its deletion, in one of %d tries",
		l.Timeout.Duration,
		l.Timeout.Duration,
		l.Tries,
	)
}

// Prepare makes the namespace, and checks by a dry run that the API server would take the pod.
func (l *PodProbe) Prepare(ctx context.Context, t load.Target) error {
	p, err := probePods(t)
	if err != nil {
		return err
	}
	err = insist(ctx, time.Minute, func(ctx context.Context) error {
		if err := p.makeNamespace(ctx, p.namespace); err != nil {
			return err
		}
		pod, err := p.pod(ctx, l.Image, "probe-0")
		if err != nil {
			return err
		}
		_, err = p.typed.CoreV1().Pods(p.namespace).Create(ctx, pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return describe("a pod", err)
	})
	if err != nil {
		return fmt.Errorf("preparing the pod of load %s: %w", t.Name, err)
	}
	return nil
}

// Run tries pods until one ran and was gone.
func (l *PodProbe) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	p, err := probePods(t)
	if err != nil {
		return err
	}
	out := newProbe(t, "a pod on "+p.node)
	for try := 1; try <= l.Tries; try++ {
		if err = l.try(ctx, p, out, try); !errors.Is(err, errIdle) {
			break
		}
	}
	p.clear(ctx, l.Tries)
	return out.record(ctx, w, err)
}

// try makes one pod run and end.
func (l *PodProbe) try(ctx context.Context, p *pods, out *probe, try int) error {
	name := fmt.Sprintf("probe-%d", try)
	err := out.step(try, "created", func() (what string, err error) {
		err = insist(ctx, l.Timeout.Duration, func(ctx context.Context) error {
			pod, err := p.pod(ctx, l.Image, name)
			if err != nil {
				return err
			}
			what = "image " + pod.Spec.Containers[0].Image
			if _, err = p.typed.CoreV1().Pods(p.namespace).Create(ctx, pod,
				metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
				return nil // an answer got lost
			}
			return err
		})
		return what, err
	})
	if err != nil {
		return err
	}
	if err := out.step(try, "running",
		func() (string, error) { return p.await(ctx, name, l.Timeout.Duration, running) }); err != nil {
		return err
	}
	return out.step(try, "gone", func() (string, error) {
		err := insist(ctx, l.Timeout.Duration, func(ctx context.Context) error {
			err := p.typed.CoreV1().Pods(p.namespace).Delete(ctx, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return "", err
		}
		return p.await(
			ctx,
			name,
			l.Timeout.Duration,
			func(pod *corev1.Pod) bool { return pod == nil },
		)
	})
}

// running reports whether a pod was seen to run and be Ready.
func running(pod *corev1.Pod) bool {
	if pod == nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// pods is the client for the pods of one probe.
type pods struct {
	*client
	node      string
	namespace string
}

func probePods(t load.Target) (*pods, error) {
	if len(t.Nodes) != 1 {
		return nil, fmt.Errorf(
			"load %s: its target chooses %d nodes in %s (want one)",
			t.Name,
			len(t.Nodes),
			t.Arm,
		)
	}
	c, err := newClient(t)
	if err != nil {
		return nil, err
	}
	return &pods{
		client:    c,
		node:      t.Nodes[0].Name(),
		namespace: "relapse-" + t.Name + "-" + t.Arm,
	}, nil
}

// pod returns a pod that needs nothing but the kubelet and its runtime.
func (p *pods) pod(ctx context.Context, image, name string) (*corev1.Pod, error) {
	if image == "" {
		var err error
		if image, err = p.pause(ctx); err != nil {
			return nil, err
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: p.labels()},
		Spec: corev1.PodSpec{
			NodeName:                      p.node,
			HostNetwork:                   true,
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(bool),
			EnableServiceLinks:            new(bool),
			TerminationGracePeriodSeconds: new(int64(2)),
			Tolerations: []corev1.Toleration{
				{Operator: corev1.TolerationOpExists},
			},
			Containers: []corev1.Container{{Name: "probe", Image: image,
				ImagePullPolicy: corev1.PullNever}},
		},
	}, nil
}

// pause returns the name of the pause image among those that the node says it has.
func (p *pods) pause(ctx context.Context) (string, error) {
	n, err := p.typed.CoreV1().Nodes().Get(ctx, p.node, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, i := range n.Status.Images {
		for _, name := range i.Names {
			if base := path.Base(name); strings.HasPrefix(base, "pause:") {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf(
		"node %s lists no pause image among its %d images (want spec.image)",
		p.node,
		len(n.Status.Images),
	)
}

// clear deletes the probe's pods and namespace, even after the end of ctx and without the kubelet's help. What it can't
// delete goes with the cluster.
func (p *pods) clear(ctx context.Context, tries int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	for try := range tries {
		_ = p.typed.CoreV1().Pods(p.namespace).Delete(ctx, fmt.Sprintf("probe-%d", try+1),
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	}
	_ = p.typed.CoreV1().Namespaces().Delete(ctx, p.namespace, metav1.DeleteOptions{})
}
