package conformance_test

import (
	"encoding/json"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	checks.add(checkCase{evidence: probed}, "probeDone")
}

// probed probes the subject twice: once successfully, and once while the subject's kubelet is idle.
func probed(t *testing.T, s *staged) {
	t.Helper()
	node := s.nodes[0].Node
	for _, name := range []string{"works", "idle"} {
		l, err := kinds.Decode[load.Load](kinds.Load, "podProbe", json.RawMessage(`{"timeout":"3s","tries":1}`))
		if err != nil {
			t.Fatal(err)
		}
		to := load.Target{Run: "run", Name: name, Arm: arm, Cluster: s.Cluster, Nodes: []cluster.Node{node}, Events: s.events}
		if err := l.Prepare(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		s.API().IdleKubelet(node.Name(), name == "idle")
		if err := l.Run(t.Context(), to, s.w); err != nil {
			t.Fatal(err)
		}
	}
	s.API().IdleKubelet(node.Name(), false)
}
