package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// apart plans the scenario with a cluster for each arm, the vulnerable one of an older version.
func apart(t *testing.T, o plan.Options) *plan.Plan {
	t.Helper()
	s := load(t)
	s.Spec.Placement = "cluster"
	s.Spec.Args = map[string]map[string]string{"kube-apiserver": {"v": "4"}, "kubelet": {"v": "2"}}
	s.Spec.Memory = map[string]string{"kube-apiserver": "512Mi", "etcd": ""}
	for i, a := range s.Spec.Pairs[0].Arms {
		if a.Role == scenario.Vulnerable {
			s.Spec.Pairs[0].Arms[i].Source.Version = "v1.22.2"
		}
	}
	p, err := plan.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestClusterForEachArm(t *testing.T) {
	p := apart(t, plan.Options{})
	tr := p.Trials[0]
	if len(tr.Clusters) != 2 || !reflect.DeepEqual(p.Versions(), []string{"v1.22.2", "v1.34.4"}) {
		t.Fatalf("%d clusters of the versions %v", len(tr.Clusters), p.Versions())
	}
	for i, arm := range []string{"vulnerable", "fixed"} {
		c := tr.ClusterOf(arm)
		if c == nil || c.Name != arm || c != &tr.Clusters[i] {
			t.Fatalf("arm %s lives in %+v", arm, c)
		}
		n := c.Topology.Nodes[0]
		if len(c.Topology.Nodes) != 1 || n.Name != "control-plane" || tr.Arms[i].Node != n.Name || n.Labels[plan.ArmLabel] != arm {
			t.Errorf("the nodes of %s: %+v, and the arm is on %s", arm, c.Topology.Nodes, tr.Arms[i].Node)
		}
		if n.Args["kube-apiserver"]["v"] != "4" || n.Args["kubelet"]["v"] != "2" {
			t.Errorf("the flags in %s: %v", arm, n.Args)
		}
		if !reflect.DeepEqual(c.Memory, map[string]string{"kube-apiserver": "512Mi"}) {
			t.Errorf("the limits in %s: %v", arm, c.Memory)
		}
	}
}

// A pair's flags lie beside the scenario's, win over them, and leave the other pairs alone.
func TestFlagsOfAPair(t *testing.T) {
	s := load(t)
	s.Spec.Placement = "cluster"
	s.Spec.Args = map[string]map[string]string{"kube-apiserver": {"v": "4", "slow": "1s"}}
	other := s.Spec.Pairs[0]
	other.Name, other.Default = "old", false
	other.Args = map[string]map[string]string{"kube-apiserver": {"v": "2", "feature-gates": "A=false"}, "kubelet": {"v": "6"}}
	s.Spec.Pairs = append(s.Spec.Pairs, other)
	p, err := plan.New(s, plan.Options{Pair: plan.AllPairs})
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range p.Trials {
		want := map[string]map[string]string{"kube-apiserver": {"v": "4", "slow": "1s"}}
		if tr.Pair == "old" {
			want = map[string]map[string]string{"kube-apiserver": {"v": "2", "slow": "1s", "feature-gates": "A=false"}, "kubelet": {"v": "6"}}
		}
		for _, c := range tr.Clusters {
			if got := c.Topology.Nodes[0].Args; !reflect.DeepEqual(got, want) {
				t.Errorf("pair %s: flags %v, want %v", tr.Pair, got, want)
			}
		}
	}
	const want = "adding candidates: the pair old has flags of its own, which only its versions are known to take: want another --pair"
	o := plan.Options{Pair: "old", Candidates: []plan.Candidate{{Source: &scenario.Source{Binary: "/b"}}}}
	if _, err = plan.New(s, o); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a candidate in the pair: %v, want %s", err, want)
	}
}

