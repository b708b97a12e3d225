package check_test

import (
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const pleg = "PLEG is not healthy: pleg was last seen active 4m2.1s ago; threshold is 3m0s"

// beat is a node's Ready condition that came up at a second.
type beat struct {
	second                  float64
	status, reason, message string
	node                    string
}

// watched records conditions that were looked at each second of from..to.
func watched(arm string, from, to float64, beats ...beat) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		st := tr.stream(bundle.Nodes, arm)
		for _, b := range beats {
			node := b.node
			if node == "" {
				node = "worker"
			}
			tr.must(st.JSON(bundle.NodeStatus{Time: tr.at(b.second), Node: node, Status: b.status, Reason: b.reason, Message: b.message}))
		}
		st.Alive(tr.at(from))
		st.Alive(tr.at(to))
	}
}

// reading is what the interposer had counted at a second: n state changes delivered after the moment mark, of 200 before it.
type reading struct {
	second float64
	mark   float64
	n      int
	pid    int
	id     string
}

func (tr *trial) read(st *bundle.Stream, list ...reading) {
	tr.t.Helper()
	for _, r := range list {
		c := control.Counts{PID: r.pid, StartedAt: tr.start.Add(time.Duration(r.pid) * time.Minute)}
		if r.id != "" {
			c.Arms = []control.ArmRecord{{
				Life: control.Life{Arm: control.Arm{ID: r.id}, Fault: control.FaultFlood}, Flood: &control.Flood{Pods: 300, ContainersPerPod: 10},
				DeliveredSandboxes: 0, DeliveredContainers: 200 + r.n,
				Delivered: []control.Bucket{
					{From: tr.at(r.mark - 20).UnixNano(), To: tr.at(r.mark - 20).UnixNano(), N: 200},
					{From: tr.at(r.mark + 1).UnixNano(), To: tr.at(r.mark + 1).UnixNano(), N: 200 + r.n},
				},
			}}
		}
		tr.must(st.JSON(bundle.Stamped[control.Counts]{Time: tr.at(r.second), Value: c}))
	}
}
