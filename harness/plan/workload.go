package plan

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// RoleLabel is the label with a node's purpose: control-plane, worker or idle. kind labels only control planes.
const RoleLabel = scenario.RoleLabel

// idle is the value of RoleLabel for workers that run nothing of the scenario.
const idle = "idle"

// ImageReference stands for the arm's image in its manifests.
const ImageReference = "$(image)"

func (workloadPlacement) arrange(t *Trial, s *scenario.Scenario, o Options) error {
	if o.Sequential {
		return errors.New("the arms share one cluster and its faults: they can't go one after the other")
	}
	if s.Spec.Nodes == nil {
		return errors.New("the scenario says nothing of its nodes: want nodes.workers")
	}
	top := cluster.Topology{Version: s.Spec.Version, Base: o.Base}
	add := func(n int, role, label string) {
		node := cluster.NodeSpec{
			Name: numbered(
				role,
				n,
			),
			Role:   role,
			Labels: map[string]string{RoleLabel: label},
			Args:   argsOf(s, role),
		}
		if role == cluster.ControlPlane {
			node.OwnFiles = s.Spec.Files
		}
		top.Nodes = append(top.Nodes, node)
	}
	if o.Provider == providers.Processes {
		add(0, cluster.ControlPlane, cluster.Worker) // the host stands for all nodes, and runs the arms
	} else {
		for i := range max(s.Spec.Nodes.ControlPlanes, 1) {
			add(i, cluster.ControlPlane, cluster.ControlPlane)
		}
		for i := range s.Spec.Nodes.Workers {
			add(i, cluster.Worker, cluster.Worker)
		}
		for i := range s.Spec.Nodes.Idle {
			add(s.Spec.Nodes.Workers+i, cluster.Worker, idle)
		}
	}
	t.Clusters = []Cluster{{Topology: top, Memory: memoryOf(s)}}
	for i := range t.Arms {
		t.Arms[i].Node, t.Arms[i].Namespace = cluster.ControlPlane, "relapse-"+t.Arms[i].Name
	}
	return t.manifests(s)
}

// manifests reads the scenario's manifest files, those for all arms first, and fills in every reference but $(image).
func (t *Trial) manifests(s *scenario.Scenario) error {
	if s.Origin == nil {
		return errors.New("a scenario with manifests must be read from a file: they lie beside it")
	}
	var errs []error
	var each []int
	put := func(i int, arm Arm) {
		m := s.Spec.Manifests[i]
		path := filepath.Join(filepath.Dir(s.Origin.File), m.File)
		text, err := os.ReadFile(path)
		if err != nil {
			errs = append(
				errs,
				scenario.InField(
					fmt.Errorf("reading the manifest %s: %w", m.File, err),
					"manifests",
					strconv.Itoa(i),
					"file",
				),
			)
			return
		}
		values := map[string]string{}
		for name, v := range m.Values {
			values[name] = string(v)
		}
		if arm.Name != "" {
			values["arm"], values["namespace"], values["image"] = arm.Name, arm.Namespace, ImageReference
		}
		content, err := fillIn(path, string(text), values)
		errs = append(errs, err)
		t.Manifests = append(t.Manifests, Manifest{File: m.File, Arm: arm.Name, Content: content})
	}
	for i, m := range s.Spec.Manifests {
		if m.Each != "" {
			each = append(each, i)
			continue
		}
		put(i, Arm{})
	}
	for _, c := range t.Arms {
		for _, i := range each {
			put(i, c)
		}
	}
	return errors.Join(errs...)
}

// fillIn replaces each $(name) in a file's text. The error lists every name without a value, with its line.
func fillIn(file, text string, values map[string]string) (string, error) {
	var errs []error
	var out strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		last := 0
		for _, at := range kinds.Placeholder.FindAllStringSubmatchIndex(line, -1) {
			out.WriteString(line[last:at[0]])
			last = at[1]
			if strings.HasPrefix(line[at[0]:], "$$") {
				out.WriteString(line[at[0]+1 : at[1]])
				continue
			}
			name := line[at[2]:at[3]]
			v, ok := values[name]
			if !ok {
				errs = append(errs, fmt.Errorf("%s:%d:%d: $(%s) has no value (want %s; $$(%s) is the text itself)", file, n,
					at[0]+1, name, known(values), name))
			}
			out.WriteString(v)
		}
		out.WriteString(line[last:])
	}
	return out.String(), errors.Join(errs...)
}

func known(values map[string]string) string {
	if len(values) == 0 {
		return "none: the manifest is given no values"
	}
	return "one of " + strings.Join(slices.Sorted(maps.Keys(values)), ", ")
}
