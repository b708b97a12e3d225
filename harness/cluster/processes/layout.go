package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// record is what a cluster's folder says about the cluster.
type record struct {
	Node      cluster.NodeSpec `json:"node"` // name, role, arm, labels and seams
	Ports     map[string]int   `json:"ports"`
	Simulated int              `json:"simulated"` // the number of simulated nodes
}

// layout says where a cluster that is being made has its files and ports.
type layout struct {
	home, node string
	ports      map[string]int // of each component, and of etcd's peers and metrics
}

// The names of etcd's ports in addition to that of its clients.
const (
	etcdPeers   = "etcd-peers"
	etcdMetrics = "etcd-metrics"
)

// onlyNode returns the topology's one node, with a program for each component: the node's own, or else the one that was
// prepared. It returns an error if processes can't be made of the topology.
func onlyNode(t cluster.Topology, prepared map[string]string) (spec cluster.NodeSpec, err error) {
	if len(t.Nodes) != 1 || t.Nodes[0].Role != cluster.ControlPlane {
		return spec, fmt.Errorf(
			"the topology has %d nodes: want one control plane, as there is no kubelet, and others only "+
				"simulated",
			len(t.Nodes),
		)
	}
	spec = t.Nodes[0]
	if len(spec.Files)+len(spec.Units) > 0 {
		return spec, fmt.Errorf("node %q has files or units: it is no machine", spec.Name)
	}
	programs := maps.Clone(prepared)
	if programs == nil {
		programs = map[string]string{}
	}
	maps.Copy(programs, spec.Programs)
	for _, name := range append(component.Names(component.StaticPods), kwoksOf(t)...) {
		if programs[name] == "" {
			err = errors.Join(
				err,
				fmt.Errorf(
					"node %q has no program for %s, and none was prepared for Kubernetes %s",
					spec.Name,
					name,
					t.Version,
				),
			)
		}
	}
	spec.Programs = programs
	known := controlPlane(spec)
	for _, name := range slices.Sorted(maps.Keys(spec.Seams)) {
		if _, ok := seamProcesses[name]; !ok {
			err = errors.Join(err, fmt.Errorf("the seam %q: want one of %q", name,
				slices.Sorted(maps.Keys(seamProcesses))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Seams)) {
		of, isConnection := control.Connections[name]
		if isConnection && !slices.Contains(known, of.Client) {
			err = errors.Join(
				err,
				fmt.Errorf(
					"the seam %s has nobody to lead through it: there is no program for %s",
					name,
					of.Client,
				),
			)
		}
		if have, ok := spec.Args[of.Client][of.Flag]; ok {
			err = errors.Join(err, fmt.Errorf("%s has --%s=%s already, and the seam %s wants its own", of.Client, of.Flag, have,
				name))
		}
	}
	if have, ok := spec.Args["kube-scheduler"]["config"]; ok && spec.Seams["scheduler-extender"] != "" {
		err = errors.Join(err, fmt.Errorf("kube-scheduler has --config=%s already, and the seam scheduler-extender wants its own", have))
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Args)) {
		if !slices.Contains(known, name) {
			err = errors.Join(err, fmt.Errorf("flags for %q: want one of %q", name, known))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.OwnFiles)) {
		if !slices.Contains(known, name) {
			err = errors.Join(err, fmt.Errorf("files for %q: want one of %q", name, known))
		}
	}
	return spec, err
}

// controlPlane returns the components that a node runs: those of every control plane, and those that are added by their
// programs.
func controlPlane(spec cluster.NodeSpec) []string {
	return component.Names(func(c component.Component) bool {
		return component.StaticPods(c) || component.AddedPods(c) && spec.Programs[c.Name] != ""
	})
}

// kwoksOf returns kwok if a topology has simulated nodes, and else nothing.
func kwoksOf(t cluster.Topology) []string {
	if t.Simulated > 0 {
		return []string{kwok}
	}
	return nil
}

// layOut writes all files of a cluster into its folder home, which is empty. spec is the node of the topology t.
func layOut(home, name string, t cluster.Topology, spec cluster.NodeSpec) (l *layout, err error) {
	l = &layout{home: home, node: name + "-" + spec.Name, ports: map[string]int{}}
	seams, programs := seamsOf(spec), append(controlPlane(spec), kwoksOf(t)...)
	names := slices.Concat(
		programs,
		[]string{etcdPeers, etcdMetrics},
		slices.Sorted(maps.Keys(seams)),
	)
	ports, err := freePorts(len(names))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		l.ports[name] = ports[i]
	}
	if err := writeCredentials(home, name, l.url("kube-apiserver")); err != nil {
		return nil, err
	}
	for _, dir := range []string{stateDir, binDir, "etcd"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			return nil, err
		}
	}
	var list []process
	add := func(name, program string, args []string) error {
		p := process{Name: name, Path: programPath(home, name), Args: args, Logs: l.logs(name)}
		list = append(list, p)
		return errors.Join(placeProgram(p.Path, program), os.MkdirAll(p.Logs, 0o700))
	}
	for _, name := range programs {
		ours := l.flags(name)
		row, _ := component.Of(name)
		maps.Copy(ours, row.Closing(t.Version))
		for proxy, s := range seams {
			if s.connection != nil && s.connection.Client == name && s.connection.Flag != "" {
				ours[s.connection.Flag] = l.url(proxy)
			}
		}
		if _, there := seams[lbaas]; there && name == cloudControllerManager {
			ours["cloud-config"] = l.path(cloudConfig)
			err = errors.Join(
				err,
				os.WriteFile(
					l.path(cloudConfig),
					[]byte(control.CloudConfig(loopback(l.ports[lbaas]))),
					0o600,
				),
			)
		}
		if _, there := seams[extender]; there && name == "kube-scheduler" {
			ours["config"] = l.path(extenderConfig)
			err = errors.Join(
				err,
				os.WriteFile(
					l.path(extenderConfig),
					[]byte(control.SchedulerConfig(l.path(schedulerConfig),
						loopback(l.ports[extender]))),
					0o600,
				),
			)
		}
		if err := errors.Join(err, add(name, spec.Programs[name], flags(ours, spec.ArgsIn(name, folder(home, name)))),
			writeOwn(folder(home, name), spec.TextsOf(name, ours["kubeconfig"]))); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Seams)) {
		s := seamProcesses[name]
		args := slices.Concat([]string{"serve"}, s.serve(l.ports), s.socket())
		if err := add(s.name, spec.Seams[name], args); err != nil {
			return nil, err
		}
	}
	rec := record{
		Node: cluster.NodeSpec{
			Name:   spec.Name,
			Role:   spec.Role,
			Arm:    spec.Arm,
			Labels: spec.Labels,
			Seams:  spec.Seams,
		},
		Ports:     l.ports,
		Simulated: t.Simulated,
	}
	return l, errors.Join(
		writeJSON(l.path(processesFile), list),
		writeJSON(l.path(recordFile), rec),
		os.WriteFile(l.path(kwokStagesFile), kwokStages, 0o600),
	)
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

