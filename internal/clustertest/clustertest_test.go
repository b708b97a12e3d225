package clustertest_test

import (
	"bufio"
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

func topology() cluster.Topology {
	laid := []cluster.File{{Path: clustertest.InstalledPath, Content: []byte(clustertest.InstalledContent)}}
	return cluster.Topology{Version: "v1.34.4", Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane, Files: laid},
		{Name: "worker", Role: cluster.Worker, Arm: "one", Files: laid},
		{Name: "worker2", Role: cluster.Worker, Arm: "two", Files: laid},
	}}
}

func newFake(t *testing.T) *clustertest.Cluster {
	t.Helper()
	c := clustertest.New("fake", topology())
	t.Cleanup(c.Close)
	return c
}

func TestConformance(t *testing.T) { conforms(t, &clustertest.Provider{}) }

func TestConformanceThroughPipes(t *testing.T) { conforms(t, &clustertest.Provider{InProcess: true}) }

func conforms(t *testing.T, p *clustertest.Provider) {
	t.Helper()
	p.Made = func(c *clustertest.Cluster) error {
		c.Component("worker2", "kubelet").Log(`{"MESSAGE":"I was started"}`)
		return nil
	}
	caps, err := p.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the suite's own clean-up
		if left := p.Clusters(); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	clustertest.ProviderConformance(t, p, "fake", topology(), func(t *testing.T, c cluster.Cluster) {
		clustertest.Conformance(t, c, caps, topology())
	})
}

var _ cluster.Provider = &clustertest.Provider{}

// Informers list, watch and see what changes.
func TestInformers(t *testing.T) {
	c := newFake(t)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	conditions, events := make(chan corev1.NodeCondition, 100), make(chan string, 100)
	f := informers.NewSharedInformerFactory(client, 0)
	on := func(o any) {
		if n := o.(*corev1.Node); n.Name == "fake-worker" {
			conditions <- n.Status.Conditions[0]
		}
	}
	if _, err := f.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: on,
		UpdateFunc: func(_, o any) { on(o) }}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Core().V1().Events().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { events <- o.(*corev1.Event).Reason }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer f.Shutdown()
	defer cancel()
	f.Start(ctx.Done())
	for typ, ok := range f.WaitForCacheSync(ctx.Done()) {
		if !ok {
			t.Fatalf("%v has no cache", typ)
		}
	}
	c.API().SetCondition("fake-worker", corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: "KubeletNotReady"})
	c.API().AddEvent(&corev1.Event{Reason: "NodeNotReady"})
	for _, want := range []string{"KubeletReady", "KubeletNotReady"} {
		if got := recv(t, conditions).Reason; got != want {
			t.Errorf("the condition's reason is %q, want %q", got, want)
		}
	}
	if got := recv(t, events); got != "NodeNotReady" {
		t.Errorf("the event's reason is %q", got)
	}
}

func recv[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came within 10s")
	}
	return v
}

func TestWaitReady(t *testing.T) {
	c := newFake(t)
	client, err := klient.New(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"fake-control-plane", "fake-worker", "fake-worker2"}
	if err := cluster.WaitReady(t.Context(), client, all, 10*time.Second); err != nil {
		t.Error(err)
	}
	c.API().SetCondition("fake-worker", corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: "KubeletNotReady", Message: "PLEG is not healthy"})
	done := make(chan error, 1)
	go func() { done <- cluster.WaitReady(t.Context(), client, all, 10*time.Second) }()
	c.API().SetCondition("fake-worker", corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
	if err := recv(t, done); err != nil {
		t.Errorf("a node that got Ready in time: %v", err)
	}

	c.API().SetCondition("fake-worker", corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: "KubeletNotReady", Message: "PLEG is not healthy"})
	err = cluster.WaitReady(t.Context(), client, []string{"fake-worker", "elsewhere"}, time.Second)
	want := "nodes not Ready after 1s: fake-worker was Ready=False (KubeletNotReady: PLEG is not healthy); elsewhere was not there"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = cluster.WaitReady(ctx, client, []string{"fake-worker"}, time.Second)
	if want := "waiting for nodes fake-worker to be Ready: context canceled"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	err = cluster.WaitReady(t.Context(), client, nil, time.Second)
	if want := "waiting for nodes to be Ready: no nodes were named"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestScripts(t *testing.T) {
	c := newFake(t)
	k, n := c.Component("worker", "kubelet"), c.Node("worker")
	k.Say("/metrics", "a 1\n")
	k.Log("first")
	r, err := k.Logs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	for _, want := range []string{"first", "second"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("the log says %q, %v; want %q", lines.Text(), lines.Err(), want)
		}
		k.Log("second")
	}
	if _, err := n.Exec(t.Context(), nil, "relapse-cri", "probe"); err == nil {
		t.Error("a command that nobody gave runs")
	}
	// The node proxy and the component are one and the same.
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	b, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/fake-worker/proxy/metrics").DoRaw(t.Context())
	if err != nil || string(b) != "a 1\n" {
		t.Errorf("through the proxy: %q, %v", b, err)
	}
}
