package plan_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// probed has a probe in the recovery, and a healed check about it.
func probed(s *scenario.Spec) {
	s.Loads = []scenario.Item{{ItemHeader: scenario.ItemHeader{Name: "pod", Kind: "podProbe", Phase: check.Recovery, Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kubelet"}}}}}
	s.Healed = append(s.Healed, scenario.Check{CheckHeader: scenario.CheckHeader{Name: "pod-runs", Kind: "probeDone"}, Spec: json.RawMessage(`{"probe": "pod"}`)})
}

func TestLoadsOfPhases(t *testing.T) {
	s := load(t)
	probed(&s.Spec)
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := p.Trials[0]
	if in := tr.LoadsOf(check.Recovery); len(in) != 1 || in[0].Name != "pod" || len(tr.LoadsOf(check.Fault)) > 0 {
		t.Errorf("the loads of the recovery are %+v, those of the fault %+v", in, tr.LoadsOf(check.Fault))
	}
	var text bytes.Buffer
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	_, recovery, _ := strings.Cut(text.String(), "  recovery:")
	if want := "    load pod  at once  all kubelet of every arm  a pod must run within 55s"; !strings.Contains(recovery, want) || strings.Count(text.String(), "load pod") > 1 {
		t.Errorf("the text doesn't say %q of the recovery alone:\n%s", want, text.String())
	}
	s.Spec.Placement, s.Spec.Loads[0].Phase = "cluster", ""
	s.Spec.Loads[0].Kind, s.Spec.Loads[0].Spec = "deleteCollection", nil
	s.Spec.Healed = slices.DeleteFunc(s.Spec.Healed, func(c scenario.Check) bool { return c.Kind == "probeDone" })
	if p, err = plan.New(s, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	if in := p.Trials[0].Loads; in[0].Phase != check.Fault {
		t.Errorf("a load that names no phase is %+v", in)
	}
}

func TestProbesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *scenario.Spec)
		want   string
	}{
		{"a check about none", func(s *scenario.Spec) { s.Loads = nil }, `check "pod-runs" is about the probe "pod", which the scenario doesn't have`},
		{"in another phase", func(s *scenario.Spec) { s.Loads[0].Phase = "" },
			`check "pod-runs" asks in the phase recovery about the probe "pod", which is of the phase fault`},
		{"what is none", func(s *scenario.Spec) { s.Placement, s.Loads[0].Kind = "cluster", "deleteCollection" },
			`check "pod-runs" is about "pod", a deleteCollection, which is no probe`},
		{"of which a check wants calls", func(s *scenario.Spec) {
			s.Healed = append(s.Healed, scenario.Check{CheckHeader: scenario.CheckHeader{Name: "answered", Kind: "answers"}, Spec: json.RawMessage(`{"load":"pod","codes":[200],"atLeast":1}`)})
		}, `check "answered" reads what the load "pod" did, a podProbe, which records no calls`},
		{"a phase of no load", func(s *scenario.Spec) { s.Loads[0].Phase = "steady" }, `load "pod" is of phase "steady" (want baseline, fault or recovery)`},
		{"where arms share a cluster", func(s *scenario.Spec) { s.Loads[0].Kind = "collectionProbe" },
			`load "pod" acts on a whole cluster, which arms must have to themselves (placement: cluster)`},
		{"where arms share their nodes", func(s *scenario.Spec) {
			s.Placement, s.Nodes = "workload", &scenario.Nodes{Workers: 1}
		}, `load "pod" acts on the node of an arm, which the arms share (placement: node or cluster)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := load(t)
			probed(&s.Spec)
			c.change(&s.Spec)
			if _, err := plan.New(s, plan.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	s := load(t)
	probed(&s.Spec)
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	top := &p.Trials[0].Clusters[0].Topology
	top.Nodes = append(top.Nodes, cluster.NodeSpec{Name: "worker9", Role: cluster.Worker, Arm: "fixed"})
	if want := `load "pod" acts on one node, and its target chooses worker2, worker9 of arm fixed`; !strings.Contains(p.Validate().Error(), want) {
		t.Errorf("got  %v\nwant %s", p.Validate(), want)
	}
}

// Arms that share a cluster can each have a load of objects if each object is one of the arm's own.
func TestObjectsOfOneArm(t *testing.T) {
	const want = `load "own" reaches objects that are no arm's own, and the arms share a cluster (want $(arm) in the namespace or the name of each, or placement: cluster)`
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME","namespace":"SPACE","labels":{"of":"$(arm)"}}}`
	for at, refused := range map[string]bool{"ns old": true, " old": true, "ns-$(arm) old": false, " old-$(arm)": false} {
		for kind, spec := range map[string]string{
			"objects": `{"manifests":[` + object + `]}`,
			"probe": `{"work":"it comes","steps":[{"name":"there","object":` + object + `,"expression":"has(object.data)"},` +
				`{"name":"made","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-$(arm)"}}]}]}`,
		} {
			s := load(t)
			space, name, _ := strings.Cut(at, " ")
			s.Spec.Loads = append(s.Spec.Loads, scenario.Item{
				ItemHeader: scenario.ItemHeader{Name: "own", Kind: kind, Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kube-apiserver"}}},
				Spec:       json.RawMessage(strings.NewReplacer("NAME", name, "SPACE", space).Replace(spec)),
			})
			if _, err := plan.New(s, plan.Options{}); (err != nil && strings.Contains(err.Error(), want)) != refused {
				t.Errorf("a load %s with the object %q: %v, want it refused: %v", kind, at, err, refused)
			}
		}
	}
}

// A fault that changes what the arms of a cluster share can't be each arm's own.
func TestObjectsThatArmsShareAreRefused(t *testing.T) {
	const want = `fault "old" changes what all arms of a cluster share (want placement: cluster; objects may have $(arm) or $(node) in each manifest instead)`
	for name, refused := range map[string]bool{"old": true, "old-$(arm)": false, "$(node)": false} {
		s := load(t)
		s.Spec.Faults = append(s.Spec.Faults, scenario.Item{
			ItemHeader: scenario.ItemHeader{Name: "old", Kind: "objects", Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kubelet"}}},
			Spec:       json.RawMessage(`{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}]}`),
		})
		if _, err := plan.New(s, plan.Options{}); (err != nil && strings.Contains(err.Error(), want)) != refused {
			t.Errorf("a fault with the object %s: %v, want it refused: %v", name, err, refused)
		}
	}
}
