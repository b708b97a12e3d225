package kind

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// layDir is where a node sees the host's folder with its files, read-only. Install mounts a replaced file from there.
const layDir = "/opt/relapse/node"

// configure returns kind's configuration for a topology, merged over its Base. It writes the nodes' files below dir,
// one folder per node. bounded says that nodes lack CAP_SYS_RESOURCE.
func configure(t cluster.Topology, dir string, bounded bool) (*v1alpha4.Cluster, error) {
	cfg := &v1alpha4.Cluster{}
	if err := yaml.UnmarshalStrict(t.Base, cfg); err != nil {
		return nil, fmt.Errorf("parsing the kind config under the topology: %w", err)
	}
	if len(t.Base) == 0 { // as kind-config.yaml has it: an assembled node image has no network of kind's
		cfg.Networking.DisableDefaultCNI = true
	}
	cfg.Kind, cfg.APIVersion = "Cluster", "kind.x-k8s.io/v1alpha4"
	if f := cfg.Networking.IPFamily; f != "" && f != v1alpha4.IPv4Family {
		return nil, fmt.Errorf(
			"the kind config wants ipFamily %s: nodes are connected over ipv4 only",
			f,
		)
	}
	names, err := nodeNames(t.Nodes)
	if err != nil {
		return nil, err
	}
	base := cfg.Nodes
	cfg.Nodes = nil
	for i, spec := range t.Nodes {
		if spec.Name != names[i] {
			return nil, fmt.Errorf(
				"node %d is named %q: kind will call it %q",
				i,
				spec.Name,
				names[i],
			)
		}
		n := takeBase(&base, spec.Role)
		spec, err := withSeams(spec)
		if err == nil {
			err = layNode(&n, spec, filepath.Join(dir, spec.Name), bounded)
		}
		if err != nil {
			return nil, fmt.Errorf("configuring node %q: %w", spec.Name, err)
		}
		cfg.Nodes = append(cfg.Nodes, n)
	}
	// Each node image has all component images, except CoreDNS's, which only some have. CoreDNS is left out everywhere,
	// so that results are equal.
	for _, v := range []string{"v1beta3", "v1beta4"} { // v1beta2 has no field skipPhases
		cfg.KubeadmConfigPatchesJSON6902 = append(cfg.KubeadmConfigPatchesJSON6902,
			patch(v, "InitConfiguration", "/skipPhases/-", `"addon/coredns"`))
	}
	if v, err := semver.ParseTolerant(t.Version); err == nil && v.GE(refusesCgroup1) {
		cfg.KubeadmConfigPatches = append(cfg.KubeadmConfigPatches, allowCgroup1)
	}
	if bounded && slices.ContainsFunc(t.Nodes, func(n cluster.NodeSpec) bool { return official(n.Image) }) {
		cfg.ContainerdConfigPatches = append(cfg.ContainerdConfigPatches, restrictOOM...)
	}
	return cfg, nil
}

// refusesCgroup1 is the first version whose kubelets don't start on cgroup v1 unless they are told to.
var refusesCgroup1 = semver.MustParse("1.35.0-0")

// allowCgroup1 tells kubelets to start on cgroup v1. It is used on any host, because it changes nothing on cgroup v2.
const allowCgroup1 = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n"

// encode returns the configuration as YAML. kind's own strict decoder reads it, so that its validation applies.
func encode(cfg *v1alpha4.Cluster) ([]byte, error) { return yaml.Marshal(cfg) }

// nodeNames returns the names that kind will give to the nodes, which follow from roles and order alone.
func nodeNames(nodes []cluster.NodeSpec) ([]string, error) {
	count := map[string]int{}
	var names []string
	for _, n := range nodes {
		if n.Role != cluster.ControlPlane && n.Role != cluster.Worker {
			return nil, fmt.Errorf(
				"node %q has the role %q: want %s or %s",
				n.Name,
				n.Role,
				cluster.ControlPlane,
				cluster.Worker,
			)
		}
		count[n.Role]++
		name := n.Role
		if count[n.Role] > 1 {
			name += fmt.Sprint(count[n.Role])
		}
		names = append(names, name)
	}
	if count[cluster.ControlPlane] == 0 {
		return nil, errors.New("the topology has no control plane")
	}
	return names, nil
}

