package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// withDaemonPrograms returns the nodes, each with a program for a DaemonSet if the topology gave one to any node: all
// pods of a DaemonSet are made from one template, which mounts the program. Nodes without a program get that of the
// last node that has one.
func withDaemonPrograms(nodes []cluster.NodeSpec) []cluster.NodeSpec {
	programs := map[string]string{}
	for _, n := range nodes {
		for name, program := range n.Programs {
			if row, _ := component.Of(name); row.Runs == component.AsDaemonSet {
				programs[name] = program
			}
		}
	}
	out := slices.Clone(nodes)
	for i := range out {
		own := out[i].Programs
		out[i].Programs = maps.Clone(programs)
		maps.Copy(out[i].Programs, own)
	}
	return out
}

// daemonSeam is a seam that leads the pods of a DaemonSet.
type daemonSeam struct {
	name, component, program string
	args                     []string
}

// seamsOfDaemons returns the nodes' seams that lead the pods of a DaemonSet, in the order of their names.
func seamsOfDaemons(nodes []cluster.NodeSpec) (out []daemonSeam, err error) {
	programs := map[string]string{}
	for _, n := range nodes {
		maps.Copy(programs, n.Seams)
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		s, err := kinds.Make[seam.Seam](kinds.Seam, name)
		if err != nil {
			return nil, err
		}
		of, ok := s.(seam.OfDaemons)
		if !ok || len(of.DaemonArgs()) == 0 {
			continue
		}
		leads, ok := s.(seam.Leader)
		if !ok {
			return nil, fmt.Errorf("the seam %s leads a DaemonSet and doesn't say which", name)
		}
		out = append(out, daemonSeam{name, leads.Leads(), programs[name], of.DaemonArgs()})
	}
	return out, nil
}

// withDaemonSeams returns the nodes, each with the seams that lead the pods of a DaemonSet: the pods of all nodes have the
// same arguments.
func withDaemonSeams(nodes []cluster.NodeSpec, daemons []daemonSeam) []cluster.NodeSpec {
	if len(daemons) == 0 {
		return nodes
	}
	out := slices.Clone(nodes)
	for i := range out {
		all := map[string]string{}
		for _, d := range daemons {
			all[d.name] = d.program
		}
		maps.Copy(all, out[i].Seams)
		out[i].Seams = all
	}
	return out
}

// changeDaemons changes the DaemonSets whose program the topology replaces, or whose pods a seam leads. Their pods then mount
// the node's program over the one in their image, and have the seam's arguments, which kubeadm can't be told to do. It needs
// the API server. It comes before the workers' pods, so that only those of the control plane are replaced.
func (c *Cluster) changeDaemons(
	ctx context.Context,
	nodes []cluster.NodeSpec,
	daemons []daemonSeam,
) error {
	args := map[string][]string{}
	for _, d := range daemons {
		args[d.component] = append(args[d.component], d.args...)
	}
	for _, name := range component.Names(func(row component.Component) bool { return row.Runs == component.AsDaemonSet }) {
		container, pod := map[string]any{"name": name}, map[string]any{}
		if nodes[0].Programs[name] != "" {
			row, _ := component.Of(name)
			pod["volumes"] = []any{map[string]any{"name": "relapse-0",
				"hostPath": map[string]any{"path": programPath(row), "type": "File"}}}
			container["volumeMounts"] = []any{
				map[string]any{
					"name":      "relapse-0",
					"mountPath": row.Executable,
					"readOnly":  true,
				},
			}
		}
		if len(args[name]) > 0 {
			container["args"] = args[name] // after kubeadm's command, which has its own
		}
		if len(container) == 1 {
			continue
		}
		pod["containers"] = []any{container}
		if err := c.changeDaemon(ctx, name, pod); err != nil {
			return fmt.Errorf("changing the pods of %s: %w", name, err)
		}
	}
	return nil
}

// changeDaemon merges a pod's spec into the template of a DaemonSet, once it is there.
func (c *Cluster) changeDaemon(ctx context.Context, name string, pod map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": pod}}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	return retry(ctx, 500*time.Millisecond, func(ctx context.Context) error {
		if err := c.connect(ctx); err != nil {
			return err
		}
		a, err := c.send(
			ctx,
			http.MethodPatch,
			"/apis/apps/v1/namespaces/kube-system/daemonsets/"+name,
			"application/strategic-merge-patch+json",
			patch,
		)
		if err != nil {
			return err
		}
		return a.Close()
	})
}

// awaitLed waits until each arm's node has a pod of each DaemonSet that a seam leads, with the seam's arguments, and none
// without them. A pod of before the change would go past the proxy, and no fault there would ever reach it.
func (c *Cluster) awaitLed(ctx context.Context, daemons []daemonSeam) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	for _, d := range daemons {
		err := retry(
			ctx,
			500*time.Millisecond,
			func(ctx context.Context) error { return c.led(ctx, d) },
		)
		if err != nil {
			return fmt.Errorf(
				"waiting until the seam %s leads the pods of %s: %w",
				d.name,
				d.component,
				err,
			)
		}
	}
	return nil
}

// led returns an error that says which arm's node has no pod that the seam leads, or another pod of the DaemonSet.
func (c *Cluster) led(ctx context.Context, d daemonSeam) error {
	pods, err := c.pods(ctx, "kube-system", "k8s-app="+d.component) // kubeadm's label
	if err != nil {
		return err
	}
	for _, n := range c.Machines {
		if n.arm == "" {
			continue
		}
		led := false
		for _, p := range pods {
			if p.Spec.NodeName != n.name {
				continue
			}
			for _, container := range p.Spec.Containers {
				if container.Name == d.component && !containsAll(container.Args, d.args) {
					return fmt.Errorf(
						"the pod %s on %s runs without %s",
						p.Name,
						n.name,
						strings.Join(d.args, " "),
					)
				}
			}
			led = true
		}
		if !led {
			return fmt.Errorf("%s has no pod of it", n.name)
		}
	}
	return nil
}

func containsAll(all, want []string) bool {
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(all, s) })
}
