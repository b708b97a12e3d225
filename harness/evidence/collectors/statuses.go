package collectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "containerStatuses",
		Doc: "What the kubelet reports of the control plane's containers on the arm's node, or of the arm's own pod, " +
			"read every second and recorded when it changes.\n\n" +
			"If components are plain processes, their supervisor reports instead of the kubelet. Elsewhere the " +
			"collector asks the API server instead of watching: an answer every second tells an API server without " +
			"news from one that is dead. The API server answers from its memory, so etcd is not asked. Every trial " +
			"whose arms are pods has this collector, even if the scenario doesn't list it.",
		Example: "name: statuses\nkind: containerStatuses\nspec:\n  components: [kube-apiserver, etcd]\n",
		New: func() capture.Collector {
			return &ContainerStatuses{
				Components: []string{"etcd", "kube-apiserver", "kube-controller-manager",
					"kube-scheduler"},
			}
		},
	})
}

// ContainerStatuses collects the statuses of containers in kube-system, or of the subject's containers if the arm has a
// namespace to itself.
type ContainerStatuses struct {
	Components []string `json:"components,omitempty" refers:"component,status" jsonschema:"the components, by the names of their containers in kube-system, at least one; if the arm is a pod, always the subject"`
}

// Validate refuses an empty list of components, which any answer would satisfy.
func (c *ContainerStatuses) Validate() error {
	if len(c.Components) == 0 {
		return errors.New("components is empty (want at least one)")
	}
	return nil
}

// Makes returns the kind of artifact that the collector records: container statuses.
func (*ContainerStatuses) Makes() []bundle.Kind { return []bundle.Kind{bundle.Statuses} }

// Stream asks once a second and records what changed. A look that lacks the status of a component is no look: what it
// found of the others is recorded, but the time counts as covered only by looks that found all.
func (c *ContainerStatuses) Stream(
	ctx context.Context,
	t capture.Target,
	w *bundle.Writer,
) error {
	if err := c.Validate(); err != nil {
		w.Fail(t.Meta(bundle.Statuses), err)
		return err
	}
	look, err := c.from(t)
	if err != nil {
		return err
	}
	st, err := w.Stream(t.Meta(bundle.Statuses), "jsonl")
	if err != nil {
		return err
	}
	last := map[string]bundle.ContainerStatus{} // by pod and container
	Follow(ctx, time.Second, st, func(ctx context.Context) error {
		now, err := look(ctx)
		for _, s := range now {
			key := s.Pod + "/" + s.Container
			before := last[key]
			before.Time = s.Time
			if before == s {
				continue
			}
			if err := st.Append(s); err != nil {
				return err
			}
			last[key] = s
		}
		return err
	})
	return st.Close()
}

// from returns the function that asks for the statuses: from the API server, or from the components where there are no
// kubelets. With an error, that function also returns the statuses that it got.
func (c *ContainerStatuses) from(
	t capture.Target,
) (func(context.Context) ([]bundle.ContainerStatus, error), error) {
	namespace, components := metav1.NamespaceSystem, c.Components
	if t.Namespace != "" {
		namespace, components = t.Namespace, []string{t.Component.Name()}
	}
	if t.Component.Abilities().Status != nil {
		find := t.Cluster.Components
		if t.Namespace != "" {
			find = func(string) []cluster.Component { return []cluster.Component{t.Component} }
		}
		return func(ctx context.Context) ([]bundle.ContainerStatus, error) {
			return reported(ctx, t, components, find)
		}, nil
	}
	client, err := kubernetes.NewForConfig(t.Cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]bundle.ContainerStatus, error) {
		pods, err := client.CoreV1().
			Pods(namespace).
			List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		now, missing := statuses(pods.Items, t.Node.Name(), components)
		if len(missing) > 0 {
			err = fmt.Errorf(
				"the API server has no status of %s on %s",
				strings.Join(missing, ", "),
				t.Node.Name(),
			)
		}
		return now, err
	}, nil
}

// reported returns the statuses that components have of themselves. A component that runs counts as ready, because
// nobody probes it.
func reported(ctx context.Context, t capture.Target, components []string,
	find func(string) []cluster.Component) (out []bundle.ContainerStatus, err error) {
	for _, name := range components {
		var asked bool
		for _, k := range find(name) {
			status := k.Abilities().Status
			if status == nil || k.Node().Name() != t.Node.Name() {
				continue
			}
			asked = true
			s, e := status(ctx)
			if err = errors.Join(err, e); e != nil {
				continue
			}
			one := bundle.ContainerStatus{
				Time:         time.Now().UTC(),
				Pod:          name + "-" + t.Node.Name(),
				Container:    name,
				ID:           s.ID,
				State:        "waiting",
				Ready:        s.Running,
				RestartCount: int32(s.Restarts),
				LastID:       s.LastID,
				LastExitCode: int32(s.LastCode),
				LastFinished: s.LastFinished,
			}
			if s.Running {
				one.State = "running"
			}
			switch {
			case s.LastID == "":
			case s.LastOutOfMemory:
				one.LastReason = "OOMKilled"
			case s.LastCode != 0:
				one.LastReason = "Error"
			default:
				one.LastReason = "Completed"
			}
			out = append(out, one)
		}
		if !asked {
			err = errors.Join(
				err,
				fmt.Errorf("there is no status of %s on %s", name, t.Node.Name()),
			)
		}
	}
	return out, err
}

// statuses returns the statuses of the components' containers on a node, and the components that have none.
func statuses(
	pods []corev1.Pod,
	node string,
	components []string,
) (out []bundle.ContainerStatus, missing []string) {
	missing = slices.Clone(components)
	now := time.Now().UTC()
	for _, pod := range pods {
		if pod.Spec.NodeName != node {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if !slices.Contains(components, s.Name) {
				continue
			}
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == s.Name })
			out = append(out, statusOf(now, pod.Name, s))
		}
	}
	return out, missing
}

func statusOf(now time.Time, pod string, s corev1.ContainerStatus) bundle.ContainerStatus {
	out := bundle.ContainerStatus{
		Time:         now,
		Pod:          pod,
		Container:    s.Name,
		ID:           s.ContainerID,
		State:        "waiting",
		Ready:        s.Ready,
		RestartCount: s.RestartCount,
	}
	switch {
	case s.State.Running != nil:
		out.State, out.Started = "running", s.State.Running.StartedAt.UTC()
	case s.State.Terminated != nil:
		out.State, out.Reason, out.ExitCode = "terminated", s.State.Terminated.Reason, s.State.Terminated.ExitCode
	case s.State.Waiting != nil: // a container with none of the three waits, too
		out.Reason = s.State.Waiting.Reason
	}
	if l := s.LastTerminationState.Terminated; l != nil {
		out.LastID, out.LastReason, out.LastExitCode, out.LastFinished = l.ContainerID, l.Reason, l.ExitCode,
			l.FinishedAt.UTC()
	}
	return out
}
