package kinds_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// clusterNamed gives the trial's clusters their name.
func clusterNamed(tr *checktest.Trial) { tr.Must(tr.W.SetWorld(bundle.World{Run: "relapse-x"})) }

// leased looks at nodes' Leases every two seconds of from..to; renewed says when a node's was renewed last, as of a
// second, below 0 that it has none.
func leased(tr *checktest.Trial, arm string, from, to float64, renewed map[string]func(float64) float64) *bundle.Stream {
	clusterNamed(tr)
	tr.Phases()
	st := tr.Stream(bundle.Leases, arm)
	for s := from; s <= to; s += 2 {
		for node, when := range renewed {
			if at := when(s); at >= 0 {
				tr.Must(st.JSON(bundle.LeaseSample{Time: tr.At(s), Node: node, Renewed: tr.At(at), Seconds: 40}))
			}
		}
		st.Alive(tr.At(s + 0.1))
	}
	return st
}

// beats renews every ten seconds; stops does so up to a second.
func beats(s float64) float64 { return s - float64(int(s)%10) }

func stops(at float64) func(float64) float64 {
	return func(s float64) float64 { return beats(min(s, at)) }
}

func TestLeaseStale(t *testing.T) {
	type at = map[string]func(float64) float64
	leases := []bundle.Kind{bundle.Leases}
	shared := func(from, to float64, nodes at) func(*checktest.Trial) {
		return func(tr *checktest.Trial) { leased(tr, bundle.Shared, from, to, nodes) }
	}
	seenOn := func(tr *checktest.Trial, arm, fault, node string) {
		tr.W.Emit(event.Event{Time: tr.At(100), Type: event.FaultSeen, Arm: arm, Message: "off", Fields: map[string]any{"fault": fault, "node": node}})
	}
	const two = "relapse-x-worker2"
	gone := at{two: stops(60), "relapse-x-worker": beats}
	checktest.Run(t, []checktest.Question{
		{Name: "since long", Fill: shared(0, 400, gone), Met: check.True, From: bundle.Shared, Evidence: leases,
			Seen: "the Lease of relapse-x-worker2 was renewed last at 10:01:00 and is good for 40s"},
		{Name: "of an arm's own cluster", Fill: func(tr *checktest.Trial) {
			leased(tr, checktest.Arm, 0, 400, at{"relapse-x-vulnerable-worker2": stops(60)})
		},
			Met: check.True, Evidence: leases, Seen: "the Lease of relapse-x-vulnerable-worker2 was renewed last"},
		{Name: "renewed all the time", Spec: `{"nodes":["worker"]}`, Fill: shared(0, 400, gone), Met: check.False, From: bundle.Shared, Evidence: leases,
			Seen: "the Lease of relapse-x-worker was renewed last at 10:04:50", Differs: []string{"relapse-x-worker: it runs out at 10:05:30"}},
		{Name: "one of two", Spec: `{"nodes":["worker2","worker"]}`, Fill: shared(0, 400, gone), Met: check.False, From: bundle.Shared, Evidence: leases,
			Seen: "relapse-x-worker2 was renewed last at 10:01:00 and is good for 40s; the Lease of relapse-x-worker", Differs: []string{"relapse-x-worker: it runs out"}},
		{Name: "not renewed, and still good", Fill: shared(0, 400, at{two: stops(279)}), Met: check.False, From: bundle.Shared, Evidence: leases,
			Seen: "renewed last at 10:04:30", Differs: []string{"it runs out at 10:05:10"}},
		{Name: "run out within the stretch", Fill: shared(0, 400, at{two: stops(245)}), Met: check.False, From: bundle.Shared, Evidence: leases,
			Seen: "renewed last at 10:04:00", Differs: []string{"it runs out at 10:04:40"}, Spec: `{"for":"11s"}`},
		{Name: "renewed once more at the end", Fill: shared(0, 400, at{two: func(s float64) float64 {
			if s < 287 {
				return 60
			}
			return 287
		}}), Met: check.False, From: bundle.Shared, Evidence: leases, Seen: "renewed last at 10:04:47", Differs: []string{"it runs out at 10:05:27"}},
		{Name: "renewed after the phase", Fill: shared(0, 400, at{two: func(s float64) float64 {
			if s < 291 {
				return 60
			}
			return 291
		}}), Met: check.True, From: bundle.Shared, Evidence: leases, Seen: "renewed last at 10:01:00"},
		{Name: "a name that ends alike", Spec: `{"nodes":["er2"]}`, Wanted: "the Lease of er2", Fill: shared(0, 400, gone), Met: check.Unknown, From: bundle.Shared, Evidence: leases,
			Seen: "no Lease of a node er2 was recorded (there are those of relapse-x-"},
		{Name: "another cluster's", Fill: shared(0, 400, at{"relapse-y-worker2": stops(60)}), Met: check.Unknown, From: bundle.Shared, Evidence: leases,
			Seen: "no Lease of a node worker2 was recorded (there are those of relapse-y-worker2)"},
		{Name: "a Lease that is gone", Fill: shared(0, 400, at{"relapse-x-worker": beats, two: func(s float64) float64 {
			if s > 270 {
				return -1
			}
			return 60
		}}), Met: check.Unknown, From: bundle.Shared, Evidence: leases, Seen: "no Lease of relapse-x-worker2 was recorded by 10:04:50"},
		{Name: "nobody looked at the end", Fill: shared(0, 270, gone), Met: check.Unknown, Code: check.Gap, From: bundle.Shared, Evidence: leases, Seen: "leases of shared does not cover 10:04:40.0 to 10:04:50.0"},
		{Name: "a gap", Fill: func(tr *checktest.Trial) {
			leased(tr, bundle.Shared, 0, 400, gone).Gap(tr.At(270), tr.At(286), "connection refused")
		}, Met: check.Unknown, From: bundle.Shared, Evidence: leases, Seen: "connection refused"},
		{Name: "nothing recorded", Fill: func(tr *checktest.Trial) { clusterNamed(tr); tr.Phases() }, Met: check.Unknown, Code: check.NotRecorded, Seen: "no leases was recorded for vulnerable"},
		{Name: "a missing file", Fill: shared(0, 400, gone), Damage: checktest.Remove(t, bundle.Leases), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
		{Name: "the phase was too short", Spec: `{"for":"300s"}`, Fill: shared(0, 400, at{two: func(float64) float64 { return 0 }}), Met: check.Unknown,
			From: bundle.Shared, Evidence: leases, Seen: "renewed last at 10:00:00 and is good for 40s, but for 4m10s only"},
		{Name: "too short a phase is long enough to differ", Spec: `{"for":"300s"}`, Fill: shared(0, 400, at{two: stops(60)}), Met: check.False,
			From: bundle.Shared, Evidence: leases, Seen: "renewed last at 10:01:00", Differs: []string{"it runs out at 10:01:40"}},
		{Name: "the fault's node", Spec: `{"nodes":null,"fault":"off"}`, Fill: func(tr *checktest.Trial) {
			leased(tr, bundle.Shared, 0, 400, gone)
			seenOn(tr, bundle.Shared, "off", two)
			seenOn(tr, bundle.Shared, "other", "relapse-x-worker")
			seenOn(tr, checktest.Other, "off", "relapse-x-worker")
		}, Wanted: "the Lease of the nodes of the fault off run out", Met: check.True, From: bundle.Shared, Evidence: leases, Seen: "the Lease of relapse-x-worker2"},
		{Name: "a fault that was seen nowhere", Spec: `{"nodes":null,"fault":"off"}`, Fill: shared(0, 400, gone), Wanted: "the fault off",
			Met: check.Unknown, From: bundle.Shared, Evidence: leases, Seen: "the fault off was seen on no node"},
		{Name: "both", Spec: `{"fault":"off"}`, Fill: shared(0, 400, gone), Wanted: "Lease", Met: check.Unknown, Code: check.BadCheck, Seen: "want either nodes, by name, or the fault"},
		{Name: "neither", Spec: `{"nodes":[]}`, Fill: shared(0, 400, gone), Wanted: "Lease", Met: check.Unknown, Code: check.BadCheck, Seen: "want either nodes, by name, or the fault"},
		{Name: "no time", Spec: `{"for":"soon"}`, Fill: shared(0, 400, gone), Met: check.Unknown, Code: check.BadCheck, Seen: `for is "soon" (want a duration with its unit: 3m)`},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "leaseStale", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"nodes":["worker2"],"for":"10s"}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "the Lease of worker"
		}
	})
}

