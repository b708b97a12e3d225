package goroutines_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// counted is a flood of which n state changes were delivered a second after a moment, as the interposer said at 285 s.
func counted(mark float64, n int) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		st := tr.Stream(bundle.Interposer, checktest.Arm)
		st.Alive(tr.At(0))
		st.Alive(tr.At(400))
		tr.Counted(st, checktest.Reading{Second: 285, Mark: mark, N: n, Pid: 1, ID: "flood"})
	}
}

// What counts is what the subject did: that its own log says it skips its consumer, by a limit that the line itself
// states.
func TestFloodDeliveredWhileItSkips(t *testing.T) {
	const mark = 240
	both2 := []bundle.Kind{bundle.Journal, bundle.Interposer}
	skipped := func(lines ...checktest.Said) func(*checktest.Trial) {
		return checktest.Journal(checktest.Arm, 0, 400, lines...)
	}
	all := []checktest.Said{{Second: 238, Message: checktest.LastSeenActive("3m0.2s"), Ident: ""}, {Second: 240, Message: checktest.LastSeenActive("3m2.2s"), Ident: ""}, {Second: 244, Message: checktest.LastSeenActive("3m6.2s"), Ident: ""}}
	checktest.Run(t, []checktest.Question{
		{
			Name: "more than the channel holds", Fill: checktest.Both(skipped(all...), counted(mark, 1001)), Met: check.True, Evidence: both2, Wanted: "delivered after 10:03:58",
			Seen: "1001 delivered from then on, of 1201 in all; it said so from 10:03:58 on, and at last: 3m6.2s, above its own limit of 3m0s",
		},
		{
			Name: "a threshold changed where it is used: the declared one has passed, and it goes on reading", Fill: checktest.Both(skipped(), counted(mark, 9000)), Met: check.False,
			Evidence: both2, Seen: "it never said so: no line like",
		},
		{
			Name: "deliveries before that", Fill: checktest.Both(skipped(all...), counted(mark-10, 9000)), Met: check.False, Evidence: both2, Seen: "0 delivered from then on",
		},
		{
			Name: "deliveries after it went on reading", Fill: checktest.Both(skipped(all...), counted(mark+10, 9000)), Met: check.False, Evidence: both2, Seen: "0 delivered from then on",
		},
		{
			Name: "the longest of two relists counts", Fill: checktest.Both(skipped(append([]checktest.Said{{Second: 100, Message: checktest.LastSeenActive("3m1s"), Ident: ""}, {Second: 101, Message: checktest.LastSeenActive("3m2s"), Ident: ""}}, all...)...), counted(mark, 1001)),
			Met: check.True, Evidence: both2, Seen: "from 10:03:58 on",
		},
		{
			Name: "a line whose age is within its limit is none", Fill: checktest.Both(skipped(checktest.Said{Second: 238, Message: checktest.LastSeenActive("2m59s"), Ident: ""}, checktest.Said{Second: 244, Message: checktest.LastSeenActive("3m0s"), Ident: ""}), counted(mark, 9000)),
			Met: check.False, Evidence: both2, Seen: "it never said so",
		},
		{
			Name: "one line says nothing of how long", Fill: checktest.Both(skipped(checktest.Said{Second: 238, Message: checktest.LastSeenActive("3m1s"), Ident: ""}), counted(mark, 9000)), Met: check.False, Evidence: both2,
			Seen: "it said so only once, at 10:03:58: 3m1s, above its own limit of 3m0s",
		},
		{Name: "no journal", Fill: checktest.Both(func(tr *checktest.Trial) { tr.Phases() }, counted(mark, 9000)), Met: check.Unknown, Code: check.NotRecorded, Seen: "no journal was recorded for vulnerable"},
		{
			Name: "a journal with a gap", Fill: checktest.Both(checktest.Journal(checktest.Arm, 0, 150), counted(mark, 9000)), Met: check.Unknown, Code: check.Gap, Seen: "journal of vulnerable does not cover",
		},
		{Name: "two sources", Spec: `{"since":{"flood":"flood","node":"x"}}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "since has 2 sources (want one of log, node and flood)"},
		{Name: "no source", Spec: `{"since":{"plus":{"duration":"1s"}}}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "since has 0 sources"},
		{Name: "a number of nanoseconds", Spec: `{"since":{"flood":"flood","plus":{"number":180}}}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "since.plus is a plain number (want a duration"},
		{Name: "no age", Spec: `{"since":{"log":{"pattern":"x(?P<y>.)","exceeds":"y"}}}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "since.log.pattern has no group age"},
		{Name: "no limit of its own", Spec: `{"since":{"log":{"pattern":"(?P<age>.)"}}}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: `since.log.exceeds is "" (want a group`},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "floodDelivered", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":`+checktest.Skips+`}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "state changes delivered"
		}
	})
}

// A build whose log has other words still turns its node NotReady.
func TestFloodDeliveredWhileTheNodeIsNotReady(t *testing.T) {
	ill := checktest.Beat{Second: 238, Status: "False", Reason: "KubeletNotReady", Message: "PLEG is not healthy: the lister is late", Node: ""}
	ready := checktest.Beat{Second: 0, Status: "True", Reason: "KubeletReady", Message: "kubelet is posting ready status", Node: ""}
	both2 := []bundle.Kind{bundle.Nodes, bundle.Interposer}
	checktest.Run(t, []checktest.Question{
		{
			Name: "not ready to the end", Fill: checktest.Both(checktest.Watched(checktest.Arm, 0, 400, ready, ill), counted(240, 1001)), Met: check.True, Evidence: both2,
			Seen: "1001 delivered from then on, of 1201 in all; the node was not Ready: PLEG is not healthy: the lister is late",
		},
		{
			Name: "ready again", Fill: checktest.Both(checktest.Watched(checktest.Arm, 0, 400, ready, ill, checktest.Beat{Second: 239, Status: "True", Reason: "KubeletReady", Message: "", Node: ""}), counted(240, 1001)), Met: check.False,
			Evidence: both2, Seen: "0 delivered from then on",
		},
		{
			Name: "for another reason", Fill: checktest.Both(checktest.Watched(checktest.Arm, 0, 400, ready, checktest.Beat{Second: 238, Status: "False", Reason: "KubeletNotReady", Message: "container runtime is down", Node: ""}), counted(240, 1001)),
			Met: check.False, Evidence: both2, Seen: "the node was never not Ready with a message like",
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "floodDelivered", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec, q.Wanted = `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":{"node":"PLEG is not healthy"}}`, "state changes delivered"
	})
}

// A build that refreshes its time stamp within a relist is never overdue: what it was given, as the interposer saw it,
// is what it was tried with. One that only has a longer threshold lets its time stamp grow old.
func TestFloodDeliveredToOneThatIsNeverOverdue(t *testing.T) {
	young := func(tr *checktest.Trial) { tr.Stale(tr.Stream(bundle.MetricSamples, checktest.Arm), 0, 394, 400) }
	old := func(tr *checktest.Trial) { tr.Stale(tr.Stream(bundle.MetricSamples, checktest.Arm), 0, 394, 60) }
	phases := func(tr *checktest.Trial) { tr.Phases() }
	checktest.Run(t, []checktest.Question{
		{
			Name: "kept young", Fill: checktest.Both(phases, young, counted(75, 1001)), Met: check.True, Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples},
			Seen: "1001 delivered from then on, of 1201 in all; the first delivery was at 10:00:55; kubelet_pleg_last_seen_seconds was at most 0s old",
		},
		{
			Name: "grown old, and it went on reading", Fill: checktest.Both(phases, old, counted(75, 9000)), Met: check.False, Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples},
			Seen: "kubelet_pleg_last_seen_seconds was at most 3m48s old", Wanted: "while kubelet_pleg_last_seen_seconds is never 1m30s old",
		},
		{
			Name: "too fast to be overdue", Spec: `{"since":{"flood":"flood","plus":{"duration":"30s"}}}`, Fill: checktest.Both(phases, young, counted(75, 9000)), Met: check.False,
			Evidence: []bundle.Kind{bundle.Interposer}, Seen: "0 delivered from then on",
		},
		{
			Name: "from the first delivery on", Spec: `{"since":{"flood":"flood"}}`, Fill: checktest.Both(phases, young, counted(75, 1001)), Met: check.True,
			Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, Seen: "1201 delivered from then on, of 1201 in all", Wanted: "delivered after 10:00:55",
		},
		{
			Name: "old during the lift only", Fill: checktest.Both(phases, func(tr *checktest.Trial) { tr.Stale(tr.Stream(bundle.MetricSamples, checktest.Arm), 0, 394, 205) }, counted(75, 1001)),
			Met: check.True, Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, Seen: "kubelet_pleg_last_seen_seconds was at most 1m23s old",
		},
		{
			Name: "samples that were not asked for and answered in the phase are not of it",
			Fill: checktest.Both(phases, func(tr *checktest.Trial) {
				st := tr.Stream(bundle.MetricSamples, checktest.Arm)
				tr.Sample(st, checktest.LastSeen, 39.9, tr.Since(-400), nil)
				tr.Stale(st, 40, 288, 400)
				tr.Sample(st, checktest.LastSeen, 289.95, tr.Since(-400), nil)
				tr.Stale(st, 290, 394, 400)
				st.Alive(tr.At(0))
			}, counted(75, 1001)),
			Met: check.True, Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, Seen: "was at most 0s old",
		},
		{
			Name: "young, with a gap in which it could have grown old", Fill: checktest.Both(phases, func(tr *checktest.Trial) {
				st := tr.Stream(bundle.MetricSamples, checktest.Arm)
				tr.Stale(st, 0, 394, 400)
				st.Gap(tr.At(100), tr.At(130), "connection refused")
			}, counted(75, 1001)),
			Met: check.Unknown, Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, Seen: "(gap 10:01:40.0 to 10:02:10.0: connection refused)",
		},
		{
			Name: "a time stamp that was never set has no age", Fill: checktest.Both(phases, func(tr *checktest.Trial) {
				tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), checktest.LastSeen, 0, 394, func(float64) float64 { return 0 })
			}, counted(75, 1001)),
			Met: check.Unknown, Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, Seen: "no sample of kubelet_pleg_last_seen_seconds",
		},
		{
			Name: "a limit that isn't known", Spec: `{"fresh":{"metric":"` + checktest.LastSeen + `","below":{"constant":"another"}}}`, Fill: checktest.Both(phases, young, counted(75, 1001)),
			Met: check.Unknown, Evidence: []bundle.Kind{bundle.Interposer, bundle.MetricSamples}, Seen: "another",
		},
		{Name: "no time stamp", Fill: checktest.Both(phases, counted(75, 1001)), Met: check.Unknown, Evidence: []bundle.Kind{bundle.Interposer}, Seen: "no metrics.samples was recorded"},
		{Name: "no flood", Fill: checktest.Both(phases, young, counted(75, 1)), Spec: `{"since":{"flood":"another","plus":{"duration":"30s"}}}`, Met: check.False,
			Evidence: []bundle.Kind{bundle.Interposer}, Seen: "nothing of another was delivered"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "floodDelivered", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":{"flood":"flood","plus":{"duration":"20s"}},`+
			`"fresh":{"metric":"`+checktest.LastSeen+`","below":{"constant":"relistThreshold","times":0.5}}}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "state changes delivered"
		}
	})
}
