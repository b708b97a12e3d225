package check_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// flooded is a trial in which the subject says from 240 s on that it skips its consumer, with readings over the whole of it.
func flooded(arm string, list ...reading) func(*trial) {
	return func(tr *trial) {
		overdue(arm)(tr)
		st := tr.stream(bundle.Interposer, arm)
		st.Alive(tr.at(0))
		st.Alive(tr.at(400))
		tr.read(st, list...)
	}
}

// overdue is a subject that says from 240 s to the end that it skips its consumer, because a relist began at 60 s.
func overdue(arm string) func(*trial) {
	return journal(arm, 0, 400, said{second: 240, message: skip("3m0.1s"), ident: ""}, said{second: 285, message: skip("3m45.1s"), ident: ""}, said{second: 290, message: skip("3m50.1s"), ident: ""})
}

func TestFloodDelivered(t *testing.T) {
	const mark = 240
	counts := []bundle.Kind{bundle.Journal, bundle.Interposer}
	run(t, []question{
		{
			name: "more than the channel holds", fill: flooded(arm, reading{second: 100, mark: mark, n: 0, pid: 1, id: "flood"}, reading{second: 285, mark: mark, n: 1001, pid: 1, id: "flood"}),
			met: check.True, evidence: counts, wanted: "more than 1000 state changes delivered after 10:04:00",
			seen: "1001 delivered from then on, of 1201 in all",
		},
		{
			name: "of a trial before in the same cluster", met: check.False, evidence: []bundle.Kind{bundle.Journal, bundle.Interposer, bundle.Interposer}, seen: "no flood was armed",
			fill: func(tr *trial) {
				flooded(arm)(tr)
				st, over := tr.stream(bundle.Interposer, arm), tr.at(-30)
				st.Alive(tr.at(0))
				st.Alive(tr.at(400))
				tr.must(st.JSON(bundle.Stamped[control.Counts]{Time: tr.at(285), Value: control.Counts{PID: 1, Arms: []control.ArmRecord{{
					Life: control.Life{Arm: control.Arm{ID: "flood"}, Fault: control.FaultFlood, EndedAt: &over}, Flood: &control.Flood{Pods: 300, ContainersPerPod: 10}, DeliveredContainers: 3000,
					Delivered: []control.Bucket{{From: tr.at(mark + 1).UnixNano(), To: tr.at(mark + 1).UnixNano(), N: 3000}},
				}}}}))
			},
		},
		{
			name: "just as many", fill: flooded(arm, reading{second: 285, mark: mark, n: 1000, pid: 1, id: "flood"}),
			met: check.False, evidence: counts, seen: "1000 delivered from then on, of 1200 in all",
		},
		{
			name: "as much as was assumed of an executable", fill: unknown(flooded(arm, reading{second: 285, mark: mark, n: 8001, pid: 1, id: "flood"})),
			met: check.True, evidence: counts, wanted: "more than 8000 state changes delivered (the channelCapacity of vulnerable is not known: 8000 is assumed) after 10:04:00",
			seen: "8001 delivered from then on, of 8201 in all (the channelCapacity of vulnerable is not known: 8000 is assumed)",
		},
		{
			name: "less than was assumed", fill: unknown(flooded(arm, reading{second: 285, mark: mark, n: 1001, pid: 1, id: "flood"})),
			met: check.False, evidence: counts, seen: "1001 delivered from then on",
		},
		{
			name: "most of it before the mark", fill: flooded(arm, reading{second: 285, mark: mark - 30, n: 3000, pid: 1, id: "flood"}),
			met: check.False, evidence: counts, seen: "0 delivered from then on, of 3200 in all",
		},
		{
			name: "what a reading of the lift or the recovery shows doesn't count",
			fill: flooded(arm, reading{second: 285, mark: mark, n: 10, pid: 1, id: "flood"}, reading{second: 291, mark: mark, n: 2000, pid: 1, id: "flood"}, reading{second: 300, mark: mark, n: 3000, pid: 1, id: "flood"}),
			met:  check.False, evidence: counts, seen: "10 delivered from then on",
		},
		{
			name: "a reading of the baseline doesn't count", fill: flooded(arm, reading{second: 39, mark: mark, n: 2000, pid: 1, id: "flood"}, reading{second: 285, mark: mark, n: 0, pid: 1, id: ""}),
			met: check.False, evidence: counts, seen: "no flood was armed", wanted: "after 10:04:00",
		},
		{
			name: "another fault's flood", fill: flooded(arm, reading{second: 285, mark: mark, n: 2000, pid: 1, id: "another"}),
			met: check.False, evidence: counts, seen: "no flood was armed",
		},
		{
			name: "never armed", fill: flooded(arm, reading{second: 285, mark: mark, n: 0, pid: 1, id: ""}), met: check.False, evidence: counts, seen: "no flood was armed",
		},
		{
			name: "an interposer that was restarted has lost its counts", fill: flooded(arm, reading{second: 260, mark: mark, n: 900, pid: 1, id: "flood"}, reading{second: 285, mark: mark, n: 0, pid: 2, id: ""}),
			met: check.Unknown, evidence: counts, seen: "the interposer was restarted by 10:04:45",
		},
		{
			name: "what was delivered before that was delivered", fill: flooded(arm, reading{second: 260, mark: mark, n: 1500, pid: 1, id: "flood"}, reading{second: 285, mark: mark, n: 0, pid: 2, id: ""}),
			met: check.True, evidence: counts, seen: "1500 delivered from then on",
		},
		{
			name: "a gap in the counts", fill: func(tr *trial) {
				overdue(arm)(tr)
				st := tr.stream(bundle.Interposer, arm)
				tr.read(st, reading{second: 0, mark: mark, n: 0, pid: 1, id: ""}, reading{second: 250, mark: mark, n: 500, pid: 1, id: "flood"}, reading{second: 400, mark: mark, n: 3000, pid: 1, id: "flood"})
				st.Gap(tr.at(250), tr.at(300), "exit status 137")
			},
			met: check.Unknown, evidence: counts, seen: "exit status 137",
		},
		{
			name: "no counts", fill: func(tr *trial) {
				overdue(arm)(tr)
				tr.fail(bundle.Interposer, arm, 0, "relapse-cri: not found")
			},
			met: check.Unknown, seen: "the capture failed: relapse-cri: not found", evidence: []bundle.Kind{bundle.Journal},
		},
		{name: "the other arm's flood", fill: flooded(other, reading{second: 285, mark: mark, n: 3000, pid: 1, id: "flood"}), met: check.Unknown, seen: "was recorded for vulnerable"},
		{name: "missing counts", fill: flooded(arm, reading{second: 285, mark: mark, n: 3000, pid: 1, id: "flood"}), damage: remove(t, bundle.Interposer), met: check.Unknown, seen: "is missing", evidence: []bundle.Kind{bundle.Journal}},
		{name: "a limit below nothing", spec: `{"moreThan":{"number":-1}}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "moreThan.number is -1"},
		{name: "no limit", spec: `{"moreThan":{}}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "moreThan has neither a constant nor a number"},
		{name: "no fault", spec: `{"fault":""}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "fault is empty"},
	}, func(q *question) {
		q.kind, q.scope = "floodDelivered", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":`+skips+`}`, q.spec)
		if q.wanted == "" {
			q.wanted = "state changes delivered"
		}
	})
}

// unknown is a trial in which nothing is known of the arm's constants, and something is assumed.
func unknown(fill func(*trial)) func(*trial) {
	return func(tr *trial) {
		tr.must(tr.w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{
			{Arm: arm, Assumed: map[string]int64{"channelCapacity": 8000, "relistThreshold": int64(3 * time.Minute)}},
			{Arm: other, Constants: map[string]int64{"channelCapacity": 1000, "relistThreshold": int64(3 * time.Minute)}},
		}}))
		fill(tr)
	}
}
