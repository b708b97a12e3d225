//go:build cluster

package processes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// A real scheduler asks the extender about each pod. By itself that changes nothing; by the rules of a fault a pod has no
// node, and others have.
func TestRealExtender(t *testing.T) {
	top := topology(nil)
	top.Simulated = 2
	p, programs := preparedFor(t, top)
	top.Nodes[0].Seams = map[string]string{seams.SchedulerExtender: programs[extender]}
	t.Cleanup(func() {
		if err := p.Delete(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	c, err := p.Create(t.Context(), name, top)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	asked, err := seams.ExtenderOf(c.Nodes()[0])
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() error { return untainted(t, client, top.Simulated) }) // of a single node that fits, the scheduler asks nobody whether it is the best
	schedule(t, client, "before", true)
	s, err := asked.State(t.Context())
	if err != nil || s.Asked[control.ExtenderFilter] == 0 || s.Asked[control.ExtenderPrioritize] == 0 || s.Forwarded[control.ExtenderFilter] != 0 {
		t.Errorf("before the fault the extender was asked %+v, %v", s, err)
	}
	f, err := kinds.Decode[fault.Fault](kinds.Fault, "webhook", []byte(`{"extender":{"verbs":["filter"]},"rules":[`+
		`{"when":"request.Pod.metadata.name == 'refused'","answer":{"NodeNames":[]}},{"oneIn":2,"delay":"100ms"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	target := fault.Target{Run: "run", Name: "picky", Cluster: c, Nodes: c.Nodes(), Expires: 3 * time.Minute, Events: event.NewStream()}
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	by, err := asked.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	schedule(t, client, "refused", false)
	schedule(t, client, "taken", true)
	now, err := asked.State(t.Context())
	if err != nil || now.Forwarded[control.ExtenderFilter] < by.Forwarded[control.ExtenderFilter]+2 || now.Forwarded[control.ExtenderPrioritize] != 0 {
		t.Errorf("the extender forwarded %v, and before the two pods %v; %v", now.Forwarded, by.Forwarded, err)
	}
	if err := f.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	schedule(t, client, "after", true)
}

// untainted returns an error until n nodes have no taint: a node that is Ready keeps node.kubernetes.io/not-ready until the
// controller manager takes it away.
func untainted(t *testing.T, client kubernetes.Interface, n int) error {
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s has %v", node.Name, node.Spec.Taints)
		}
	}
	if len(nodes.Items) != n {
		return fmt.Errorf("there are %d nodes, want %d", len(nodes.Items), n)
	}
	return nil
}

// schedule creates a pod, and returns once it has a node, or is said to fit none.
func schedule(t *testing.T, client kubernetes.Interface, name string, fits bool) {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none.invalid/none"}}}}
	until(t, func() error { // its namespace's service account may not be there yet
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	})
	until(t, func() error {
		got, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range got.Status.Conditions {
			if condition.Type != corev1.PodScheduled {
				continue
			}
			if (condition.Status == corev1.ConditionTrue) != fits || (got.Spec.NodeName != "") != fits {
				return fmt.Errorf("pod %s is on %q: %s", name, got.Spec.NodeName, condition.Message)
			}
			return nil
		}
		return errors.New("the scheduler said nothing of pod " + name)
	})
}
