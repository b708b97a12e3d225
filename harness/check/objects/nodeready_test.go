package objects_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestNodeReady(t *testing.T) {
	sick := func(second float64) checktest.Beat {
		return checktest.Beat{Second: second, Status: "False", Reason: "KubeletNotReady", Message: checktest.Pleg, Node: ""}
	}
	well := func(second float64) checktest.Beat {
		return checktest.Beat{Second: second, Status: "True", Reason: "KubeletReady", Message: "kubelet is posting ready status", Node: ""}
	}
	conditions := []bundle.Kind{bundle.Nodes}
	checktest.Run(t, []checktest.Question{
		{
			Name: "not ready, for the right reason, since the fault", Fill: checktest.Watched(checktest.Arm, 0, 400, well(0), sick(230)),
			Met: check.True, Seen: `Ready=False, reason KubeletNotReady, message "PLEG is not healthy: pleg was last seen active 4m2.1s ago`, Evidence: conditions, Detail: checktest.Pleg,
		},
		{
			Name: "ready", Fill: checktest.Watched(checktest.Arm, 0, 400, well(0)),
			Met: check.False, Seen: "Ready=True, reason KubeletReady", Evidence: conditions, Detail: "posting ready", Differs: []string{"10:00:00: Ready=True"},
		},
		{
			Name: "ready again at the very end", Fill: checktest.Watched(checktest.Arm, 0, 400, sick(230), well(394)),
			Met: check.False, Seen: "Ready=True", Evidence: conditions, Detail: "posting ready", Differs: []string{"10:06:34: Ready=True"},
		},
		{
			Name: "ready in between", Fill: checktest.Watched(checktest.Arm, 0, 400, sick(230), well(385), sick(386)),
			Met: check.False, Seen: "Ready=False", Evidence: conditions, Detail: checktest.Pleg, Differs: []string{"10:06:25: Ready=True"},
		},
		{
			Name: "ready before the last stretch, and after the end", Fill: checktest.Watched(checktest.Arm, 0, 500, well(0), sick(379), well(396)),
			Met: check.True, Seen: "Ready=False", Evidence: conditions, Detail: checktest.Pleg,
		},
		{
			Name: "not ready since 14 seconds", Fill: checktest.Watched(checktest.Arm, 0, 400, well(0), sick(381)),
			Met: check.False, Seen: "Ready=False", Evidence: conditions, Detail: checktest.Pleg, Differs: []string{"10:00:00: Ready=True"},
		},
		{
			Name: "another error beside it",
			Fill: checktest.Watched(checktest.Arm, 0, 400, checktest.Beat{Second: 230, Status: "False", Reason: "KubeletNotReady", Message: "[container runtime is down, " + checktest.Pleg + "]", Node: ""}),
			Met:  check.False, Seen: "container runtime is down", Evidence: conditions, Detail: "is down", Differs: []string{"container runtime is down"},
		},
		{
			Name: "another reason", Fill: checktest.Watched(checktest.Arm, 0, 400, checktest.Beat{Second: 230, Status: "Unknown", Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.", Node: ""}),
			Met: check.False, Seen: "Ready=Unknown", Evidence: conditions, Detail: "stopped posting", Differs: []string{"Ready=Unknown, reason NodeStatusUnknown"},
		},
		{
			Name: "nobody looked at the end", Fill: checktest.Watched(checktest.Arm, 0, 385, well(0), sick(230)),
			Met: check.Unknown, Code: check.Gap, Seen: "nodes.conditions of vulnerable does not cover 10:06:20.0 to 10:06:35.0", Evidence: conditions,
		},
		{
			Name: "what was seen last must have held all that time before it was seen last", Fill: checktest.Watched(checktest.Arm, 0, 393, well(0), sick(379)),
			Met: check.False, Seen: "Ready=False", Evidence: conditions, Detail: checktest.Pleg, Differs: []string{"10:00:00: Ready=True"},
		},
		{
			Name: "a gap in the last stretch", Fill: func(tr *checktest.Trial) {
				checktest.Watched(checktest.Arm, 0, 1)(tr)
				st := tr.Stream(bundle.Nodes, checktest.Arm)
				tr.Must(st.JSON(bundle.NodeStatus{Time: tr.At(230), Node: "worker", Status: "False", Reason: "KubeletNotReady", Message: checktest.Pleg}))
				st.Alive(tr.At(400))
				st.Gap(tr.At(370), tr.At(390), "etcd request timed out")
			},
			Met: check.Unknown, Seen: "etcd request timed out", Evidence: append(conditions, conditions...),
		},
		{
			Name: "nothing was ever said", Fill: checktest.Watched(checktest.Arm, 0, 400),
			Met: check.Unknown, Seen: "no condition of the node was recorded by 10:06:35", Evidence: conditions,
		},
		{Name: "the other arm's node", Fill: checktest.Watched(checktest.Other, 0, 400, sick(230)), Met: check.Unknown, Code: check.NotRecorded, Seen: "no nodes.conditions was recorded for vulnerable"},
		{Name: "a missing file", Fill: checktest.Watched(checktest.Arm, 0, 400, sick(230)), Damage: checktest.Remove(t, bundle.Nodes), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
		{
			Name: "an arm's second node counts, too",
			Fill: checktest.Watched(checktest.Arm, 0, 400, checktest.Beat{Second: 0, Status: "True", Reason: "KubeletReady", Message: "ok", Node: "worker2"}, sick(230)),
			Met:  check.False, Seen: "Ready=False", Evidence: conditions, Detail: checktest.Pleg, Differs: []string{"10:00:00: Ready=True"},
		},
		{
			Name: "the phase was shorter than that", Fill: func(tr *checktest.Trial) {
				tr.Enter(0, check.Recovery)
				tr.Enter(10, bundle.EndPhase)
				st := tr.Stream(bundle.Nodes, checktest.Arm)
				tr.Must(st.JSON(bundle.NodeStatus{Time: tr.At(-20), Node: "worker", Status: "False", Reason: "KubeletNotReady", Message: checktest.Pleg}))
				st.Alive(tr.At(20))
			},
			Met: check.Unknown, Code: check.TooShort, Seen: "but for 10s only", Evidence: conditions,
		},
		{
			Name: "a phase that was too short to hold is long enough to differ", Fill: func(tr *checktest.Trial) {
				tr.Enter(0, check.Recovery)
				tr.Enter(10, bundle.EndPhase)
				st := tr.Stream(bundle.Nodes, checktest.Arm)
				tr.Must(st.JSON(bundle.NodeStatus{Time: tr.At(-20), Node: "worker", Status: "True"}))
				st.Alive(tr.At(20))
			},
			Met: check.False, Seen: "Ready=True", Evidence: conditions, Differs: []string{"Ready=True"},
		},
		{Name: "no such status", Spec: `{"status":"true"}`, Wanted: "Ready=true", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: `status is "true" (want True, False or Unknown)`},
		{Name: "no pattern", Spec: `{"message":"("}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "message: error parsing regexp"},
		{Name: "no time", Spec: `{"hold":"0s"}`, Wanted: "Ready=False", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "hold is 0s (want above 0)"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "nodeReady", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = checktest.Over(t, `{"status":"False","reason":"KubeletNotReady","message":"^PLEG is not healthy: [^,]*$","hold":"15s"}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "Ready=False, reason KubeletNotReady, message like "
		}
	})
}
