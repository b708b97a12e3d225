package processes

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Where kwok's controller is built from, and its name among the cluster's processes. It runs as a separate program,
// because its library wants a newer client-go than ours.
const (
	kwok        = "kwok"
	kwokModule  = "sigs.k8s.io/kwok"
	kwokVersion = "v0.8.0"
	kwokPackage = kwokModule + "/cmd/kwok"
)

// kwokStages tell kwok what to do to nodes and pods.
//
//go:embed kwok.yaml
var kwokStages []byte

// kwokFlags returns the flags with which kwok stands in for the kubelet of each Node object. Leases are valid for as
// long as a kubelet's.
func (l *layout) kwokFlags() map[string]string {
	return map[string]string{
		"kubeconfig": l.path(kwokConfig), "config": l.path(kwokStagesFile), "manage-all-nodes": "true",
		"node-lease-duration-seconds": "40", "server-address": loopback(l.ports[kwok]),
		"tls-cert-file": l.certificate(kwokClient), "tls-private-key-file": l.key(kwokClient),
	}
}

// simulatedNames returns the names of a cluster's simulated Node objects.
func simulatedNames(name string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-simulated-%d", name, i+1)
	}
	return out
}

// migratedPlugins lists the in-tree volume plugins that every kubelet from v1.26 on reports as migrated to CSI.
const migratedPlugins = "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file," +
	"kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/vsphere-volume"

const (
	// simulatedTime is how long kwok may take to report the nodes Ready.
	simulatedTime = time.Minute
	// simulatedAtOnce is how many nodes are made at once.
	simulatedAtOnce = 8
)

// simulate makes the Node objects, and for each the CSINode that a kubelet would make. Then it waits until kwok has
// reported all nodes Ready.
func (c *Cluster) simulate(ctx context.Context, labels map[string]string) error {
	names := c.node().simulated
	if len(names) == 0 {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.rest)
	if err != nil {
		return err
	}
	g, making := errgroup.WithContext(ctx)
	g.SetLimit(simulatedAtOnce)
	for i, name := range names {
		g.Go(func() error { return makeNode(making, client, name, i, labels) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("making the simulated nodes: %w", err)
	}
	look, err := klient.New(c.rest)
	if err != nil {
		return err
	}
	if err := cluster.WaitReady(ctx, look, names, simulatedTime); err != nil {
		return fmt.Errorf("waiting for the simulated nodes: %w; kwok's last lines:\n%s", err,
			lastLines(logs(c.home, metav1.NamespaceSystem, c.node().name, kwok), 1, 10))
	}
	return nil
}

// makeNode makes the i-th Node object, with a range of addresses for its pods, and its CSINode.
func makeNode(
	ctx context.Context,
	client kubernetes.Interface,
	name string,
	i int,
	labels map[string]string,
) error {
	cidr := fmt.Sprintf("10.%d.%d.0/24", 128+i/256%128, i%256)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{corev1.LabelHostname: name,
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "type": kwok},
		},
		Spec: corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}},
	}
	maps.Copy(node.Labels, labels)
	made, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Annotations: map[string]string{corev1.MigratedPluginsAnnotationKey: migratedPlugins},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: name, UID: made.UID},
		},
	}}
	_, err = client.StorageV1().CSINodes().Create(ctx, csi, metav1.CreateOptions{})
	return err
}

// Objects returns the names of the Node objects, all of which kwok simulates.
func (n *Node) Objects() []string { return n.simulated }
