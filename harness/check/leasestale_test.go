package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// clusterNamed gives the trial's clusters their name.
func clusterNamed(tr *trial) { tr.must(tr.w.SetWorld(bundle.World{Run: "relapse-x"})) }

// leased looks at nodes' Leases every two seconds of from..to; renewed says when a node's was renewed last, as of a second, below 0 that it has none.
func leased(tr *trial, arm string, from, to float64, renewed map[string]func(float64) float64) *bundle.Stream {
	clusterNamed(tr)
	tr.phases()
	st := tr.stream(bundle.Leases, arm)
	for s := from; s <= to; s += 2 {
		for node, when := range renewed {
			if at := when(s); at >= 0 {
				tr.must(st.JSON(bundle.LeaseSample{Time: tr.at(s), Node: node, Renewed: tr.at(at), Seconds: 40}))
			}
		}
		st.Alive(tr.at(s + 0.1))
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
	shared := func(from, to float64, nodes at) func(*trial) {
		return func(tr *trial) { leased(tr, bundle.Shared, from, to, nodes) }
	}
	seenOn := func(tr *trial, arm, fault, node string) {
		tr.w.Emit(event.Event{Time: tr.at(100), Type: event.FaultSeen, Arm: arm, Message: "off", Fields: map[string]any{"fault": fault, "node": node}})
	}
	const two = "relapse-x-worker2"
	gone := at{two: stops(60), "relapse-x-worker": beats}
	run(t, []question{
		{name: "since long", fill: shared(0, 400, gone), met: check.True, from: bundle.Shared, evidence: leases,
			seen: "the Lease of relapse-x-worker2 was renewed last at 10:01:00 and is good for 40s"},
		{name: "of an arm's own cluster", fill: func(tr *trial) { leased(tr, arm, 0, 400, at{"relapse-x-vulnerable-worker2": stops(60)}) },
			met: check.True, evidence: leases, seen: "the Lease of relapse-x-vulnerable-worker2 was renewed last"},
		{name: "renewed all the time", spec: `{"nodes":["worker"]}`, fill: shared(0, 400, gone), met: check.False, from: bundle.Shared, evidence: leases,
			seen: "the Lease of relapse-x-worker was renewed last at 10:04:50", differs: []string{"relapse-x-worker: it runs out at 10:05:30"}},
		{name: "one of two", spec: `{"nodes":["worker2","worker"]}`, fill: shared(0, 400, gone), met: check.False, from: bundle.Shared, evidence: leases,
			seen: "relapse-x-worker2 was renewed last at 10:01:00 and is good for 40s; the Lease of relapse-x-worker", differs: []string{"relapse-x-worker: it runs out"}},
		{name: "not renewed, and still good", fill: shared(0, 400, at{two: stops(279)}), met: check.False, from: bundle.Shared, evidence: leases,
			seen: "renewed last at 10:04:30", differs: []string{"it runs out at 10:05:10"}},
		{name: "run out within the stretch", fill: shared(0, 400, at{two: stops(245)}), met: check.False, from: bundle.Shared, evidence: leases,
			seen: "renewed last at 10:04:00", differs: []string{"it runs out at 10:04:40"}, spec: `{"for":"11s"}`},
		{name: "renewed once more at the end", fill: shared(0, 400, at{two: func(s float64) float64 {
			if s < 287 {
				return 60
			}
			return 287
		}}), met: check.False, from: bundle.Shared, evidence: leases, seen: "renewed last at 10:04:47", differs: []string{"it runs out at 10:05:27"}},
		{name: "renewed after the phase", fill: shared(0, 400, at{two: func(s float64) float64 {
			if s < 291 {
				return 60
			}
			return 291
		}}), met: check.True, from: bundle.Shared, evidence: leases, seen: "renewed last at 10:01:00"},
		{name: "a name that ends alike", spec: `{"nodes":["er2"]}`, wanted: "the Lease of er2", fill: shared(0, 400, gone), met: check.Unknown, from: bundle.Shared, evidence: leases,
			seen: "no Lease of a node er2 was recorded (there are those of relapse-x-"},
		{name: "another cluster's", fill: shared(0, 400, at{"relapse-y-worker2": stops(60)}), met: check.Unknown, from: bundle.Shared, evidence: leases,
			seen: "no Lease of a node worker2 was recorded (there are those of relapse-y-worker2)"},
		{name: "a Lease that is gone", fill: shared(0, 400, at{"relapse-x-worker": beats, two: func(s float64) float64 {
			if s > 270 {
				return -1
			}
			return 60
		}}), met: check.Unknown, from: bundle.Shared, evidence: leases, seen: "no Lease of relapse-x-worker2 was recorded by 10:04:50"},
		{name: "nobody looked at the end", fill: shared(0, 270, gone), met: check.Unknown, from: bundle.Shared, evidence: leases, seen: "leases of shared does not cover 10:04:40.0 to 10:04:50.0"},
		{name: "a gap", fill: func(tr *trial) {
			leased(tr, bundle.Shared, 0, 400, gone).Gap(tr.at(270), tr.at(286), "connection refused")
		}, met: check.Unknown, from: bundle.Shared, evidence: leases, seen: "connection refused"},
		{name: "nothing recorded", fill: func(tr *trial) { clusterNamed(tr); tr.phases() }, met: check.Unknown, seen: "no leases was recorded for vulnerable"},
		{name: "a missing file", fill: shared(0, 400, gone), damage: remove(t, bundle.Leases), met: check.Unknown, seen: "is missing"},
		{name: "the phase was too short", spec: `{"for":"300s"}`, fill: shared(0, 400, at{two: func(float64) float64 { return 0 }}), met: check.Unknown,
			from: bundle.Shared, evidence: leases, seen: "renewed last at 10:00:00 and is good for 40s, but for 4m10s only"},
		{name: "too short a phase is long enough to differ", spec: `{"for":"300s"}`, fill: shared(0, 400, at{two: stops(60)}), met: check.False,
			from: bundle.Shared, evidence: leases, seen: "renewed last at 10:01:00", differs: []string{"it runs out at 10:01:40"}},
		{name: "the fault's node", spec: `{"nodes":null,"fault":"off"}`, fill: func(tr *trial) {
			leased(tr, bundle.Shared, 0, 400, gone)
			seenOn(tr, bundle.Shared, "off", two)
			seenOn(tr, bundle.Shared, "other", "relapse-x-worker")
			seenOn(tr, other, "off", "relapse-x-worker")
		}, wanted: "the Lease of the nodes of the fault off run out", met: check.True, from: bundle.Shared, evidence: leases, seen: "the Lease of relapse-x-worker2"},
		{name: "a fault that was seen nowhere", spec: `{"nodes":null,"fault":"off"}`, fill: shared(0, 400, gone), wanted: "the fault off",
			met: check.Unknown, from: bundle.Shared, evidence: leases, seen: "the fault off was seen on no node"},
		{name: "both", spec: `{"fault":"off"}`, fill: shared(0, 400, gone), wanted: "Lease", met: check.Unknown, seen: "want either nodes, by name, or the fault"},
		{name: "neither", spec: `{"nodes":[]}`, fill: shared(0, 400, gone), wanted: "Lease", met: check.Unknown, seen: "want either nodes, by name, or the fault"},
		{name: "no time", spec: `{"for":"soon"}`, fill: shared(0, 400, gone), met: check.Unknown, seen: `for is "soon" (want a duration with its unit: 3m)`},
	}, func(q *question) {
		q.kind, q.scope = "leaseStale", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"nodes":["worker2"],"for":"10s"}`, q.spec)
		if q.wanted == "" {
			q.wanted = "the Lease of worker"
		}
	})
}

// A named node's condition is read from what was recorded of all nodes, and the arm's own from its own.
func TestNodeReadyOfAnotherNode(t *testing.T) {
	conditions := []bundle.Kind{bundle.Nodes}
	gone := beat{second: 100, status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status.", node: "relapse-x-worker2"}
	well := func(node string) beat { return beat{second: 0, status: "True", reason: "KubeletReady", message: "ok", node: node} }
	all := func(arm string, beats ...beat) func(*trial) {
		return func(tr *trial) {
			clusterNamed(tr)
			watched(arm, 0, 400, beats...)(tr)
		}
	}
	run(t, []question{
		{name: "gone", fill: all(bundle.Shared, well("relapse-x-worker"), well("relapse-x-worker2"), gone), met: check.True, from: bundle.Shared,
			evidence: conditions, seen: "Ready=Unknown, reason NodeStatusUnknown", detail: "stopped posting"},
		{name: "well", spec: `{"node":"worker"}`, wanted: "worker Ready=Unknown", fill: all(bundle.Shared, well("relapse-x-worker"), well("relapse-x-worker2"), gone),
			met: check.False, from: bundle.Shared, evidence: conditions, seen: "Ready=True", detail: "ok", differs: []string{"Ready=True"}},
		{name: "of a cluster of the arm's own", fill: all(arm, beat{second: 100, status: "Unknown", reason: "", message: "", node: "relapse-x-vulnerable-worker2"}), met: check.True, evidence: conditions, seen: "Ready=Unknown"},
		{name: "no such node", spec: `{"node":"ker2"}`, wanted: "ker2", fill: all(bundle.Shared, well("relapse-x-worker"), gone), met: check.Unknown, from: bundle.Shared,
			evidence: conditions, seen: "no condition of a node ker2 was recorded (there are those of relapse-x-worker, relapse-x-worker2)"},
		{name: "nobody looked at all nodes", fill: all(arm, well("relapse-x-worker")), met: check.Unknown, evidence: conditions,
			seen: "no condition of a node worker2 was recorded (there are those of relapse-x-worker)"},
		{name: "the arm's own node is not another's", spec: `{"node":""}`, wanted: "Ready=Unknown", fill: func(tr *trial) {
			all(bundle.Shared, gone)(tr)
			st := tr.stream(bundle.Nodes, arm)
			tr.must(st.JSON(bundle.NodeStatus{Time: tr.at(0), Node: "relapse-x-worker", Status: "True"}))
			st.Alive(tr.at(400))
		}, met: check.False, evidence: conditions, seen: "Ready=True", differs: []string{"Ready=True"}},
	}, func(q *question) {
		q.kind, q.scope = "nodeReady", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"node":"worker2","status":"Unknown","hold":"15s"}`, q.spec)
		if q.wanted == "" {
			q.wanted = "worker2 Ready=Unknown"
		}
	})
}
