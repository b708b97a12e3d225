package fault

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/scenario"
)

const (
	// ownNodes among a selector's nodes stands for all nodes of the arm itself.
	ownNodes = "arm"
	// controlPlaneLabel is the label, without a value, that kubeadm puts on the Node objects of control planes. Workers
	// have no such label.
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// The modes of a target, in Chaos Mesh's words.
const (
	allMode              = "all"
	oneMode              = "one"
	fixedMode            = "fixed"
	fixedPercentMode     = "fixed-percent"
	randomMaxPercentMode = "random-max-percent"
)

// SelectNodes returns the names of the nodes that a target in Chaos Mesh's words selects, in the topology's order. All
// parts of the selector have to hold, and the mode says how many of those nodes are meant. Planning and running both
// use it, so that what is planned is what happens.
//
// Only nodes of the arm count; for bundle.Shared, or without an arm, only nodes that belong to no arm. A node's labels
// are those of its spec, and node-role.kubernetes.io/control-plane for a control plane. fixed-percent takes that share
// of the nodes, rounded down; random-max-percent first draws a share from 0 to its value. Draws depend only on the seed
// and the number of nodes, so that every arm is treated alike.
//
// Four mistakes are errors that say what was asked and which nodes there are: an empty selector, a node that the
// cluster doesn't have, a selector that matches no node, and fewer nodes than mode fixed asks for. In Chaos Mesh they
// select everything, nothing, or what there is.
func SelectNodes(
	t scenario.Target,
	nodes []cluster.NodeSpec,
	arm string,
	seed int64,
) ([]string, error) {
	if err := ActsOnNodes(t); err != nil {
		return nil, err
	}
	if arm == "" {
		arm = bundle.Shared
	}
	asked := words(t.Selector)
	if asked == "" {
		return nil, errors.New(
			"the selector is empty, which would select everything (want nodes, nodeSelectors or " +
				"component)",
		)
	}
	for _, name := range t.Selector.Nodes {
		if name != ownNodes && !slices.ContainsFunc(nodes, func(n cluster.NodeSpec) bool { return n.Name == name }) {
			return nil, fmt.Errorf("the selector (%s) names the node %q, which the cluster doesn't have: it has %s",
				asked, name, describe(nodes))
		}
	}
	var found []string
	for _, n := range nodes {
		if in := n.Arm == arm || n.Arm == "" && arm == bundle.Shared; in && selected(t.Selector, n) {
			found = append(found, n.Name)
		}
	}
	of := "of arm " + arm
	if arm == bundle.Shared {
		of = "that belong to no arm"
	}
	if len(found) == 0 {
		return nil, fmt.Errorf(
			"the selector (%s) matches none of the nodes %s: there are %s",
			asked,
			of,
			describe(nodes),
		)
	}
	want, err := howMany(t, len(found), seed)
	if err != nil {
		return nil, fmt.Errorf(
			"the selector (%s) matches %d nodes %s (%s), and %w",
			asked,
			len(found),
			of,
			strings.Join(found, ", "),
			err,
		)
	}
	drawn := rand.New(rand.NewPCG(uint64(seed), 0)).Perm(len(found))[:want]
	slices.Sort(drawn)
	out := make([]string, want)
	for i, d := range drawn {
		out[i] = found[d]
	}
	return out, nil
}

// Select works like SelectNodes, on a running cluster. labels are those of the nodes' specs, by the nodes' full names.
func Select(t scenario.Target, c cluster.Cluster, arm string, labels map[string]map[string]string,
	seed int64) ([]cluster.Node, error) {
	var specs []cluster.NodeSpec
	byName := map[string]cluster.Node{}
	for _, n := range c.Nodes() {
		short := strings.TrimPrefix(n.Name(), c.Name()+"-")
		specs = append(
			specs,
			cluster.NodeSpec{Name: short, Role: n.Role(), Arm: n.Arm(), Labels: labels[n.Name()]},
		)
		byName[short] = n
	}
	names, err := SelectNodes(t, specs, arm, seed)
	if err != nil {
		return nil, err
	}
	out := make([]cluster.Node, len(names))
	for i, name := range names {
		out[i] = byName[name]
	}
	return out, nil
}

// ActsOnNodes refuses a target whose selector means pods: all faults act on nodes, and a selector must not be
// ignored.
func ActsOnNodes(t scenario.Target) error {
	if len(t.Selector.Namespaces)+len(t.Selector.LabelSelectors) > 0 {
		return fmt.Errorf(
			"the selector means pods (namespaces, labelSelectors), and the fault acts on nodes (want " +
				"nodes, nodeSelectors or component)",
		)
	}
	return nil
}

func selected(s scenario.Selector, n cluster.NodeSpec) bool {
	if len(s.Nodes) > 0 && !slices.Contains(s.Nodes, n.Name) && (n.Arm == "" || !slices.Contains(s.Nodes, ownNodes)) {
		return false
	}
	have := labelsOf(n)
	for k, v := range s.NodeSelectors {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	row, known := component.Of(s.Component)
	return s.Component == "" || known && row.OnRole(n.Role == cluster.ControlPlane)
}

func labelsOf(n cluster.NodeSpec) map[string]string {
	out := map[string]string{}
	if n.Role == cluster.ControlPlane {
		out[controlPlaneLabel] = ""
	}
	maps.Copy(out, n.Labels)
	return out
}

// howMany returns how many of the nodes found a mode means: at least one. Its errors go on after "and".
func howMany(t scenario.Target, found int, seed int64) (int, error) {
	mode := t.Mode
	value, err := strconv.Atoi(t.Value)
	switch mode {
	case allMode:
		return found, nil
	case oneMode:
		return 1, nil
	case fixedMode:
		if err != nil || value < 1 {
			return 0, fmt.Errorf(
				"mode %s has the value %q (want a number of at least 1)",
				mode,
				t.Value,
			)
		}
		if found < value {
			return 0, fmt.Errorf("mode %s wants %d", mode, value)
		}
		return value, nil
	case fixedPercentMode, randomMaxPercentMode:
		if err != nil || value < 1 || value > 100 {
			return 0, fmt.Errorf(
				"mode %s has the value %q (want a percentage from 1 to 100)",
				mode,
				t.Value,
			)
		}
	default:
		return 0, fmt.Errorf(
			"the mode is %q (want one, all, fixed, fixed-percent or random-max-percent)",
			t.Mode,
		)
	}
	why := ""
	if mode == randomMaxPercentMode {
		most := value
		value = rand.New(rand.NewPCG(uint64(seed), 1)).IntN(most + 1)
		why = fmt.Sprintf(", drawn by the seed %d from 0 to %d %%", seed, most)
	}
	if found*value/100 == 0 {
		return 0, fmt.Errorf(
			"mode %s takes %d %% of them, rounded down to none%s",
			mode,
			value,
			why,
		)
	}
	return found * value / 100, nil
}

// words returns a selector for nodes in words; "" if it is empty.
func words(s scenario.Selector) string {
	var out []string
	if len(s.Nodes) > 0 {
		out = append(out, "nodes "+strings.Join(s.Nodes, ", "))
	}
	if len(s.NodeSelectors) > 0 {
		out = append(out, "nodeSelectors "+pairs(s.NodeSelectors))
	}
	if s.Component != "" {
		out = append(out, "component "+s.Component)
	}
	return strings.Join(out, "; ")
}

// describe lists nodes by name, with everything that a selector could ask for.
func describe(nodes []cluster.NodeSpec) string {
	var out []string
	for _, n := range nodes {
		of := []string{n.Role}
		if n.Arm != "" {
			of = append(of, "arm "+n.Arm)
		}
		if have := labelsOf(n); len(have) > 0 {
			of = append(of, "labels "+pairs(have))
		}
		out = append(out, fmt.Sprintf("%s (%s)", n.Name, strings.Join(of, ", ")))
	}
	return strings.Join(out, ", ")
}

func pairs(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ",")
}
