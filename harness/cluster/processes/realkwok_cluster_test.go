//go:build cluster

package processes_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// The scheduler binds a thousand pods to fifty nodes that kwok simulates, and they are said to run.
func TestRealSimulatedNodes(t *testing.T) {
	const nodes, pods = 50, 1000
	top := topology(nil)
	top.Simulated, top.Nodes[0].Labels = nodes, map[string]string{"relapse.dev/arm": "one"}
	p, _ := preparedFor(t, top)
	t.Cleanup(func() {
		if err := p.Delete(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	c, err := p.Create(t.Context(), name, top)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("with %d nodes created in %s", nodes, time.Since(began))
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "relapse.dev/arm=one"})
	if err != nil || len(list.Items) != nodes {
		t.Fatalf("there are %d nodes, %v; want %d", len(list.Items), err, nodes)
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	simulated := slices.Sorted(slices.Values(c.Nodes()[0].Objects()))
	if !slices.Equal(names, simulated) {
		t.Errorf("the nodes are %q, and said to be %q", names, simulated)
	}
	began = time.Now()
	makePods(t, client, pods)
	var running int
	for deadline := time.Now().Add(12 * time.Minute); running < pods && time.Now().Before(deadline); time.Sleep(time.Second) {
		got, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		running = 0
		for _, pod := range got.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName != "" && pod.Status.PodIP != "" {
				running++
			}
		}
	}
	if running != pods {
		t.Errorf("%d of %d pods are said to run", running, pods)
	}
	t.Logf("%d pods were created, bound and said to run in %s", pods, time.Since(began))
	logMemory(t, filepath.Dir(c.Nodes()[0].Abilities().LogFolder()))
	csiNodes(t, c, client)
}

// makePods creates pods with nothing in them, twenty at once.
func makePods(t *testing.T, client kubernetes.Interface, n int) {
	t.Helper()
	until(t, func() error { // the controller manager makes it
		_, err := client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	errs := make(chan error, n)
	turn := make(chan struct{}, 20)
	for i := range n {
		turn <- struct{}{}
		go func() {
			defer func() { <-turn }()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i)},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none.invalid/none"}}}}
			_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

// logMemory says what each process of a cluster holds.
func logMemory(t *testing.T, home string) {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		argv, err := one.CmdLine()
		stat, serr := one.Stat()
		if err == nil && serr == nil && len(argv) > 0 && strings.HasPrefix(argv[0], home) {
			t.Logf("%s holds %d MiB and has used %.1f s of CPU", filepath.Base(argv[0]), stat.ResidentMemory()>>20,
				stat.CPUTime())
		}
	}
}

// csiNodes has all CSINodes of the simulated nodes go, and come back as they were.
func csiNodes(t *testing.T, c cluster.Cluster, client kubernetes.Interface) {
	t.Helper()
	count := func() int {
		t.Helper()
		list, err := client.StorageV1().CSINodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list.Items {
			if !strings.Contains(n.Annotations[corev1.MigratedPluginsAnnotationKey], "kubernetes.io/gce-pd") {
				t.Errorf("the CSINode %s has the annotations %q", n.Name, n.Annotations)
			}
		}
		return len(list.Items)
	}
	before := count()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, "objects", []byte(
		`{"verb":"delete","manifests":[{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"$(node)"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	target := fault.Target{Run: "run", Name: "lost", Cluster: c, Nodes: c.Nodes(), Expires: time.Minute,
		Events: event.NewStream()}
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	lost := count()
	if err := f.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if after := count(); before != len(c.Nodes()[0].Objects()) || lost != 0 || after != before {
		t.Errorf("there were %d CSINodes, then %d, and %d in the end", before, lost, after)
	}
}
