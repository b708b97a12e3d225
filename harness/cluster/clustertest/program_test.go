package clustertest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/clustertest"
)

// What a component runs is the file at the place of its executable, as it was when the component was started.
func TestComponentsRunWhatIsInstalled(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const mounted = "/opt/kube-apiserver"
	c := clustertest.New("fake", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane,
		Files:  []cluster.File{{Path: "/usr/bin/kubelet", Source: filepath.Join(dir, "one")}, {Path: mounted, Source: filepath.Join(dir, "one")}},
		Mounts: map[string]map[string]string{"kube-apiserver": {"/usr/local/bin/kube-apiserver": mounted}},
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
	if err := c.Node("control-plane").Install(t.Context(), mounted, filepath.Join(dir, "two")); err != nil {
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
