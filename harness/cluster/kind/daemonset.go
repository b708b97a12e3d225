package kind

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
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

// mountPrograms changes the DaemonSets whose program the topology replaces. Their pods then mount the node's program
// over the one in their image, which kubeadm can't be told to do. It needs the API server. It comes before the workers'
// pods, so that only those of the control plane are replaced.
func (c *Cluster) mountPrograms(ctx context.Context, nodes []cluster.NodeSpec) error {
	for _, name := range slices.Sorted(maps.Keys(nodes[0].Programs)) {
		row, _ := component.Of(name)
		if row.Runs != component.AsDaemonSet {
			continue
		}
		path := programPath(row)
		spec := map[string]any{
			"volumes": []any{map[string]any{"name": "relapse-0",
				"hostPath": map[string]any{"path": path, "type": "File"}}},
			"containers": []any{map[string]any{"name": name, "volumeMounts": []any{map[string]any{
				"name": "relapse-0", "mountPath": row.Executable, "readOnly": true}}}},
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, connectTime)
		err = retry(limited, 500*time.Millisecond, func(ctx context.Context) error {
			if err := c.connect(ctx); err != nil {
				return err
			}
			a, err := c.send(ctx, http.MethodPatch, "/apis/apps/v1/namespaces/kube-system/daemonsets/"+name,
				"application/strategic-merge-patch+json", patch)
			if err != nil {
				return err
			}
			return a.Close()
		})
		cancel()
		if err != nil {
			return fmt.Errorf("mounting the program of %s: %w", name, err)
		}
	}
	return nil
}
