//go:build cluster

package kind_test

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/provider"
	"github.com/kube-relapse/relapse/harness/provider/kind"
)

func topology(t *testing.T, name string) cluster.Topology {
	t.Helper()
	image := os.Getenv("RELAPSE_NODE_IMAGE")
	if image == "" {
		t.Fatal("RELAPSE_NODE_IMAGE names no node image")
	}
	base, err := os.ReadFile("../../../kind-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Topology{Version: "v1.34.4", Base: base, Network: name, Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane, Image: image},
		{Name: "worker", Role: cluster.Worker, Image: image, Cell: "one"},
		{Name: "worker2", Role: cluster.Worker, Image: image, Cell: "two"},
	}}
}

func TestSmoke(t *testing.T) {
	start := time.Now()
	ev := event.NewStream(event.SinkFunc(func(e event.Event) { t.Log(time.Since(start).Round(time.Millisecond), e.Type, e.Message) }))
	p, err := kind.New(kind.Options{Dir: t.TempDir(), Events: ev})
	if err != nil {
		t.Fatal(err)
	}
	name := "relapse-smoke"
	t.Cleanup(func() {
		if err := p.Delete(context.Background(), name); err != nil {
			t.Error(err)
		}
		t.Log("deleted", time.Since(start))
	})
	c, err := p.Create(t.Context(), name, topology(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Log("created", time.Since(start))
	client, err := klient.New(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range c.Nodes() {
		names = append(names, n.Name())
	}
	if err := provider.WaitReady(t.Context(), client, names, time.Minute); err != nil {
		t.Error(err)
	}
	t.Log("ready", time.Since(start))
	for _, k := range c.Components("kubelet") {
		id, err := k.(cluster.Identifier).Identity(t.Context(), true)
		t.Log(k.Node().Name(), id, err)
		r, err := k.Get(t.Context(), "/debug/pprof/goroutine?debug=1")
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := io.ReadAll(r)
		t.Log(len(b), err)
	}
}
