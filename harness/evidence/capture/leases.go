package capture

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[Collector]{
		Name: "leases",
		Doc: "The Lease and the Ready condition of every node, every two seconds.\n\n" +
			"A Lease is recorded each time, since one that stands still has to be seen to; a condition when it " +
			"changed. Both are asked for rather than watched: an answer tells a node that has nothing to say from " +
			"an API server that hasn't.",
		Example: "name: leases\nkind: leases\n",
		New:     func() Collector { return &Leases{} },
	})
}

// leasesEvery is how often leases and nodes are listed: nodes renew every ten seconds.
const leasesEvery = 2 * time.Second

// Leases collects what a cluster knows of its nodes being alive.
type Leases struct{}

// Makes names leases and node conditions, both of all nodes.
func (*Leases) Makes() []bundle.Kind { return []bundle.Kind{bundle.Leases, bundle.Nodes} }

// NeedsKubelets is true: it is theirs to report.
func (*Leases) NeedsKubelets() bool { return true }

// ClusterWide is true: a node need not belong to an arm.
func (*Leases) ClusterWide() bool { return true }

// Stream lists both until ctx ends, each in its own time: what one list is late with is no gap in the other.
func (*Leases) Stream(ctx context.Context, t Target, w *bundle.Writer) error {
	client, err := kubernetes.NewForConfig(t.Cluster.RESTConfig())
	if err != nil {
		return err
	}
	leases, err := w.Stream(t.meta(bundle.Leases), "jsonl")
	if err != nil {
		return err
	}
	nodes, err := w.Stream(t.meta(bundle.Nodes), "jsonl")
	if err != nil {
		return errors.Join(err, leases.Close())
	}
	last := nodeStatuses{}
	var both sync.WaitGroup
	both.Go(func() {
		follow(ctx, leasesEvery, leases, func(ctx context.Context) error { return recordLeases(ctx, client, leases) })
	})
	both.Go(func() {
		follow(ctx, leasesEvery, nodes,
			func(ctx context.Context) error { return recordNodes(ctx, client, nodes, last) })
	})
	both.Wait()
	return errors.Join(leases.Close(), nodes.Close())
}

// recordLeases writes down every node's Lease. One that says no time or no duration is as good as none: whoever asks
// for it finds nothing.
func recordLeases(ctx context.Context, client *kubernetes.Clientset, st *bundle.Stream) error {
	asked := time.Now().UTC() // by its answer a Lease is older, never younger
	list, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("the API server shows no Lease of a node")
	}
	for _, l := range list.Items {
		if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
			continue
		}
		s := bundle.LeaseSample{Time: asked, Node: l.Name, Renewed: l.Spec.RenewTime.UTC(),
			Seconds: *l.Spec.LeaseDurationSeconds}
		if err := st.JSON(s); err != nil {
			return err
		}
	}
	return nil
}

// recordNodes writes down which nodes' conditions changed.
func recordNodes(ctx context.Context, client *kubernetes.Clientset, st *bundle.Stream, last nodeStatuses) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("the API server shows no node")
	}
	for _, n := range list.Items {
		if err := last.record(st, &n); err != nil {
			return err
		}
	}
	return nil
}