func TestConcurrency(t *testing.T) {
	for name, tc := range map[string]struct {
		o      plan.Options
		why    string
		groups [][]string
	}{
		"room":      {plan.Options{FreeMemory: 20 << 30}, "2 clusters at once: they need 4.0 GiB of memory, and 20.0 GiB are free", [][]string{{"vulnerable", "fixed"}}},
		"no room":   {plan.Options{FreeMemory: 3 << 30}, "one cluster after the other: 2 at once need 4.0 GiB of memory, and 3.0 GiB are free", [][]string{{"vulnerable"}, {"fixed"}}},
		"asked for": {plan.Options{FreeMemory: 20 << 30, Sequential: true}, "one cluster after the other, as asked for", [][]string{{"vulnerable"}, {"fixed"}}},
		"unknown":   {plan.Options{}, "2 clusters at once; how much memory is free was not asked", [][]string{{"vulnerable", "fixed"}}},
		"one arm":   {plan.Options{FreeMemory: 1 << 30, Arms: []string{"fixed"}}, "", [][]string{{"fixed"}}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := apart(t, tc.o).Trials[0]
			if tr.Why != tc.why || !reflect.DeepEqual(tr.Groups(), tc.groups) {
				t.Errorf("%q, groups %v", tr.Why, tr.Groups())
			}
		})
	}
}

// Arms that share a cluster share its steady state, also where they are faulted in turn.
func TestArmsOfOneClusterShareItsSteadyState(t *testing.T) {
	p, err := plan.New(load(t), plan.Options{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Trials[0].Groups(); !reflect.DeepEqual(got, [][]string{{"vulnerable", "fixed"}}) {
		t.Errorf("groups %v", got)
	}
}

// Trials at once are as many as memory and cores have room for, by the nodes that each has at once.
func TestAsManyTrialsRunAtOnceAsMemoryAndCoresAllow(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		trials, cores int
		free          int64
		change        func(*scenario.Spec)
		refused       string
	}{
		{trials: 1, cores: 2, free: 0},
		{trials: 2, cores: 2, free: 8 * gib, change: ownClusters},
		{trials: 2, cores: 2, free: 0, change: ownClusters},
		{trials: 3, cores: 2, free: 64 * gib, change: ownClusters, refused: "3 trials at once have 6 nodes, of which each needs " +
			"2.0 GiB of memory and half a core, and there are 64.0 GiB and 2 cores (want at most 2)"},
		{trials: 2, cores: 8, free: 7 * gib, change: ownClusters, refused: "(want at most 1)"},
		{trials: 2, cores: 2, free: 64 * gib, refused: "2 trials at once have 6 nodes"}, // a control plane and a node for each arm
	} {
		s := load(t)
		if c.change != nil {
			c.change(&s.Spec)
		}
		p, err := plan.New(s, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Parallel(c.trials, c.cores, c.free)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func ownClusters(s *scenario.Spec) { s.Placement, s.Restart = plan.PlacementCluster, nil }

// A pair may say of which version its clusters are, so that the arms differ in the subject alone. It holds for arms that may
// run there by the version skew policy.
func TestTheClusterVersionOfAPair(t *testing.T) {
	for _, c := range []struct{ arm, want string }{{"v1.34.1", "v1.34.2"}, {"v1.33.5", "v1.34.2"}, {"v1.22.2", "v1.22.2"}} {
		s := load(t)
		s.Spec.Placement = "cluster"
		s.Spec.Pairs[0].ClusterVersion = "v1.34.2"
		for i, a := range s.Spec.Pairs[0].Arms {
			if a.Role == scenario.Vulnerable {
				s.Spec.Pairs[0].Arms[i].Source.Version = c.arm
			}
		}
		p, err := plan.New(s, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr := p.Trials[0]
		if got := tr.ClusterOf("vulnerable").Topology.Version; got != c.want {
			t.Errorf("the cluster of an arm of %s is of %s, want %s", c.arm, got, c.want)
		}
		if got := tr.ClusterOf("fixed").Topology.Version; got != "v1.34.2" {
			t.Errorf("the fixed arm's cluster is of %s, want v1.34.2", got)
		}
	}
}
