package clustertest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// What a component runs is the program that the topology gave it, as it was when the component was started.
func TestComponentsRunWhatIsInstalled(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := clustertest.New("fake", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane",
		Role:     cluster.ControlPlane,
		Programs: map[string]string{"kubelet": filepath.Join(dir, "one"), "kube-apiserver": filepath.Join(dir, "one")},
	}}})
	t.Cleanup(c.Close)
	digest := func(name string) string {
		id, err := c.Component("control-plane", name).Identity(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		return id.SHA256
	}
	one := digest("kubelet")
	if one != digest("kube-apiserver") || one == digest("etcd") {
		t.Errorf("they run %s, %s and %s", one, digest("kube-apiserver"), digest("etcd"))
	}
	if err := c.Node("control-plane").Install(t.Context(), "kube-apiserver", filepath.Join(dir, "two")); err != nil {
		t.Fatal(err)
	}
	if digest("kube-apiserver") != one {
		t.Error("it runs another program before it was restarted")
	}
	if err := c.Component("control-plane", "kube-apiserver").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if digest("kube-apiserver") == one || digest("kubelet") != one {
		t.Error("it runs the old program after it was restarted, or another one does not")
	}
}
