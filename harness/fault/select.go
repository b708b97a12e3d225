package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/chaos-mesh/chaos-mesh/api/v1alpha1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// ActsOnNodes refuses a target whose selector means pods: the faults there are act on nodes, and what a selector says must not be passed over.
func ActsOnNodes(t scenario.Target) error {
	if len(t.Selector.Namespaces)+len(t.Selector.LabelSelectors) > 0 {
		return fmt.Errorf("the selector means pods (namespaces, labelSelectors), and the fault acts on nodes (want nodes, nodeSelectors or component)")
	}
	return nil
}

// Select picks the nodes of a cell that a target means, in Chaos Mesh's words: the selector's parts all have to hold, and the mode says how
// many of what they leave. labels are the nodes' labels by node name. A draw depends on the seed alone, so that every cell is treated
// alike. No node at all, or fewer than mode fixed asks for, is an error.
func Select(t scenario.Target, c cluster.Cluster, cell string, labels map[string]map[string]string, seed int64) ([]cluster.Node, error) {
	if err := ActsOnNodes(t); err != nil {
		return nil, err
	}
	var found []cluster.Node
	for _, n := range c.Nodes() {
		if n.Cell() == cell && selected(t.Selector, c, n, labels[n.Name()]) {
			found = append(found, n)
		}
	}
	want := len(found)
	switch mode := v1alpha1.SelectorMode(t.Mode); mode {
	case v1alpha1.AllMode:
	case v1alpha1.OneMode:
		want = 1
	case v1alpha1.FixedMode:
		var err error
		if want, err = strconv.Atoi(t.Value); err != nil || want < 1 {
			return nil, fmt.Errorf("mode %s with the value %q (want a number of at least 1)", mode, t.Value)
		}
	default:
		return nil, fmt.Errorf("mode %q (want one, all or fixed)", mode)
	}
	if len(found) == 0 || len(found) < want {
		return nil, fmt.Errorf("the selector matches %d nodes of cell %s, and mode %s wants %d", len(found), cell, t.Mode, max(want, 1))
	}
	draw := rand.New(rand.NewPCG(uint64(seed), 0))
	draw.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found[:want], nil
}

func selected(s scenario.Selector, c cluster.Cluster, n cluster.Node, labels map[string]string) bool {
	short := strings.TrimPrefix(n.Name(), c.Name()+"-")
	if len(s.Nodes) > 0 && !slices.Contains(s.Nodes, short) && !slices.Contains(s.Nodes, n.Name()) {
		return false
	}
	for k, v := range s.NodeSelectors {
		if labels[k] != v {
			return false
		}
	}
	return s.Component == "" || slices.ContainsFunc(c.Components(s.Component), func(x cluster.Component) bool { return x.Node().Name() == n.Name() })
}
