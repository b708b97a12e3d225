package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// modelledBy lists what a provider leaves out compared with production, and what stands in for it.
func modelledBy(provider, placement string, simulated int) []string {
	if provider != providers.Processes {
		return nil
	}
	nodes := "there were no nodes and no containers"
	if simulated > 0 {
		nodes = "there were no containers"
	}
	out := []string{"the control plane's components were plain processes of one host: " + nodes +
		", and no kubelet's probe restarts a component that doesn't answer"}
	if placement == PlacementWorkload {
		out = append(
			out,
			"each arm was a plain process with the arguments of its Deployment and a loopback address of its "+
				"own: no container, nobody who probes it, and none of its limits and rights but those of its service account",
		)
	}
	if simulated > 0 {
		out = append(
			out,
			fmt.Sprintf(
				"nodes and pods are simulated by kwok: %d Node objects in each cluster that "+
					"nothing stands behind, and pods that are said to run once they are bound; relapse made the CSINode "+
					"objects that kubelets make",
				simulated,
			),
		)
	}
	return out
}

// simulated returns how many nodes are simulated: none if the provider has real ones.
func simulated(s *scenario.Scenario, provider string) int {
	if s.Spec.Nodes == nil || provider != providers.Processes {
		return 0
	}
	return s.Spec.Nodes.Simulated
}

// validateMachines refuses what the provider can't do: files in nodes, memory limits, and anything that needs nodes
// with a kubelet.
func (t *Trial) validateMachines(have *cluster.Capabilities) error {
	if have == nil {
		return nil
	}
	var errs []error
	for _, s := range t.Seams {
		if have.NodeFiles || slices.Contains(have.Seams, s) {
			continue
		}
		why := "is files of nodes, which this provider can't install"
		if of, err := kinds.Make[seam.Seam](kinds.Seam, s); err == nil {
			if l, ok := of.(seam.Leader); ok {
				why = fmt.Sprintf(
					"stands between %s and what it connects to, and this provider runs no %[1]s",
					l.Leads(),
				)
			}
		}
		errs = append(errs, scenario.InField(fmt.Errorf("the seam %s %s", s, why), "seams"))
	}
	for _, c := range t.Clusters {
		if len(c.Memory) > 0 && have.NoMemoryLimits != "" {
			errs = append(
				errs,
				fmt.Errorf(
					"the memory of components can't be limited here: %s",
					have.NoMemoryLimits,
				),
			)
			break
		}
	}
	if have.Kubelets {
		if slices.ContainsFunc(t.Clusters, func(c Cluster) bool { return c.Topology.Simulated > 0 }) {
			errs = append(errs, errors.New("nodes are simulated only where there are no kubelets, and this provider has them"))
		}
		return errors.Join(errs...)
	}
	row, _ := component.Of(t.Subject)
	switch {
	case t.Place().SharedNodes() && have.Cluster().Processes != nil:
		for _, c := range t.Arms {
			_, err := t.Process(c.Name)
			errs = append(errs, err)
		}
	case !t.Place().OwnCluster():
		errs = append(
			errs,
			fmt.Errorf("an arm is a part of a node that has a kubelet (placement: %s), and this "+
				"provider has no kubelets", t.Placement),
		)
	case row.Runs != component.AsStaticPod && row.Runs != component.AsAddedPod:
		errs = append(
			errs,
			fmt.Errorf(
				"the subject %s runs on nodes that have a kubelet, and this provider has no "+
					"kubelets",
				t.Subject,
			),
		)
	}
	for _, c := range t.Collectors {
		if u, ok := c.Spec.(capture.KubeletUser); ok && u.NeedsKubelets() {
			errs = append(
				errs,
				fmt.Errorf(
					"collector %q records what kubelets do, and this provider has none",
					c.Name,
				),
			)
		}
	}
	for _, l := range t.Loads {
		if one, ok := l.Spec.(load.OnNode); ok && one.OnNode() {
			errs = append(
				errs,
				fmt.Errorf(
					"load %q is pods that run, and this provider has no kubelets to run them",
					l.Name,
				),
			)
		}
	}
	return errors.Join(errs...)
}