// withSeams returns a node with the files, units and flags of its seams.
func withSeams(n cluster.NodeSpec) (cluster.NodeSpec, error) {
	for _, name := range slices.Sorted(maps.Keys(n.Seams)) {
		s, err := kinds.Make[seam.Seam](kinds.Seam, name)
		if err != nil {
			return n, err
		}
		if err := seam.Install(&n, s, n.Seams[name]); err != nil {
			return n, err
		}
	}
	return n, nil
}

// takeBase removes the first node of the role from base and returns it, or returns a new node if base has none.
func takeBase(base *[]v1alpha4.Node, role string) v1alpha4.Node {
	i := slices.IndexFunc(*base, func(n v1alpha4.Node) bool {
		return string(n.Role) == role || n.Role == "" && role == cluster.ControlPlane
	})
	if i < 0 {
		return v1alpha4.Node{Role: v1alpha4.NodeRole(role)}
	}
	n := (*base)[i]
	*base = slices.Delete(slices.Clone(*base), i, i+1)
	n.Role = v1alpha4.NodeRole(role)
	return n
}

func layNode(n *v1alpha4.Node, spec cluster.NodeSpec, dir string, bounded bool) error {
	n.Image = spec.Image
	for k, v := range spec.Labels {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[k] = v
	}
	programs, err := layPrograms(n, spec)
	if err != nil {
		return err
	}
	files := slices.Concat(spec.Files, programs, unitFiles(spec.Units), cgroupFiles(spec.Image))
	if bounded && official(spec.Image) {
		files = append(files, cluster.File{Path: "/etc/systemd/system/containerd.service",
			Content: []byte(boundedContainerd),
			Mode:    0o644})
	}
	if err := writeFiles(dir, files); err != nil {
		return err
	}
	n.ExtraMounts = append(
		n.ExtraMounts,
		v1alpha4.Mount{HostPath: dir, ContainerPath: layDir, Readonly: true},
	)
	for _, f := range files {
		n.ExtraMounts = append(
			n.ExtraMounts,
			v1alpha4.Mount{HostPath: hostPath(dir, f.Path), ContainerPath: f.Path,
				Readonly: true},
		)
	}
	return layArgs(n, spec)
}

// unitFiles returns the units as files. It adds a drop-in of the default target that wants each unit, except those that
// are drop-ins themselves: so a mounted file is all it takes to enable them.
func unitFiles(units []cluster.Unit) []cluster.File {
	const system = "/etc/systemd/system"
	var files []cluster.File
	var wanted []string
	for _, u := range units {
		at := path.Join(system, u.Name)
		if u.DropIn != "" {
			at = path.Join(system, u.Name+".d", u.DropIn)
		} else {
			wanted = append(wanted, u.Name)
		}
		files = append(files, cluster.File{Path: at, Content: []byte(u.Content), Mode: 0o644})
	}
	if len(wanted) > 0 {
		files = append(
			files,
			cluster.File{Path: path.Join(system, "multi-user.target.d", "10-relapse-units.conf"),
				Mode:    0o644,
				Content: []byte("[Unit]\nWants=" + strings.Join(wanted, " ") + "\n")},
		)
	}
	return files
}

// official reports whether an image is a node image of the kind project, by its reference. Official images expect
// CAP_SYS_RESOURCE; assembled ones are made to do without.
func official(image string) bool {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	return name == "kindest/node" || strings.HasSuffix(name, "/kindest/node")
}

// restrictOOM lists patches that make containerd 1.x and 2.x keep OOM scores within what a node without
// CAP_SYS_RESOURCE may set. kind applies the patch that has the version of containerd's configuration.
var restrictOOM = []string{
	"version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n",
	"version = 3\n[plugins.\"io.containerd.cri.v1.runtime\"]\n  restrict_oom_score_adj = true\n",
}

// boundedContainerd replaces containerd's unit in official images. Without CAP_SYS_RESOURCE, systemd may not set that
// unit's limits and OOM score.
const boundedContainerd = `[Unit]
Description=containerd container runtime, without raised limits
After=network.target local-fs.target
StartLimitIntervalSec=0

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=1
TasksMax=infinity

[Install]
WantedBy=multi-user.target
`