func (l *layout) path(file string) string        { return filepath.Join(l.home, file) }
func (l *layout) url(name string) string         { return "https://" + loopback(l.ports[name]) }
func (l *layout) certificate(file string) string { return l.path(file + ".crt") }
func (l *layout) key(file string) string         { return l.path(file + ".key") }
func (l *layout) port(name string) string        { return fmt.Sprint(l.ports[name]) }

// logsDir is the folder of a cluster's logs, which are arranged as in /var/log/pods on a node.
const logsDir = "pods"

func logs(home, namespace, node, component string) string {
	return filepath.Join(home, logsDir, namespace+"_"+component+"-"+node+"_process", component)
}

func (l *layout) logs(component string) string {
	return logs(l.home, metav1.NamespaceSystem, l.node, component)
}

// binDir is the folder with the program of each component.
const binDir = "bin"

func programPath(home, component string) string { return filepath.Join(home, binDir, component) }

// placeProgram puts a copy of source at a path in one step; a process that runs the old program keeps it. The copy is a
// hard link if possible. It stays when source is removed.
func placeProgram(at, source string) error {
	tmp := at + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(source, tmp); err != nil {
		if err := copyFile(tmp, source); err != nil {
			return err
		}
	}
	return os.Rename(tmp, at)
}

func copyFile(at, source string) (err error) {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = io.Copy(to, from)
	return err
}

