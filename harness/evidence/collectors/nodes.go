package collectors

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "nodeConditions",
		Doc: "The Ready condition of the arm's node as the API server shows it, read every second and recorded when " +
			"it changes.",
		Example: "name: node\nkind: nodeConditions\n",
		New:     func() capture.Collector { return &NodeConditions{} },
	})
}

// NodeConditions collects a node's Ready condition.
type NodeConditions struct{}

// Makes returns the kind of artifact that the collector records: node conditions.
func (*NodeConditions) Makes() []bundle.Kind { return []bundle.Kind{bundle.Nodes} }

// NeedsKubelets returns true: without kubelets there is nothing to record.
func (*NodeConditions) NeedsKubelets() bool { return true }

// Stream asks for the node once a second and records what changed.
func (*NodeConditions) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	client, err := kubernetes.NewForConfig(t.Cluster.RESTConfig())
	if err != nil {
		return err
	}
	st, err := w.Stream(t.Meta(bundle.Nodes), "jsonl")
	if err != nil {
		return err
	}
	last := NodeStatuses{}
	Follow(ctx, time.Second, st, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, t.Node.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		return last.Record(st, node)
	})
	return st.Close()
}

// NodeStatuses has the status of each node that was recorded last.
type NodeStatuses map[string]bundle.NodeStatus

// Record records a node's status if it has changed.
func (s NodeStatuses) Record(st *bundle.Stream, node *corev1.Node) error {
	now, err := ready(node)
	if err != nil {
		return err
	}
	before := s[node.Name]
	before.Time = now.Time
	if before == now {
		return nil
	}
	s[node.Name] = now
	return st.JSON(now)
}

func ready(node *corev1.Node) (bundle.NodeStatus, error) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return bundle.NodeStatus{
				Time: time.Now().
					UTC(),
				Node:    node.Name,
				Status:  string(c.Status),
				Reason:  c.Reason,
				Message: c.Message,
				Beat:    c.LastHeartbeatTime.UTC(),
				Changed: c.LastTransitionTime.UTC(),
			}, nil
		}
	}
	return bundle.NodeStatus{}, fmt.Errorf("node %s has no Ready condition", node.Name)
}
