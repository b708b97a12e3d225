package kinds

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "leases",
		Doc: "The Lease and the Ready condition of every node, every 2s.\n\n" +
			"A Lease is recorded each time, because a Lease that stands still must be visible. A condition is " +
			"recorded when it changes. The collector asks for both instead of watching them: an answer tells a node " +
			"without news from an API server that is dead.",
		Example: "name: leases\nkind: leases\n",
		New:     func() capture.Collector { return &Leases{} },
	})
}

// leasesEvery is how often leases and nodes are listed: nodes renew every ten seconds.
const leasesEvery = 2 * time.Second

// Leases collects what tells a cluster that its nodes are alive: their Leases and Ready conditions.
type Leases struct{}

// Makes returns the kinds of artifacts that the collector records: Leases and node conditions, of all nodes.
func (*Leases) Makes() []bundle.Kind { return []bundle.Kind{bundle.Leases, bundle.Nodes} }

// NeedsKubelets returns true: without kubelets there is nothing to record.
func (*Leases) NeedsKubelets() bool { return true }

// ClusterWide returns true: a node need not belong to an arm.
func (*Leases) ClusterWide() bool { return true }

// Stream lists Leases and nodes until ctx ends, independently of each other: a late answer to one is no gap in the
// other.
func (*Leases) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	client, err := kubernetes.NewForConfig(t.Cluster.RESTConfig())
	if err != nil {
		return err
	}
	leases, err := w.Stream(t.Meta(bundle.Leases), "jsonl")
	if err != nil {
		return err
	}
	nodes, err := w.Stream(t.Meta(bundle.Nodes), "jsonl")
	if err != nil {
		return errors.Join(err, leases.Close())
	}
	last := collectors.NodeStatuses{}
	var both sync.WaitGroup
	both.Go(func() {
		collectors.Follow(
			ctx,
			leasesEvery,
			leases,
			func(ctx context.Context) error { return recordLeases(ctx, client, leases) },
		)
	})
	both.Go(func() {
		collectors.Follow(ctx, leasesEvery, nodes,
			func(ctx context.Context) error { return recordNodes(ctx, client, nodes, last) })
	})
	both.Wait()
	return errors.Join(leases.Close(), nodes.Close())
}

// recordLeases records the Lease of every node. A Lease without a time or a duration is left out, like a missing one.
func recordLeases(ctx context.Context, client *kubernetes.Clientset, st *bundle.Stream) error {
	asked := time.Now().UTC() // before the answer: by then a Lease is older, never younger
	list, err := client.CoordinationV1().
		Leases(corev1.NamespaceNodeLease).
		List(ctx, metav1.ListOptions{})
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

// recordNodes records the nodes whose Ready condition has changed.
func recordNodes(
	ctx context.Context,
	client *kubernetes.Clientset,
	st *bundle.Stream,
	last collectors.NodeStatuses,
) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("the API server shows no node")
	}
	for _, n := range list.Items {
		if err := last.Record(st, &n); err != nil {
			return err
		}
	}
	return nil
}
