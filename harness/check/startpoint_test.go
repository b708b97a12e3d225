package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// counted is a flood of which n state changes were delivered a second after a moment, as the interposer said at 285 s.
func counted(mark float64, n int) func(*trial) {
	return func(tr *trial) {
		st := tr.stream(bundle.Interposer, arm)
		st.Alive(tr.at(0))
		st.Alive(tr.at(400))
		tr.read(st, reading{second: 285, mark: mark, n: n, pid: 1, id: "flood"})
	}
}

// What counts is what the subject did: that its own log says it skips its consumer, by a limit that the line itself states.
func TestFloodDeliveredWhileItSkips(t *testing.T) {
	const mark = 240
	both2 := []bundle.Kind{bundle.Journal, bundle.Interposer}
	skipped := func(lines ...said) func(*trial) { return journal(arm, 0, 400, lines...) }
	all := []said{{second: 238, message: skip("3m0.2s"), ident: ""}, {second: 240, message: skip("3m2.2s"), ident: ""}, {second: 244, message: skip("3m6.2s"), ident: ""}}
	run(t, []question{
		{
			name: "more than the channel holds", fill: both(skipped(all...), counted(mark, 1001)), met: check.True, evidence: both2, wanted: "delivered after 10:03:58",
			seen: "1001 delivered from then on, of 1201 in all; it said so from 10:03:58 on, and at last: 3m6.2s, above its own limit of 3m0s",
		},
		{
			name: "a threshold changed where it is used: the declared one has passed, and it goes on reading", fill: both(skipped(), counted(mark, 9000)), met: check.False,
			evidence: both2, seen: "it never said so: no line like",
		},
		{
			name: "deliveries before that", fill: both(skipped(all...), counted(mark-10, 9000)), met: check.False, evidence: both2, seen: "0 delivered from then on",
		},
		{
			name: "deliveries after it went on reading", fill: both(skipped(all...), counted(mark+10, 9000)), met: check.False, evidence: both2, seen: "0 delivered from then on",
		},
		{
			name: "the longest of two relists counts", fill: both(skipped(append([]said{{second: 100, message: skip("3m1s"), ident: ""}, {second: 101, message: skip("3m2s"), ident: ""}}, all...)...), counted(mark, 1001)),
			met: check.True, evidence: both2, seen: "from 10:03:58 on",
		},
		{
			name: "a line whose age is within its limit is none", fill: both(skipped(said{second: 238, message: skip("2m59s"), ident: ""}, said{second: 244, message: skip("3m0s"), ident: ""}), counted(mark, 9000)),
			met: check.False, evidence: both2, seen: "it never said so",
		},
		{
			name: "one line says nothing of how long", fill: both(skipped(said{second: 238, message: skip("3m1s"), ident: ""}), counted(mark, 9000)), met: check.False, evidence: both2,
			seen: "it said so only once, at 10:03:58: 3m1s, above its own limit of 3m0s",
		},
		{name: "no journal", fill: both(func(tr *trial) { tr.phases() }, counted(mark, 9000)), met: check.Unknown, seen: "no journal was recorded for vulnerable"},
		{
			name: "a journal with a gap", fill: both(journal(arm, 0, 150), counted(mark, 9000)), met: check.Unknown, seen: "journal of vulnerable does not cover",
		},
		{name: "two sources", spec: `{"since":{"flood":"flood","node":"x"}}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "since has 2 sources (want one of log, node and flood)"},
		{name: "no source", spec: `{"since":{"plus":{"duration":"1s"}}}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "since has 0 sources"},
		{name: "a number of nanoseconds", spec: `{"since":{"flood":"flood","plus":{"number":180}}}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "since.plus is a plain number (want a duration"},
		{name: "no age", spec: `{"since":{"log":{"pattern":"x(?P<y>.)","exceeds":"y"}}}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "since.log.pattern has no group age"},
		{name: "no limit of its own", spec: `{"since":{"log":{"pattern":"(?P<age>.)"}}}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: `since.log.exceeds is "" (want a group`},
	}, func(q *question) {
		q.kind, q.scope = "floodDelivered", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":`+skips+`}`, q.spec)
		if q.wanted == "" {
			q.wanted = "state changes delivered"
		}
	})
}

// A build whose log has other words still turns its node NotReady.
func TestFloodDeliveredWhileTheNodeIsNotReady(t *testing.T) {
	ill := beat{second: 238, status: "False", reason: "KubeletNotReady", message: "PLEG is not healthy: the lister is late", node: ""}
	ready := beat{second: 0, status: "True", reason: "KubeletReady", message: "kubelet is posting ready status", node: ""}
	both2 := []bundle.Kind{bundle.Nodes, bundle.Interposer}
	run(t, []question{
		{
			name: "not ready to the end", fill: both(watched(arm, 0, 400, ready, ill), counted(240, 1001)), met: check.True, evidence: both2,
			seen: "1001 delivered from then on, of 1201 in all; the node was not Ready: PLEG is not healthy: the lister is late",
		},
		{
			name: "ready again", fill: both(watched(arm, 0, 400, ready, ill, beat{second: 239, status: "True", reason: "KubeletReady", message: "", node: ""}), counted(240, 1001)), met: check.False,
			evidence: both2, seen: "0 delivered from then on",
		},
		{
			name: "for another reason", fill: both(watched(arm, 0, 400, ready, beat{second: 238, status: "False", reason: "KubeletNotReady", message: "container runtime is down", node: ""}), counted(240, 1001)),
			met: check.False, evidence: both2, seen: "the node was never not Ready with a message like",
		},
	}, func(q *question) {
		q.kind, q.scope = "floodDelivered", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec, q.wanted = `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":{"node":"PLEG is not healthy"}}`, "state changes delivered"
	})
}

// A build that refreshes its time stamp within a relist is never overdue: what it was given, as the interposer saw it, is what it was tried with. One
// that only has a longer threshold lets its time stamp grow old.
func TestFloodDeliveredToOneThatIsNeverOverdue(t *testing.T) {
	young := func(tr *trial) { tr.stale(tr.stream(bundle.MetricSamples, arm), 0, 394, 400) }
	old := func(tr *trial) { tr.stale(tr.stream(bundle.MetricSamples, arm), 0, 394, 60) }
	phases := func(tr *trial) { tr.phases() }
	run(t, []question{
		{
			name: "kept young", fill: both(phases, young, counted(75, 1001)), met: check.True, evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples},
			seen: "1001 delivered from then on, of 1201 in all; the first delivery was at 10:00:55; kubelet_pleg_last_seen_seconds was at most 0s old",
		},
		{
			name: "grown old, and it went on reading", fill: both(phases, old, counted(75, 9000)), met: check.False, evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples},
			seen: "kubelet_pleg_last_seen_seconds was at most 3m48s old", wanted: "while kubelet_pleg_last_seen_seconds is never 1m30s old",
		},
		{
			name: "too fast to be overdue", spec: `{"since":{"flood":"flood","plus":{"duration":"30s"}}}`, fill: both(phases, young, counted(75, 9000)), met: check.False,
			evidence: []bundle.Kind{bundle.Interposer}, seen: "0 delivered from then on",
		},
		{
			name: "from the first delivery on", spec: `{"since":{"flood":"flood"}}`, fill: both(phases, young, counted(75, 1001)), met: check.True,
			evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, seen: "1201 delivered from then on, of 1201 in all", wanted: "delivered after 10:00:55",
		},
		{
			name: "old during the lift only", fill: both(phases, func(tr *trial) { tr.stale(tr.stream(bundle.MetricSamples, arm), 0, 394, 205) }, counted(75, 1001)),
			met: check.True, evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, seen: "kubelet_pleg_last_seen_seconds was at most 1m23s old",
		},
		{
			name: "samples that were not asked for and answered in the phase are not of it",
			fill: both(phases, func(tr *trial) {
				st := tr.stream(bundle.MetricSamples, arm)
				tr.sample(st, lastSeen, 39.9, tr.since(-400), nil)
				tr.stale(st, 40, 288, 400)
				tr.sample(st, lastSeen, 289.95, tr.since(-400), nil)
				tr.stale(st, 290, 394, 400)
				st.Alive(tr.at(0))
			}, counted(75, 1001)),
			met: check.True, evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, seen: "was at most 0s old",
		},
		{
			name: "young, with a gap in which it could have grown old", fill: both(phases, func(tr *trial) {
				st := tr.stream(bundle.MetricSamples, arm)
				tr.stale(st, 0, 394, 400)
				st.Gap(tr.at(100), tr.at(130), "connection refused")
			}, counted(75, 1001)),
			met: check.Unknown, evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, seen: "(gap 10:01:40.0 to 10:02:10.0: connection refused)",
		},
		{
			name: "a time stamp that was never set has no age", fill: both(phases, func(tr *trial) {
				tr.series(tr.stream(bundle.MetricSamples, arm), lastSeen, 0, 394, func(float64) float64 { return 0 })
			}, counted(75, 1001)),
			met: check.Unknown, evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, seen: "no sample of kubelet_pleg_last_seen_seconds",
		},
		{
			name: "a limit that isn't known", spec: `{"fresh":{"metric":"` + lastSeen + `","below":{"constant":"another"}}}`, fill: both(phases, young, counted(75, 1001)),
			met: check.Unknown, evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, seen: "another",
		},
		{name: "no time stamp", fill: both(phases, counted(75, 1001)), met: check.Unknown, evidence: []bundle.Kind{bundle.Interposer}, seen: "no metrics.samples was recorded"},
		{name: "no flood", fill: both(phases, young, counted(75, 1)), spec: `{"since":{"flood":"another","plus":{"duration":"30s"}}}`, met: check.False,
			evidence: []bundle.Kind{bundle.Interposer}, seen: "nothing of another was delivered"},
	}, func(q *question) {
		q.kind, q.scope = "floodDelivered", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":{"flood":"flood","plus":{"duration":"20s"}},`+
			`"fresh":{"metric":"`+lastSeen+`","below":{"constant":"relistThreshold","times":0.5}}}`, q.spec)
		if q.wanted == "" {
			q.wanted = "state changes delivered"
		}
	})
}
