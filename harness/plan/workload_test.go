package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// together plans the scenario with its arms as workloads of one cluster.
func together(t *testing.T, o plan.Options, manifests ...scenario.Manifest) (*plan.Plan, error) {
	t.Helper()
	s := load(t)
	s.Spec.Placement, s.Spec.Seams, s.Spec.Restart = plan.PlacementWorkload, nil, nil
	s.Spec.Subject = "agent"
	s.Spec.Faults = s.Spec.Faults[1:] // the other one needs a seam
	s.Spec.Faults[0].After = nil
	s.Spec.Nodes = &scenario.Nodes{Workers: 2, Idle: 1}
	s.Spec.Manifests = manifests
	return plan.New(s, o)
}

func TestWorkloads(t *testing.T) {
	p, err := together(t, plan.Options{},
		scenario.Manifest{File: "agent.yaml", Each: "arm", Values: map[string]scenario.Scalar{"pace": "2s"}}, scenario.Manifest{File: "crd.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	tr := p.Trials[0]
	var nodes []string
	for _, n := range tr.Clusters[0].Topology.Nodes {
		nodes = append(nodes, n.Name+" "+n.Labels[plan.RoleLabel]+" "+n.Arm)
	}
	if diff := cmp.Diff([]string{"control-plane control-plane ", "worker worker ", "worker2 worker ", "worker3 idle "}, nodes); diff != "" || len(tr.Clusters) != 1 {
		t.Errorf("%d clusters, the nodes -want +got:\n%s", len(tr.Clusters), diff)
	}
	for _, c := range tr.Arms {
		if c.Namespace != "relapse-"+c.Name || c.Node != "control-plane" || tr.ClusterOf(c.Name) != &tr.Clusters[0] {
			t.Errorf("arm %+v is in %+v", c, tr.ClusterOf(c.Name))
		}
	}
	if tr.ClusterOf("nobody") != nil {
		t.Error("an arm that isn't there has a cluster")
	}
	if got := tr.Groups(); !cmp.Equal(got, [][]string{{"vulnerable", "fixed"}}) {
		t.Errorf("the groups are %v", got)
	}
	var files []string
	for _, m := range tr.Manifests {
		files = append(files, m.File+" "+m.Arm)
	}
	if diff := cmp.Diff([]string{"crd.yaml ", "agent.yaml vulnerable", "agent.yaml fixed"}, files); diff != "" {
		t.Errorf("what is applied -want +got:\n%s", diff)
	}
	const want = `namespace: relapse-fixed, labels: {of: fixed}}
spec:
  containers: [{name: agent, image: "$(image)", args: ["--pace=2s", "--home=$(HOME)"]}]
`
	if got := tr.Manifests[2].Content; !strings.HasSuffix(got, want) {
		t.Errorf("the agent of fixed is\n%s", got)
	}
}

// What a scenario gives a component of the control plane gets there, whatever an arm has to itself.
func TestWorkloadsWithFiles(t *testing.T) {
	s := load(t)
	s.Spec.Placement, s.Spec.Seams, s.Spec.Restart = plan.PlacementWorkload, nil, nil
	s.Spec.Faults = s.Spec.Faults[1:]
	s.Spec.Faults[0].After = nil
	s.Spec.Nodes = &scenario.Nodes{ControlPlanes: 2, Workers: 1}
	s.Spec.Files = map[string]map[string]string{"kube-apiserver": {"audit.log": "", "audit-policy.yaml": "kind: Policy"}}
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var with []string
	for _, n := range p.Trials[0].Clusters[0].Topology.Nodes {
		if n.OwnFiles["kube-apiserver"]["audit-policy.yaml"] == "kind: Policy" {
			with = append(with, n.Name)
		} else if len(n.OwnFiles) > 0 {
			t.Errorf("%s has the files %v", n.Name, n.OwnFiles)
		}
	}
	if diff := cmp.Diff([]string{"control-plane", "control-plane2"}, with); diff != "" {
		t.Errorf("who has the files -want +got:\n%s", diff)
	}
}

func TestWorkloadsRefused(t *testing.T) {
	agent := scenario.Manifest{File: "agent.yaml", Each: "arm", Values: map[string]scenario.Scalar{"pace": "2s"}}
	for name, tc := range map[string]struct {
		o        plan.Options
		manifest scenario.Manifest
		want     []string
	}{
		"one after the other": {plan.Options{Sequential: true}, agent, []string{"they can't go one after the other"}},
		"no such file":        {plan.Options{}, scenario.Manifest{File: "agents.yaml", Each: "arm"}, []string{"reading the manifest agents.yaml"}},
		"names without a value": {plan.Options{}, scenario.Manifest{File: "wrong.yaml"}, []string{
			"wrong.yaml:2:18: $(arm) has no value (want none: the manifest is given no values; $$(arm) is the text itself)", "wrong.yaml:3:11: $(pac) has no value",
		}},
		"a name misspelt": {plan.Options{}, scenario.Manifest{File: "wrong.yaml", Each: "arm", Values: agent.Values}, []string{
			"wrong.yaml:3:11: $(pac) has no value (want one of arm, image, namespace, pace; $$(pac) is the text itself)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := together(t, tc.o, tc.manifest)
			for _, w := range tc.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("got  %v\nwant %s", err, w)
				}
			}
		})
	}
}
