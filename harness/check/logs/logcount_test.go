package logs_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestLogCount(t *testing.T) {
	logs := []bundle.Kind{bundle.Logs}
	of := func(arm, component string, lines ...checktest.Said) func(*checktest.Trial) {
		return func(tr *checktest.Trial) { tr.Phases(); tr.Log(arm, component, 0, 394, lines...) }
	}
	three := checktest.Failed(100, 1, 2, 3)
	gap := func(lines ...checktest.Said) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			tr.Log(checktest.Arm, "kube-apiserver", 0, 394, lines...).Gap(tr.At(150), tr.At(165), "the file was gone")
		}
	}
	checktest.Run(t, []checktest.Question{
		{
			Name: "enough", Fill: of(checktest.Arm, "kube-apiserver", append(three, checktest.Said{Second: 110, Message: "other"})...), Met: check.True, Evidence: logs,
			Seen: "3 such lines among 4 of kube-apiserver, from 10:01:40 to 10:01:42", Figures: map[string]float64{"linesLikeIt": 3, "lines": 4},
			Detail: "item-00001", Wanted: `at least 3 lines of kube-apiserver like`,
		},
		{Name: "too few", Fill: of(checktest.Arm, "kube-apiserver", three[:2]...), Met: check.False, Seen: "2 such lines among 2", Evidence: logs, Detail: "item-00001"},
		{Name: "none", Fill: of(checktest.Arm, "kube-apiserver"), Met: check.False, Seen: "0 such lines among 0 of kube-apiserver", Evidence: logs},
		{
			Name: "lines of other phases don't count", Fill: of(checktest.Arm, "kube-apiserver", append(checktest.Failed(37, 1, 2, 3), checktest.Failed(290.5, 4)...)...),
			Met: check.False, Seen: "0 such lines among 0", Evidence: logs,
		},
		{Name: "too few, and a gap", Fill: gap(three[:2]...), Met: check.Unknown, Code: check.Gap, Figures: map[string]float64{"linesLikeIt": 2}, Seen: "2 such lines among 2 of kube-apiserver, from 10:01:40 to 10:01:41; logs of vulnerable does not cover", Evidence: logs, Detail: "item"},
		{Name: "enough, whatever the gap", Fill: gap(three...), Met: check.True, Seen: "3 such lines", Evidence: logs, Detail: "item"},
		{
			Name: "too few, and lines were dropped", Met: check.Unknown, Code: check.Gap, Seen: "7 lines of kube-apiserver were dropped", Evidence: logs, Detail: "item",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Log(checktest.Arm, "kube-apiserver", 0, 394, three[:2]...).Suppressed(7)
			},
		},
		{
			Name: "another component's lines", Fill: of(checktest.Arm, "etcd", three...), Met: check.Unknown, Code: check.NotRecorded, Seen: "0 such lines among 0 of kube-apiserver; no log of kube-apiserver was recorded",
		},
		{
			Name: "one component's log beside another's", Met: check.False, Seen: "0 such lines", Evidence: logs,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Log(checktest.Arm, "etcd", 0, 394, three...)
				tr.Log(checktest.Arm, "kube-apiserver", 0, 394)
			},
		},
		{Name: "as many in a stretch", Spec: `{"within":"2s"}`, Fill: of(checktest.Arm, "kube-apiserver", three...), Met: check.True, Evidence: logs, Seen: "at most 3 within 2s", Detail: "item"},
		{Name: "as many, but slowly", Spec: `{"within":"1s"}`, Fill: of(checktest.Arm, "kube-apiserver", three...), Met: check.False, Evidence: logs, Seen: "at most 2 within 1s", Detail: "item"},
		{Name: "as many, of several", Spec: `{"within":"10s","pattern":"Delete.*(?P<each>item-[0-9]+)"}`, Fill: of(checktest.Arm, "kube-apiserver", three...), Met: check.False, Evidence: logs, Seen: "at most 1 within 10s of item-0000", Detail: "item"},
		{
			Name: "as many, but slowly, on two nodes", Spec: `{"within":"2s"}`, Met: check.False, Evidence: []bundle.Kind{bundle.Logs, bundle.Logs}, Seen: "3 such lines among 3 of kube-apiserver, from 10:00:51 to 10:01:50; at most 1 within 2s", Detail: "item",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Log(checktest.Arm, "kube-apiserver", 0, 394, checktest.Failed(110, 1)...)
				tr.Log(checktest.Arm, "kube-apiserver", 0, 394, append(checktest.Failed(51, 2), checktest.Failed(90, 3)...)...)
			},
		},
		{
			Name: "as many, and when one was written isn't known", Spec: `{"within":"2s"}`, Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "at most 2 within 2s; when the others were written isn't known", Detail: "item",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				st := tr.Log(checktest.Arm, "kube-apiserver", 0, 394, three[:2]...)
				tr.Must(st.JSON(bundle.LogLine{Time: tr.At(three[1].Second), File: "a.log", Text: three[2].Message, Untimed: true}))
			},
		},
		{Name: "the other arm's lines", Fill: of(checktest.Other, "kube-apiserver", three...), Met: check.Unknown, Code: check.NotRecorded, Seen: "no log of kube-apiserver was recorded for vulnerable"},
		{Name: "a missing file", Fill: of(checktest.Arm, "kube-apiserver", three...), Damage: checktest.Remove(t, bundle.Logs), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
		{Name: "no more than one", Spec: `{"atLeast":0,"atMost":1}`, Fill: of(checktest.Arm, "kube-apiserver", three...), Met: check.False, Seen: "3 such lines", Wanted: "0 to 1 lines", Evidence: logs, Detail: "item"},
		{Name: "one is no more than one", Spec: `{"atLeast":0,"atMost":1}`, Fill: of(checktest.Arm, "kube-apiserver", three[:1]...), Met: check.True, Seen: "1 such lines", Evidence: logs, Detail: "item"},
		{Name: "no more than one, with a gap", Spec: `{"atLeast":0,"atMost":1}`, Fill: gap(), Met: check.Unknown, Code: check.Gap, Seen: "does not cover", Evidence: logs},
		{Name: "too many, whatever the gap", Spec: `{"atLeast":0,"atMost":1}`, Fill: gap(three...), Met: check.False, Seen: "3 such lines", Evidence: logs, Detail: "item"},
		{Name: "no number", Spec: `{"atLeast":0}`, Fill: of(checktest.Arm, "kube-apiserver"), Met: check.Unknown, Seen: "neither atLeast nor atMost is given"},
		{Name: "less than nothing", Spec: `{"atMost":2}`, Fill: of(checktest.Arm, "kube-apiserver"), Met: check.Unknown, Seen: "atMost is 2 and atLeast is 3"},
		{Name: "no pattern", Spec: `{"pattern":""}`, Fill: of(checktest.Arm, "kube-apiserver"), Met: check.Unknown, Code: check.BadCheck, Seen: "pattern is empty"},
		{Name: "a bad pattern", Spec: `{"pattern":"("}`, Fill: of(checktest.Arm, "kube-apiserver"), Met: check.Unknown, Code: check.BadCheck, Seen: "pattern: error parsing regexp"},
		{Name: "no component", Spec: `{"component":""}`, Fill: of(checktest.Arm, "kube-apiserver"), Met: check.Unknown, Code: check.BadCheck, Seen: "component is empty"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "logCount", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"component":"kube-apiserver","pattern":"delete OBJECT in DeleteCollection failed","atLeast":3}`, q.Spec)
	})
}
