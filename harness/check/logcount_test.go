package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestLogCount(t *testing.T) {
	logs := []bundle.Kind{bundle.Logs}
	of := func(arm, component string, lines ...said) func(*trial) {
		return func(tr *trial) { tr.phases(); tr.log(arm, component, 0, 394, lines...) }
	}
	three := failed(100, 1, 2, 3)
	gap := func(lines ...said) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			tr.log(arm, "kube-apiserver", 0, 394, lines...).Gap(tr.at(150), tr.at(165), "the file was gone")
		}
	}
	run(t, []question{
		{
			name: "enough", fill: of(arm, "kube-apiserver", append(three, said{second: 110, message: "other"})...), met: check.True, evidence: logs,
			seen: "3 such lines among 4 of kube-apiserver, from 10:01:40 to 10:01:42", detail: "item-00001", wanted: `at least 3 lines of kube-apiserver like`,
		},
		{name: "too few", fill: of(arm, "kube-apiserver", three[:2]...), met: check.False, seen: "2 such lines among 2", evidence: logs, detail: "item-00001"},
		{name: "none", fill: of(arm, "kube-apiserver"), met: check.False, seen: "0 such lines among 0 of kube-apiserver", evidence: logs},
		{
			name: "lines of other phases don't count", fill: of(arm, "kube-apiserver", append(failed(37, 1, 2, 3), failed(290.5, 4)...)...),
			met: check.False, seen: "0 such lines among 0", evidence: logs,
		},
		{name: "too few, and a gap", fill: gap(three[:2]...), met: check.Unknown, seen: "2 such lines among 2 of kube-apiserver, from 10:01:40 to 10:01:41; logs of vulnerable does not cover", evidence: logs, detail: "item"},
		{name: "enough, whatever the gap", fill: gap(three...), met: check.True, seen: "3 such lines", evidence: logs, detail: "item"},
		{
			name: "too few, and lines were dropped", met: check.Unknown, seen: "7 lines of kube-apiserver were dropped", evidence: logs, detail: "item",
			fill: func(tr *trial) { tr.phases(); tr.log(arm, "kube-apiserver", 0, 394, three[:2]...).Suppressed(7) },
		},
		{
			name: "another component's lines", fill: of(arm, "etcd", three...), met: check.Unknown, seen: "0 such lines among 0 of kube-apiserver; no log of kube-apiserver was recorded",
		},
		{
			name: "one component's log beside another's", met: check.False, seen: "0 such lines", evidence: logs,
			fill: func(tr *trial) {
				tr.phases()
				tr.log(arm, "etcd", 0, 394, three...)
				tr.log(arm, "kube-apiserver", 0, 394)
			},
		},
		{name: "the other arm's lines", fill: of(other, "kube-apiserver", three...), met: check.Unknown, seen: "no log of kube-apiserver was recorded for vulnerable"},
		{name: "a missing file", fill: of(arm, "kube-apiserver", three...), damage: remove(t, bundle.Logs), met: check.Unknown, seen: "is missing"},
		{name: "no more than one", spec: `{"atLeast":0,"atMost":1}`, fill: of(arm, "kube-apiserver", three...), met: check.False, seen: "3 such lines", wanted: "0 to 1 lines", evidence: logs, detail: "item"},
		{name: "one is no more than one", spec: `{"atLeast":0,"atMost":1}`, fill: of(arm, "kube-apiserver", three[:1]...), met: check.True, seen: "1 such lines", evidence: logs, detail: "item"},
		{name: "no more than one, with a gap", spec: `{"atLeast":0,"atMost":1}`, fill: gap(), met: check.Unknown, seen: "does not cover", evidence: logs},
		{name: "too many, whatever the gap", spec: `{"atLeast":0,"atMost":1}`, fill: gap(three...), met: check.False, seen: "3 such lines", evidence: logs, detail: "item"},
		{name: "no number", spec: `{"atLeast":0}`, fill: of(arm, "kube-apiserver"), met: check.Unknown, seen: "neither atLeast nor atMost is given"},
		{name: "less than nothing", spec: `{"atMost":2}`, fill: of(arm, "kube-apiserver"), met: check.Unknown, seen: "atMost is 2 and atLeast is 3"},
		{name: "no pattern", spec: `{"pattern":""}`, fill: of(arm, "kube-apiserver"), met: check.Unknown, seen: "pattern is empty"},
		{name: "a bad pattern", spec: `{"pattern":"("}`, fill: of(arm, "kube-apiserver"), met: check.Unknown, seen: "pattern: error parsing regexp"},
		{name: "no component", spec: `{"component":""}`, fill: of(arm, "kube-apiserver"), met: check.Unknown, seen: "component is empty"},
	}, func(q *question) {
		q.kind, q.scope = "logCount", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"component":"kube-apiserver","pattern":"delete OBJECT in DeleteCollection failed","atLeast":3}`, q.spec)
	})
}
