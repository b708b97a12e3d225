package kinds_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// flooded is a trial in which the subject says from 240 s on that it skips its consumer, with readings over the whole
// of it.
func flooded(arm string, list ...checktest.Reading) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		overdue(arm)(tr)
		st := tr.Stream(bundle.Interposer, arm)
		st.Alive(tr.At(0))
		st.Alive(tr.At(400))
		tr.Counted(st, list...)
	}
}

// overdue is a subject that says from 240 s to the end that it skips its consumer, because a relist began at 60 s.
func overdue(arm string) func(*checktest.Trial) {
	return checktest.Journal(arm, 0, 400, checktest.Said{Second: 240, Message: checktest.LastSeenActive("3m0.1s"), Ident: ""}, checktest.Said{Second: 285, Message: checktest.LastSeenActive("3m45.1s"), Ident: ""}, checktest.Said{Second: 290, Message: checktest.LastSeenActive("3m50.1s"), Ident: ""})
}

func TestFloodDelivered(t *testing.T) {
	const mark = 240
	counts := []bundle.Kind{bundle.Journal, bundle.Interposer}
	checktest.Run(t, []checktest.Question{
		{
			Name: "more than the channel holds", Fill: flooded(checktest.Arm, checktest.Reading{Second: 100, Mark: mark, N: 0, Pid: 1, ID: "flood"}, checktest.Reading{Second: 285, Mark: mark, N: 1001, Pid: 1, ID: "flood"}),
			Met: check.True, Evidence: counts, Wanted: "more than 1000 state changes delivered after 10:04:00",
			Seen: "1001 delivered from then on, of 1201 in all",
		},
		{
			Name: "of a trial before in the same cluster", Met: check.False, Evidence: []bundle.Kind{bundle.Journal, bundle.Interposer, bundle.Interposer}, Seen: "no flood was armed",
			Fill: func(tr *checktest.Trial) {
				flooded(checktest.Arm)(tr)
				st, over := tr.Stream(bundle.Interposer, checktest.Arm), tr.At(-30)
				st.Alive(tr.At(0))
				st.Alive(tr.At(400))
				tr.Must(st.JSON(bundle.Stamped[control.Counts]{Time: tr.At(285), Value: control.Counts{PID: 1, Arms: []control.ArmRecord{{
					Life: control.Life{Arm: control.Arm{ID: "flood"}, Fault: control.FaultFlood, EndedAt: &over}, Flood: &control.Flood{Pods: 300, ContainersPerPod: 10}, DeliveredContainers: 3000,
					Delivered: []control.Bucket{{From: tr.At(mark + 1).UnixNano(), To: tr.At(mark + 1).UnixNano(), N: 3000}},
				}}}}))
			},
		},
		{
			Name: "just as many", Fill: flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark, N: 1000, Pid: 1, ID: "flood"}),
			Met: check.False, Evidence: counts, Seen: "1000 delivered from then on, of 1200 in all",
		},
		{
			Name: "as much as was assumed of an executable", Fill: unknown(flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark, N: 8001, Pid: 1, ID: "flood"})),
			Met: check.True, Evidence: counts, Wanted: "more than 8000 state changes delivered (the channelCapacity of vulnerable is not known: 8000 is assumed) after 10:04:00",
			Seen: "8001 delivered from then on, of 8201 in all (the channelCapacity of vulnerable is not known: 8000 is assumed)",
		},
		{
			Name: "less than was assumed", Fill: unknown(flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark, N: 1001, Pid: 1, ID: "flood"})),
			Met: check.False, Evidence: counts, Seen: "1001 delivered from then on",
		},
		{
			Name: "most of it before the mark", Fill: flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark - 30, N: 3000, Pid: 1, ID: "flood"}),
			Met: check.False, Evidence: counts, Seen: "0 delivered from then on, of 3200 in all",
		},
		{
			Name: "what a reading of the lift or the recovery shows doesn't count",
			Fill: flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark, N: 10, Pid: 1, ID: "flood"}, checktest.Reading{Second: 291, Mark: mark, N: 2000, Pid: 1, ID: "flood"}, checktest.Reading{Second: 300, Mark: mark, N: 3000, Pid: 1, ID: "flood"}),
			Met:  check.False, Evidence: counts, Seen: "10 delivered from then on",
		},
		{
			Name: "a reading of the baseline doesn't count", Fill: flooded(checktest.Arm, checktest.Reading{Second: 39, Mark: mark, N: 2000, Pid: 1, ID: "flood"}, checktest.Reading{Second: 285, Mark: mark, N: 0, Pid: 1, ID: ""}),
			Met: check.False, Evidence: counts, Seen: "no flood was armed", Wanted: "after 10:04:00",
		},
		{
			Name: "another fault's flood", Fill: flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark, N: 2000, Pid: 1, ID: "another"}),
			Met: check.False, Evidence: counts, Seen: "no flood was armed",
		},
		{
			Name: "never armed", Fill: flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark, N: 0, Pid: 1, ID: ""}), Met: check.False, Evidence: counts, Seen: "no flood was armed",
		},
		{
			Name: "an interposer that was restarted has lost its counts", Fill: flooded(checktest.Arm, checktest.Reading{Second: 260, Mark: mark, N: 900, Pid: 1, ID: "flood"}, checktest.Reading{Second: 285, Mark: mark, N: 0, Pid: 2, ID: ""}),
			Met: check.Unknown, Evidence: counts, Seen: "the interposer was restarted by 10:04:45",
		},
		{
			Name: "what was delivered before that was delivered", Fill: flooded(checktest.Arm, checktest.Reading{Second: 260, Mark: mark, N: 1500, Pid: 1, ID: "flood"}, checktest.Reading{Second: 285, Mark: mark, N: 0, Pid: 2, ID: ""}),
			Met: check.True, Evidence: counts, Seen: "1500 delivered from then on",
		},
		{
			Name: "a gap in the counts", Fill: func(tr *checktest.Trial) {
				overdue(checktest.Arm)(tr)
				st := tr.Stream(bundle.Interposer, checktest.Arm)
				tr.Counted(st, checktest.Reading{Second: 0, Mark: mark, N: 0, Pid: 1, ID: ""}, checktest.Reading{Second: 250, Mark: mark, N: 500, Pid: 1, ID: "flood"}, checktest.Reading{Second: 400, Mark: mark, N: 3000, Pid: 1, ID: "flood"})
				st.Gap(tr.At(250), tr.At(300), "exit status 137")
			},
			Met: check.Unknown, Evidence: counts, Seen: "exit status 137",
		},
		{
			Name: "no counts", Fill: func(tr *checktest.Trial) {
				overdue(checktest.Arm)(tr)
				tr.Fail(bundle.Interposer, checktest.Arm, 0, "relapse-cri: not found")
			},
			Met: check.Unknown, Code: check.Unreadable, Seen: "the capture failed: relapse-cri: not found", Evidence: []bundle.Kind{bundle.Journal},
		},
		{Name: "the other arm's flood", Fill: flooded(checktest.Other, checktest.Reading{Second: 285, Mark: mark, N: 3000, Pid: 1, ID: "flood"}), Met: check.Unknown, Code: check.NotRecorded, Seen: "was recorded for vulnerable"},
		{Name: "missing counts", Fill: flooded(checktest.Arm, checktest.Reading{Second: 285, Mark: mark, N: 3000, Pid: 1, ID: "flood"}), Damage: checktest.Remove(t, bundle.Interposer), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing", Evidence: []bundle.Kind{bundle.Journal}},
		{Name: "a limit below nothing", Spec: `{"moreThan":{"number":-1}}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "moreThan.number is -1"},
		{Name: "no limit", Spec: `{"moreThan":{}}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "moreThan has neither a constant nor a number"},
		{Name: "no fault", Spec: `{"fault":""}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "fault is empty"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "floodDelivered", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"fault":"flood","moreThan":{"constant":"channelCapacity"},"since":`+checktest.Skips+`}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "state changes delivered"
		}
	})
}

// unknown is a trial in which nothing is known of the arm's constants, and something is assumed.
func unknown(fill func(*checktest.Trial)) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		tr.Must(tr.W.SetWorld(bundle.World{Arms: []bundle.ArmWorld{
			{Arm: checktest.Arm, Assumed: map[string]int64{"channelCapacity": 8000, "relistThreshold": int64(3 * time.Minute)}},
			{Arm: checktest.Other, Constants: map[string]int64{"channelCapacity": 1000, "relistThreshold": int64(3 * time.Minute)}},
		}}))
		fill(tr)
	}
}