// flags returns the flags of a command line, in order. Those of the topology (asked) replace ours.
func flags(ours, asked map[string]string) []string {
	all := maps.Clone(ours)
	maps.Copy(all, asked)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, "--"+name+"="+all[name])
	}
	return out
}

// flags returns what a component is started with, as kubeadm has it where that makes a difference.
func (l *layout) flags(name string) map[string]string {
	switch name {
	case "etcd":
		peers := l.url(etcdPeers)
		return map[string]string{
			"name": l.node, "data-dir": l.path("etcd"), "snapshot-count": "10000",
			"listen-client-urls": l.url("etcd"), "advertise-client-urls": l.url("etcd"),
			"listen-metrics-urls": "http://" + loopback(l.ports[etcdMetrics]),
			"listen-peer-urls":    peers, "initial-advertise-peer-urls": peers, "initial-cluster": l.node + "=" + peers,
			"cert-file": l.certificate(etcdServer), "key-file": l.key(etcdServer), "client-cert-auth": "true",
			"trusted-ca-file": l.path(etcdCAFile),
			"peer-cert-file":  l.certificate(etcdServer), "peer-key-file": l.key(etcdServer), "peer-client-cert-auth": "true",
			"peer-trusted-ca-file": l.path(etcdCAFile),
		}
	case "kube-apiserver":
		return map[string]string{
			"bind-address":         "127.0.0.1",
			"secure-port":          l.port(name),
			"tls-cert-file":        l.certificate(apiServer),
			"tls-private-key-file": l.key(apiServer),
			// The API server publishes no endpoint: no pod ever asks for it, and a loopback address could be no
			// endpoint.
			"advertise-address": "127.0.0.1", "endpoint-reconciler-type": "none", "service-cluster-ip-range": "10.96.0.0/16",
			"client-ca-file": l.path(caFile), "authorization-mode": "Node,RBAC", "enable-admission-plugins": "NodeRestriction",
			"allow-privileged": "true",
			"etcd-servers":     l.url("etcd"), "etcd-cafile": l.path(etcdCAFile), "etcd-certfile": l.certificate(etcdClient),
			"etcd-keyfile":                     l.key(etcdClient),
			"service-account-issuer":           "https://kubernetes.default.svc.cluster.local",
			"service-account-key-file":         l.path(serviceAccount),
			"service-account-signing-key-file": l.path(serviceAccount),
		}
	case "kube-controller-manager":
		out := l.client(name, controllersConfig, controllers)
		maps.Copy(out, map[string]string{
			"root-ca-file": l.path(caFile), "service-account-private-key-file": l.path(serviceAccount),
			"use-service-account-credentials": "true",
			"controllers":                     "*,bootstrapsigner,tokencleaner",
		})
		return out
	case cloudControllerManager:
		return l.client(name, cloudsConfig, clouds)
	case kwok:
		return l.kwokFlags()
	default:
		return l.client(name, schedulerConfig, scheduler)
	}
}

// client returns the flags that clients of the API server have in common.
func (l *layout) client(name, config, certificate string) map[string]string {
	return map[string]string{
		"kubeconfig": l.path(config), "authentication-kubeconfig": l.path(config), "authorization-kubeconfig": l.path(config),
		"leader-elect": "true",
		"bind-address": "127.0.0.1", "secure-port": l.port(name), "client-ca-file": l.path(caFile),
		"tls-cert-file": l.certificate(certificate), "tls-private-key-file": l.key(certificate),
	}
}

// isPortTaken reports whether a component complained that it can't listen.
func isPortTaken(said string) bool { return strings.Contains(said, "address already in use") }
