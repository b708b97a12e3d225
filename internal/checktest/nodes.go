package checktest

import (
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Pleg is the message of a node that isn't ready because of its PLEG.
const Pleg = "PLEG is not healthy: pleg was last seen active 4m2.1s ago; threshold is 3m0s"

// Beat is a node's Ready condition that came up at a second.
type Beat struct {
	Second                  float64
	Status, Reason, Message string
	Node                    string
}

// Watched records conditions that were looked at each second of from..to.
func Watched(arm string, from, to float64, beats ...Beat) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		st := tr.Stream(bundle.Nodes, arm)
		for _, b := range beats {
			node := b.Node
			if node == "" {
				node = "worker"
			}
			tr.Must(
				st.JSON(bundle.NodeStatus{
					Time:    tr.At(b.Second),
					Node:    node,
					Status:  b.Status,
					Reason:  b.Reason,
					Message: b.Message,
				}),
			)
		}
		st.Alive(tr.At(from))
		st.Alive(tr.At(to))
	}
}

// Reading is what the interposer had counted at a second: n state changes delivered after the moment mark, of 200
// before it.
type Reading struct {
	Second float64
	Mark   float64
	N      int
	Pid    int
	ID     string
}

// Counted writes what the CRI interposer had counted at each reading.
func (tr *Trial) Counted(st *bundle.Stream, list ...Reading) {
	tr.T.Helper()
	for _, r := range list {
		c := control.Counts{
			PID:       r.Pid,
			StartedAt: tr.Start.Add(time.Duration(r.Pid) * time.Minute),
		}
		if r.ID != "" {
			c.Arms = []control.ArmRecord{{
				Life: control.Life{Arm: control.Arm{ID: r.ID}, Fault: control.FaultFlood}, Flood: &control.Flood{Pods: 300, ContainersPerPod: 10},
				DeliveredSandboxes: 0, DeliveredContainers: 200 + r.N,
				Delivered: []control.Bucket{
					{From: tr.At(r.Mark - 20).UnixNano(), To: tr.At(r.Mark - 20).UnixNano(), N: 200},
					{From: tr.At(r.Mark + 1).UnixNano(), To: tr.At(r.Mark + 1).UnixNano(), N: 200 + r.N},
				},
			}}
		}
		tr.Must(st.JSON(bundle.Stamped[control.Counts]{Time: tr.At(r.Second), Value: c}))
	}
}
