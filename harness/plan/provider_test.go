package plan_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// anywhere is a scenario for both providers, of which each has a check and a collector to itself.
func anywhere(t *testing.T) *scenario.Scenario {
	t.Helper()
	s := load(t)
	s.Spec.Providers = []string{providers.Kind, providers.Processes}
	mine := s.Spec.Collectors[0]
	mine.Name, mine.Providers = "only-kind", []string{providers.Kind}
	s.Spec.Collectors = append(s.Spec.Collectors, mine)
	on := func(name, provider string) scenario.Check {
		c := s.Spec.Steady[0]
		c.Name, c.Providers = name, []string{provider}
		return c
	}
	s.Spec.Steady = append(s.Spec.Steady, on("seen-by-kind", providers.Kind), scenario.Check{CheckHeader: scenario.CheckHeader{Name: "either"},
		AnyOf: []scenario.Check{
			on("of-kind", providers.Kind), on("of-processes", providers.Processes)}})
	return s
}

func TestProvidersHaveChecksToThemselves(t *testing.T) {
	for _, c := range []struct{ asked, planned, collectors, steady string }{
		{"", "", "only-kind", "ready seen-by-kind either(of-kind)"},
		{providers.Kind, "", "only-kind", "ready seen-by-kind either(of-kind)"},
		{providers.Processes, providers.Processes, "", "ready either(of-processes)"},
	} {
		p, err := plan.New(anywhere(t), plan.Options{Provider: c.asked})
		if err != nil {
			t.Fatal(err)
		}
		var steady []string
		for _, k := range p.Trials[0].Steady {
			name := k.Name
			for _, a := range k.AnyOf {
				name += "(" + a.Name + ")"
			}
			steady = append(steady, name)
		}
		collectors := ""
		for _, k := range p.Trials[0].Collectors {
			if strings.HasPrefix(k.Name, "only-") {
				collectors = k.Name
			}
		}
		if p.Provider != c.planned || collectors != c.collectors || strings.Join(steady, " ") != c.steady {
			t.Errorf("for %q: provider %q, collectors %q, steady %q; want %q, %q, %q", c.asked, p.Provider, collectors,
				steady, c.planned, c.collectors, c.steady)
		}
		said := strings.Contains(strings.Join(p.Trials[0].Modelled, " "), "plain processes of one host")
		if said != (c.planned == providers.Processes) {
			t.Errorf("for %q it models %q", c.asked, p.Trials[0].Modelled)
		}
	}
}

func TestProviderIsRefused(t *testing.T) {
	s := anywhere(t)
	s.Spec.Steady[2].AnyOf = s.Spec.Steady[2].AnyOf[:1]
	_, err := plan.New(s, plan.Options{Provider: providers.Processes})
	if want := `planning pleg: check "either" has no alternative for the pair modern on the provider processes`; err == nil ||
		err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = plan.New(load(t), plan.Options{Provider: providers.Processes})
	if want := "planning pleg: it can't run on the provider processes, only on kind (spec.providers)"; err == nil ||
		err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// machines returns what clusters with real nodes can do.
func machines(t *testing.T) cluster.Capabilities {
	t.Helper()
	have, err := new(clustertest.Provider).Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// What takes machines is refused where there are none, each with its reason.
func TestProviderWithoutMachines(t *testing.T) {
	s := load(t)
	s.Spec.Memory = map[string]string{"kube-apiserver": "1Gi"}
	s.Spec.Collectors = append(s.Spec.Collectors, scenario.Collector{CollectorHeader: scenario.CollectorHeader{Name: "node", Kind: "nodeConditions"}})
	all := machines(t)
	none, seams := all, all
	none.NodeFiles, none.Kubelets, none.NoMemoryLimits = false, false, "there is no cgroup"
	seams.NodeFiles, seams.Seams = false, []string{"testWire"}
	for _, c := range []struct {
		have cluster.Capabilities
		want []string
	}{
		{none, []string{
			"the seam testWire is files of nodes, which this provider can't install",
			"the memory of components can't be limited here: there is no cgroup",
			"an arm is a part of a node that has a kubelet (placement: node), and this provider has no kubelets",
			`collector "node" records what kubelets do, and this provider has none`,
		}},
		{seams, nil},
		{all, nil},
	} {
		_, err := plan.New(s, plan.Options{Capabilities: &c.have})
		if len(c.want) == 0 && err != nil {
			t.Errorf("with %+v: %v", c.have, err)
		}
		for _, w := range c.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("got  %v\nwant %s", err, w)
			}
		}
	}
	s.Spec.Placement, s.Spec.Restart = plan.PlacementCluster, nil
	seams.Kubelets = false
	_, err := plan.New(s, plan.Options{Capabilities: &seams})
	if want := "the subject kubelet runs on nodes that have a kubelet, and this provider has no kubelets"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A connection whose client a provider doesn't run is refused with that reason.
func TestAConnectionThatAProviderLacks(t *testing.T) {
	for of, client := range map[string]string{"kubelet-apiserver": "kubelet", "kube-proxy-apiserver": "kube-proxy"} {
		s, have := load(t), machines(t)
		s.Spec.Seams, have.NodeFiles, have.Seams = append(s.Spec.Seams, of), false, []string{"testWire"}
		_, err := plan.New(s, plan.Options{Capabilities: &have})
		want := "the seam " + of + " stands between " + client + " and what it connects to, and this provider runs no " + client
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Nodes are simulated where the provider has none of its own, and the verdict says so.
func TestNodesAreSimulatedWhereTheProviderHasNone(t *testing.T) {
	s := anywhere(t)
	s.Spec.Placement, s.Spec.Restart = plan.PlacementCluster, nil
	have := machines(t)
	have.NodeFiles, have.Kubelets, have.Seams = false, false, []string{"testWire"}
	const said = "nodes and pods are simulated by kwok: 3 Node objects"
	for provider, want := range map[string]int{providers.Kind: 0, providers.Processes: 3} {
		s.Spec.Nodes = &scenario.Nodes{Simulated: 3}
		p, err := plan.New(s, plan.Options{Provider: provider})
		if err != nil {
			t.Fatal(err)
		}
		got, modelled := p.Trials[0].Clusters[0].Topology.Simulated, strings.Join(p.Trials[0].Modelled, "; ")
		if got != want || strings.Contains(modelled, said) != (want > 0) || strings.Contains(modelled, "no nodes") {
			t.Errorf("on %s %d are simulated, and the verdict names %q", provider, got, modelled)
		}
	}
	p, err := plan.New(s, plan.Options{Provider: providers.Processes})
	if err != nil {
		t.Fatal(err)
	}
	const refused = "nodes are simulated only where there are no kubelets, and this provider has them"
	if err := p.ValidateFor(machines(t)); err == nil ||
		!strings.Contains(err.Error(), refused) {
		t.Errorf("got  %v\nwant %s", err, refused)
	}
	s.Spec.Faults[0].Kind, s.Spec.Faults[0].Spec = "objects", []byte(`{"verb":"delete","manifests":[{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"$(node)"}}]}`)
	for _, nodes := range []*scenario.Nodes{nil, {Simulated: 1}} {
		s.Spec.Nodes = nodes
		want := `acts on Node objects, and this provider has none but simulated ones (nodes: {simulated: 1})`
		_, err := plan.New(s, plan.Options{Provider: providers.Processes, Capabilities: &have})
		if (err != nil && strings.Contains(err.Error(), want)) != (nodes == nil) {
			t.Errorf("with the nodes %+v: %v", nodes, err)
		}
	}
}