// A named node's condition is read from what was recorded of all nodes, and the arm's own from its own.
func TestNodeReadyOfAnotherNode(t *testing.T) {
	conditions := []bundle.Kind{bundle.Nodes}
	gone := checktest.Beat{Second: 100, Status: "Unknown", Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status.", Node: "relapse-x-worker2"}
	well := func(node string) checktest.Beat {
		return checktest.Beat{Second: 0, Status: "True", Reason: "KubeletReady", Message: "ok", Node: node}
	}
	all := func(arm string, beats ...checktest.Beat) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			clusterNamed(tr)
			checktest.Watched(arm, 0, 400, beats...)(tr)
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "gone", Fill: all(bundle.Shared, well("relapse-x-worker"), well("relapse-x-worker2"), gone), Met: check.True, From: bundle.Shared,
			Evidence: conditions, Seen: "Ready=Unknown, reason NodeStatusUnknown", Detail: "stopped posting"},
		{Name: "well", Spec: `{"node":"worker"}`, Wanted: "worker Ready=Unknown", Fill: all(bundle.Shared, well("relapse-x-worker"), well("relapse-x-worker2"), gone),
			Met: check.False, From: bundle.Shared, Evidence: conditions, Seen: "Ready=True", Detail: "ok", Differs: []string{"Ready=True"}},
		{Name: "of a cluster of the arm's own", Fill: all(checktest.Arm, checktest.Beat{Second: 100, Status: "Unknown", Reason: "", Message: "", Node: "relapse-x-vulnerable-worker2"}), Met: check.True, Evidence: conditions, Seen: "Ready=Unknown"},
		{Name: "no such node", Spec: `{"node":"ker2"}`, Wanted: "ker2", Fill: all(bundle.Shared, well("relapse-x-worker"), gone), Met: check.Unknown, From: bundle.Shared,
			Evidence: conditions, Seen: "no condition of a node ker2 was recorded (there are those of relapse-x-worker, relapse-x-worker2)"},
		{Name: "nobody looked at all nodes", Fill: all(checktest.Arm, well("relapse-x-worker")), Met: check.Unknown, Evidence: conditions,
			Seen: "no condition of a node worker2 was recorded (there are those of relapse-x-worker)"},
		{Name: "the arm's own node is not another's", Spec: `{"node":""}`, Wanted: "Ready=Unknown", Fill: func(tr *checktest.Trial) {
			all(bundle.Shared, gone)(tr)
			st := tr.Stream(bundle.Nodes, checktest.Arm)
			tr.Must(st.JSON(bundle.NodeStatus{Time: tr.At(0), Node: "relapse-x-worker", Status: "True"}))
			st.Alive(tr.At(400))
		}, Met: check.False, Evidence: conditions, Seen: "Ready=True", Differs: []string{"Ready=True"}},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "nodeReady", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"node":"worker2","status":"Unknown","hold":"15s"}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "worker2 Ready=Unknown"
		}
	})
}
