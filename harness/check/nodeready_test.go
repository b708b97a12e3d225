package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestNodeReady(t *testing.T) {
	sick := func(second float64) beat { return beat{second: second, status: "False", reason: "KubeletNotReady", message: pleg, node: ""} }
	well := func(second float64) beat {
		return beat{second: second, status: "True", reason: "KubeletReady", message: "kubelet is posting ready status", node: ""}
	}
	conditions := []bundle.Kind{bundle.Nodes}
	run(t, []question{
		{
			name: "not ready, for the right reason, since the fault", fill: watched(arm, 0, 400, well(0), sick(230)),
			met: check.True, seen: `Ready=False, reason KubeletNotReady, message "PLEG is not healthy: pleg was last seen active 4m2.1s ago`, evidence: conditions, detail: pleg,
		},
		{
			name: "ready", fill: watched(arm, 0, 400, well(0)),
			met: check.False, seen: "Ready=True, reason KubeletReady", evidence: conditions, detail: "posting ready", differs: []string{"10:00:00: Ready=True"},
		},
		{
			name: "ready again at the very end", fill: watched(arm, 0, 400, sick(230), well(394)),
			met: check.False, seen: "Ready=True", evidence: conditions, detail: "posting ready", differs: []string{"10:06:34: Ready=True"},
		},
		{
			name: "ready in between", fill: watched(arm, 0, 400, sick(230), well(385), sick(386)),
			met: check.False, seen: "Ready=False", evidence: conditions, detail: pleg, differs: []string{"10:06:25: Ready=True"},
		},
		{
			name: "ready before the last stretch, and after the end", fill: watched(arm, 0, 500, well(0), sick(379), well(396)),
			met: check.True, seen: "Ready=False", evidence: conditions, detail: pleg,
		},
		{
			name: "not ready since 14 seconds", fill: watched(arm, 0, 400, well(0), sick(381)),
			met: check.False, seen: "Ready=False", evidence: conditions, detail: pleg, differs: []string{"10:00:00: Ready=True"},
		},
		{
			name: "another error beside it",
			fill: watched(arm, 0, 400, beat{second: 230, status: "False", reason: "KubeletNotReady", message: "[container runtime is down, " + pleg + "]", node: ""}),
			met:  check.False, seen: "container runtime is down", evidence: conditions, detail: "is down", differs: []string{"container runtime is down"},
		},
		{
			name: "another reason", fill: watched(arm, 0, 400, beat{second: 230, status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status.", node: ""}),
			met: check.False, seen: "Ready=Unknown", evidence: conditions, detail: "stopped posting", differs: []string{"Ready=Unknown, reason NodeStatusUnknown"},
		},
		{
			name: "nobody looked at the end", fill: watched(arm, 0, 385, well(0), sick(230)),
			met: check.Unknown, seen: "nodes.conditions of vulnerable does not cover 10:06:20.0 to 10:06:35.0", evidence: conditions,
		},
		{
			name: "what was seen last must have held all that time before it was seen last", fill: watched(arm, 0, 393, well(0), sick(379)),
			met: check.False, seen: "Ready=False", evidence: conditions, detail: pleg, differs: []string{"10:00:00: Ready=True"},
		},
		{
			name: "a gap in the last stretch", fill: func(tr *trial) {
				watched(arm, 0, 1)(tr)
				st := tr.stream(bundle.Nodes, arm)
				tr.must(st.JSON(bundle.NodeStatus{Time: tr.at(230), Node: "worker", Status: "False", Reason: "KubeletNotReady", Message: pleg}))
				st.Alive(tr.at(400))
				st.Gap(tr.at(370), tr.at(390), "etcd request timed out")
			},
			met: check.Unknown, seen: "etcd request timed out", evidence: append(conditions, conditions...),
		},
		{
			name: "nothing was ever said", fill: watched(arm, 0, 400),
			met: check.Unknown, seen: "no condition of the node was recorded by 10:06:35", evidence: conditions,
		},
		{name: "the other arm's node", fill: watched(other, 0, 400, sick(230)), met: check.Unknown, seen: "no nodes.conditions was recorded for vulnerable"},
		{name: "a missing file", fill: watched(arm, 0, 400, sick(230)), damage: remove(t, bundle.Nodes), met: check.Unknown, seen: "is missing"},
		{
			name: "an arm's second node counts, too",
			fill: watched(arm, 0, 400, beat{second: 0, status: "True", reason: "KubeletReady", message: "ok", node: "worker2"}, sick(230)),
			met:  check.False, seen: "Ready=False", evidence: conditions, detail: pleg, differs: []string{"10:00:00: Ready=True"},
		},
		{
			name: "the phase was shorter than that", fill: func(tr *trial) {
				tr.enter(0, check.Recovery)
				tr.enter(10, bundle.EndPhase)
				st := tr.stream(bundle.Nodes, arm)
				tr.must(st.JSON(bundle.NodeStatus{Time: tr.at(-20), Node: "worker", Status: "False", Reason: "KubeletNotReady", Message: pleg}))
				st.Alive(tr.at(20))
			},
			met: check.Unknown, seen: "but for 10s only", evidence: conditions,
		},
		{
			name: "a phase that was too short to hold is long enough to differ", fill: func(tr *trial) {
				tr.enter(0, check.Recovery)
				tr.enter(10, bundle.EndPhase)
				st := tr.stream(bundle.Nodes, arm)
				tr.must(st.JSON(bundle.NodeStatus{Time: tr.at(-20), Node: "worker", Status: "True"}))
				st.Alive(tr.at(20))
			},
			met: check.False, seen: "Ready=True", evidence: conditions, differs: []string{"Ready=True"},
		},
		{name: "no such status", spec: `{"status":"true"}`, wanted: "Ready=true", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: `status is "true" (want True, False or Unknown)`},
		{name: "no pattern", spec: `{"message":"("}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "message: error parsing regexp"},
		{name: "no time", spec: `{"hold":"0s"}`, wanted: "Ready=False", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "hold is 0s (want above 0)"},
	}, func(q *question) {
		q.kind, q.scope = "nodeReady", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = over(t, `{"status":"False","reason":"KubeletNotReady","message":"^PLEG is not healthy: [^,]*$","hold":"15s"}`, q.spec)
		if q.wanted == "" {
			q.wanted = "Ready=False, reason KubeletNotReady, message like "
		}
	})
}
