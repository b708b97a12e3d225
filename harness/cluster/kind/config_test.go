package kind

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/kube-relapse/relapse/harness/cluster"
	_ "github.com/kube-relapse/relapse/scenarios"
)

const base = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking: {disableDefaultCNI: true}
nodes:
- role: control-plane
- role: worker
  labels: {base: "yes"}
- role: worker
`

func three(change func(*cluster.Topology)) cluster.Topology {
	t := cluster.Topology{Base: []byte(base), Nodes: []cluster.NodeSpec{
		{Name: "control-plane", Role: cluster.ControlPlane, Image: "relapse/node:1"},
		{Name: "worker", Role: cluster.Worker, Image: "relapse/node:1"},
		{Name: "worker2", Role: cluster.Worker, Image: "relapse/node:2"},
	}}
	if change != nil {
		change(&t)
	}
	return t
}

func TestConfigureRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*cluster.Topology)
	}{
		{`unknown field "nodez"`, func(t *cluster.Topology) { t.Base = []byte("nodez: []") }},
		{`node 1 is named "other": kind will call it "worker"`, func(t *cluster.Topology) { t.Nodes[1].Name = "other" }},
		{`node "worker" has the role "boss": want control-plane or worker`,
			func(t *cluster.Topology) { t.Nodes[1].Role = "boss" }},
		{`the topology has no control plane`, func(t *cluster.Topology) { t.Nodes = t.Nodes[1:] }},
		{`the kind config wants ipFamily ipv6: nodes are connected over ipv4 only`,
			func(t *cluster.Topology) { t.Base = []byte("networking: {ipFamily: ipv6}") }},
		{`configuring node "worker": the file "relative": want a clean absolute path`,
			func(t *cluster.Topology) { t.Nodes[1].Files = []cluster.File{{Path: "relative"}} }},
		{`configuring node "worker": the file "/a" is given twice`,
			func(t *cluster.Topology) { t.Nodes[1].Files = []cluster.File{{Path: "/a"}, {Path: "/a"}} }},
		{`flags for "kube-apiserver" on a worker: it runs on the control plane only`, func(t *cluster.Topology) {
			t.Nodes[1].Args = map[string]map[string]string{"kube-apiserver": {"v": "1"}}
		}},
		{`flags for "kubelt": want one of ["cloud-controller-manager" "etcd" "kube-apiserver" "kube-controller-manager" "kube-proxy" "kube-scheduler" "kubelet"]`, func(t *cluster.Topology) {
			t.Nodes[1].Args = map[string]map[string]string{"kubelt": {"v": "1"}}
		}},
		{`flags for "kube-proxy" on a worker: its configuration is one for the whole cluster, and the control plane's to have`, func(t *cluster.Topology) {
			t.Nodes[1].Args = map[string]map[string]string{"kube-proxy": {"mode": "ipvs"}}
		}},
		{`flags for "kube-proxy": the value of mode: `, func(t *cluster.Topology) {
			t.Nodes[0].Args = map[string]map[string]string{"kube-proxy": {"mode": "[ipvs"}}
		}},
		{`flags for "kube-proxy": setting mode.name: value cannot be set because .mode is not a map`,
			func(t *cluster.Topology) {
				t.Nodes[0].Args = map[string]map[string]string{"kube-proxy": {"mode": "ipvs", "mode.name": "x"}}
			}},
		{`flags for "cloud-controller-manager": it runs only where it is given a program`, func(t *cluster.Topology) {
			t.Nodes[0].Args = map[string]map[string]string{"cloud-controller-manager": {"v": "4"}}
		}},
		{`a program for "kube-scheduler" on a worker: it runs on the control plane only`, func(t *cluster.Topology) {
			t.Nodes[1].Programs = map[string]string{"kube-scheduler": "/built"}
		}},
		{`a program for "etcd": want one of ["cloud-controller-manager" "kube-apiserver" "kube-controller-manager" "kube-proxy" "kube-scheduler" "kubelet"]`,
			func(t *cluster.Topology) {
				t.Nodes[0].Programs = map[string]string{"etcd": "/built"}
			}},
		{`a program for "cloud-controller-manager" on a worker: it runs on the control plane only`, func(t *cluster.Topology) {
			t.Nodes[1].Programs = map[string]string{"cloud-controller-manager": "/built"}
		}},
	} {
		_, err := configure(three(c.change), t.TempDir(), false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// A topology without a base of its own, as tests of others have, gets the network that every image can have.
func TestConfigureWithoutABase(t *testing.T) {
	for base, own := range map[string]bool{"": true, "networking: {apiServerAddress: 127.0.0.1}": false} {
		cfg, err := configure(three(func(t *cluster.Topology) { t.Base = []byte(base) }), t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Networking.DisableDefaultCNI != own {
			t.Errorf("with the base %q the network is relapse's own: %t, want %t", base, !own, own)
		}
	}
}

func TestConfigureLays(t *testing.T) {
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "built")
	if err := os.WriteFile(program, []byte("elf"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configure(three(func(t *cluster.Topology) {
		t.Nodes[1].Labels = map[string]string{"arm": "one"}
		t.Nodes[1].Programs = map[string]string{"kubelet": program}
		t.Nodes[1].Units = []cluster.Unit{{Name: "proxy.service", Content: "[Service]\n"},
			{Name: "kubelet.service", DropIn: "20-x.conf", Content: "[Unit]\n"}}
		t.Nodes[1].Args = map[string]map[string]string{"kubelet": {"v": "3"}}
	}), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	w := cfg.Nodes[1]
	if w.Labels["arm"] != "one" || w.Labels["base"] != "yes" || w.Image != "relapse/node:1" ||
		cfg.Nodes[2].Image != "relapse/node:2" {
		t.Errorf("the worker is %+v", w)
	}
	for _, at := range []string{"/usr/bin/kubelet", "/etc/systemd/system/proxy.service",
		"/etc/systemd/system/kubelet.service.d/20-x.conf",
		"/etc/systemd/system/multi-user.target.d/10-relapse-units.conf"} {
		i := slices.IndexFunc(w.ExtraMounts, func(m v1alpha4.Mount) bool { return m.ContainerPath == at })
		if i < 0 || !w.ExtraMounts[i].Readonly {
			t.Errorf("%s is not mounted, or not read-only", at)
			continue
		}
		if _, err := os.Stat(w.ExtraMounts[i].HostPath); err != nil {
			t.Error(err)
		}
	}
	wants, err := os.ReadFile(filepath.Join(dir, "worker", "root",
		"etc/systemd/system/multi-user.target.d/10-relapse-units.conf"))
	if err != nil || string(wants) != "[Unit]\nWants=proxy.service\n" {
		t.Errorf("what is wanted: %q, %v; a drop-in is no unit", wants, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "worker", "root", "usr/bin/kubelet")); err != nil ||
		info.Mode().Perm() != 0o755 {
		t.Errorf("the kubelet is %v, %v", info, err)
	}
	if len(cfg.ContainerdConfigPatches) != 0 {
		t.Error("containerd is patched where nodes are not bounded")
	}
}

// The flags are there in each form that kind's documents have, and in no other.
// kube-proxy has a configuration instead of flags, with numbers, lists and fields within fields.
func TestArgsOfAConfiguration(t *testing.T) {
	n := v1alpha4.Node{}
	err := layArgs(&n, cluster.NodeSpec{Role: cluster.ControlPlane, Args: map[string]map[string]string{"kube-proxy": {
		"nodePortAddresses": "[192.0.2.1/32]", "conntrack.maxPerCore": "0", "iptables.syncPeriod": "30s",
		"enableProfiling": "true",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: kubeproxy.config.k8s.io/v1alpha1
conntrack:
  maxPerCore: 0
enableProfiling: true
iptables:
  syncPeriod: 30s
kind: KubeProxyConfiguration
nodePortAddresses:
- 192.0.2.1/32
`
	if len(n.KubeadmConfigPatches) != 1 || n.KubeadmConfigPatches[0] != want || len(n.KubeadmConfigPatchesJSON6902) > 0 {
		t.Errorf("got %q, %+v", n.KubeadmConfigPatches, n.KubeadmConfigPatchesJSON6902)
	}
}

func TestArgsInEveryVersion(t *testing.T) {
	n := v1alpha4.Node{}
	if err := layArgs(&n, cluster.NodeSpec{Role: cluster.Worker,
		Args: map[string]map[string]string{"kubelet": {"b": "2", "a": "1"}}}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, kind := range []string{"InitConfiguration", "JoinConfiguration"} {
		for _, v := range []string{"v1beta2", "v1beta3"} {
			want = append(want, "apiVersion: kubeadm.k8s.io/"+v+"\nkind: "+kind+
				"\nnodeRegistration:\n  kubeletExtraArgs:\n    a: \"1\"\n    b: \"2\"\n")
		}
	}
	if !slices.Equal(n.KubeadmConfigPatches, want) {
		t.Errorf("got %q\nwant %q", n.KubeadmConfigPatches, want)
	}
	var patches []string
	for _, p := range n.KubeadmConfigPatchesJSON6902 {
		if p.Group != "kubeadm.k8s.io" || p.Version != "v1beta4" || !json.Valid([]byte(p.Patch)) {
			t.Errorf("the patch %+v", p)
		}
		patches = append(patches, p.Kind+p.Patch)
	}
	if len(patches) != 4 || patches[0] != `InitConfiguration[{"op":"add","path":"/nodeRegistration/kubeletExtraArgs/-","value":{"name":"a","value":"1"}}]` {
		t.Errorf("the patches are %q", patches)
	}
}

// A component's own files are in a folder that its container may write to, beside the program that it has of its own; a
// flag that names one has its path.
func TestConfigureLaysOwnFiles(t *testing.T) {
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "built")
	if err := os.WriteFile(program, []byte("elf"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := map[string]map[string]string{"kube-apiserver": {"policy.yaml": "rules: []\n", "audit.log": ""},
		"kube-scheduler": {"config.yaml": "kubeconfig: $(kubeconfig)\n"}}
	cfg, err := configure(three(func(t *cluster.Topology) {
		t.Nodes[0].Programs = map[string]string{"kube-apiserver": program}
		t.Nodes[0].OwnFiles = own
		t.Nodes[0].Args = map[string]map[string]string{"kube-apiserver": {"audit-policy-file": "policy.yaml", "audit-log-path": "audit.log", "v": "2"}}
	}), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	n := cfg.Nodes[0]
	for _, want := range []string{
		"apiServer:\n  extraVolumes:\n  - hostPath: /opt/relapse/subject/kube-apiserver\n    mountPath: /usr/local/bin/kube-apiserver\n    name: relapse-0\n    pathType: File\n    readOnly: true\n" +
			"  - hostPath: /var/lib/relapse/kube-apiserver\n    mountPath: /var/lib/relapse/kube-apiserver\n    name: relapse-1\n    pathType: DirectoryOrCreate\napiVersion: kubeadm.k8s.io/v1beta4\n",
		"    audit-log-path: /var/lib/relapse/kube-apiserver/audit.log\n    audit-policy-file: /var/lib/relapse/kube-apiserver/policy.yaml\n    v: \"2\"\n",
	} {
		if !slices.ContainsFunc(n.KubeadmConfigPatches, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("no patch has %q:\n%s", want, strings.Join(n.KubeadmConfigPatches, "---\n"))
		}
	}
	var mounted []string
	for _, m := range n.ExtraMounts {
		mounted = append(mounted, m.ContainerPath)
		if m.ContainerPath != "/var/lib/relapse/kube-scheduler/config.yaml" {
			continue
		}
		if text, err := os.ReadFile(m.HostPath); err != nil || string(text) != "kubeconfig: /etc/kubernetes/scheduler.conf\n" {
			t.Errorf("the scheduler's own file says %q: %v", text, err)
		}
	}
	if !slices.Contains(mounted, "/var/lib/relapse/kube-scheduler/config.yaml") {
		t.Errorf("mounted are %q, without the scheduler's configuration", mounted)
	}
	if !slices.Contains(mounted, "/var/lib/relapse/kube-apiserver/policy.yaml") || slices.Contains(mounted, "/var/lib/relapse/kube-apiserver/audit.log") {
		t.Errorf("mounted are %q, want the policy, and not the log, which the API server writes", mounted)
	}
	_, err = configure(three(func(t *cluster.Topology) { t.Nodes[1].OwnFiles = own }), t.TempDir(), false)
	if want := `files for "kube-apiserver" on a worker: want a static pod of a control plane, other than etcd`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("on a worker: %v, want %s", err, want)
	}
}

func TestBoundedOfficialImage(t *testing.T) {
	cfg, err := configure(three(func(t *cluster.Topology) { t.Nodes[2].Image = "docker.io/kindest/node:v1.34.4@sha256:00" }), t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	own := func(n v1alpha4.Node) bool {
		return slices.ContainsFunc(n.ExtraMounts,
			func(m v1alpha4.Mount) bool { return m.ContainerPath == "/etc/systemd/system/containerd.service" })
	}
	if len(cfg.ContainerdConfigPatches) != 2 || !own(cfg.Nodes[2]) || own(cfg.Nodes[1]) {
		t.Error("want both containerd patches, and the unit on the official node only")
	}
}

func TestOfficial(t *testing.T) {
	for image, want := range map[string]bool{
		"kindest/node:v1.34.4": true, "kindest/node@sha256:00": true, "127.0.0.1:5000/kindest/node:v1": true,
		"relapse/node:v1.34.4": false, "relapse/kindest-node:v1": false, "kindest/node-extra:v1": false,
	} {
		if got := official(image); got != want {
			t.Errorf("%s: %v, want %v", image, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{"relapse-1a": true, "relapse-a-b": true, "kind": false, "relapse-": false,
		"relapse-A":  false,
		"relapse-a-": false, "other-relapse-a": false, "relapse-" + strings.Repeat("a", 43): false} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A seam is its files, units and flags, on the node that has it.
func TestConfigureLaysSeams(t *testing.T) {
	dir, proxy := t.TempDir(), filepath.Join(t.TempDir(), "proxy")
	if err := os.WriteFile(proxy, []byte("elf"), 0o600); err != nil {
		t.Fatal(err)
	}
	top := three(func(t *cluster.Topology) { t.Nodes[0].Seams = map[string]string{"etcd": proxy} })
	cfg, err := configure(top, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "control-plane", "root", "usr/local/bin/relapse-etcd")); err != nil ||
		string(b) != "elf" {
		t.Errorf("the proxy is %q, %v", b, err)
	}
	if all := strings.Join(cfg.Nodes[0].KubeadmConfigPatches, "\n"); !strings.Contains(all,
		"etcd-servers: https://127.0.0.1:12379") {
		t.Errorf("kube-apiserver is not led through it: %s", all)
	}
	top.Nodes[0].Args = map[string]map[string]string{"kube-apiserver": {"etcd-servers": "https://other"}}
	_, err = configure(top, t.TempDir(), false)
	if want := `configuring node "control-plane": installing a seam in node "control-plane": kube-apiserver has --etcd-servers=https://other already`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Kubelets that refuse cgroup v1 by themselves are told to start there; older ones aren't told what they may not know.
func TestConfigureAllowsCgroup1(t *testing.T) {
	for version, told := range map[string]bool{"v1.34.4": false, "v1.35.0": true, "v1.36.3": true} {
		top := three(func(t *cluster.Topology) { t.Version = version })
		cfg, err := configure(top, t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(cfg.KubeadmConfigPatches, allowCgroup1); got != told {
			t.Errorf("%s is told: %v", version, got)
		}
	}
}
