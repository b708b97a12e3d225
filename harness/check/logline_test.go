package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestLogLine(t *testing.T) {
	lines := []bundle.Kind{bundle.Journal}
	run(t, []question{
		{
			name: "it says so", fill: journal(arm, 0, 400, said{second: 330, message: skipping("3m0s"), ident: ""}, said{second: 331, message: "I0301 another", ident: ""}),
			met: check.True, seen: "1 such lines among 2", evidence: lines, detail: "threshold is 3m0s",
		},
		{
			name: "case does not matter", spec: `{"pattern":"pleg IS NOT healthy: .* threshold is (?P<threshold>[0-9hms.]+)"}`, fill: journal(arm, 0, 400, said{second: 330, message: skipping("180s"), ident: ""}),
			met: check.True, seen: "1 such lines among 1", evidence: lines, detail: "180s",
		},
		{
			name: "the line of every start, without a threshold", fill: journal(arm, 0, 400, said{second: 330, message: `"Skipping pod synchronization" err="PLEG is not healthy: pleg has yet to be successful"`, ident: ""}),
			met: check.False, seen: "0 such lines among 1", evidence: lines,
		},
		{
			name: "said while the fault lasted, during the lift, before the offset and after the end",
			fill: journal(arm, 0, 400, said{second: 280, message: skipping("3m0s"), ident: ""}, said{second: 292, message: skipping("3m0s"), ident: ""}, said{second: 324, message: skipping("3m0s"), ident: ""}, said{second: 396, message: skipping("3m0s"), ident: ""}),
			met:  check.False, seen: "0 such lines among 0", evidence: lines,
		},
		{
			name: "the edges of the window are in it", fill: journal(arm, 0, 400, said{second: 325, message: skipping("3m0s"), ident: ""}, said{second: 395, message: skipping("3m0s"), ident: ""}),
			met: check.True, seen: "2 such lines among 2", evidence: lines, detail: "3m0s",
		},
		{
			name: "fewer than wanted", spec: `{"atLeast":3}`, wanted: "at least 3 line", fill: journal(arm, 0, 400, said{second: 330, message: skipping("3m0s"), ident: ""}, said{second: 340, message: skipping("3m0s"), ident: ""}),
			met: check.False, seen: "2 such lines among 2", evidence: lines, detail: "3m0s",
		},
		{
			name: "nothing, and the journal was not followed to the end", fill: journal(arm, 0, 350),
			met: check.Unknown, seen: "journal of vulnerable does not cover 10:05:25.0 to 10:06:35.0", evidence: lines,
		},
		{
			name: "there it is, though the journal was not followed to the end", fill: journal(arm, 0, 350, said{second: 330, message: skipping("3m0s"), ident: ""}),
			met: check.True, seen: "1 such lines among 1", evidence: lines, detail: "3m0s",
		},
		{
			name: "nothing, and a gap", fill: func(tr *trial) {
				tr.phases()
				st := tr.stream(bundle.Journal, arm)
				st.Alive(tr.at(0))
				st.Alive(tr.at(400))
				st.Gap(tr.at(340), tr.at(360), "the node is off")
			},
			met: check.Unknown, seen: "the node is off", evidence: lines,
		},
		{
			name: "nothing, and journald suppressed lines", fill: journal(arm, 0, 400, said{second: 330, message: "Suppressed 37 messages from kubelet.service", ident: "systemd-journald"}),
			met: check.Unknown, seen: "0 such lines, and the journal suppressed 37", evidence: lines,
		},
		{
			name: "lines suppressed before the window are no matter", fill: journal(arm, 0, 400, said{second: 100, message: "Suppressed 37 messages from kubelet.service", ident: "systemd-journald"}, said{second: 330, message: "I0301 hello", ident: ""}),
			met: check.False, seen: "0 such lines among 1", evidence: lines,
		},
		{
			name: "a kubelet that speaks of suppressing is not journald", fill: journal(arm, 0, 400, said{second: 330, message: "Suppressed 37 messages from kubelet.service", ident: ""}),
			met: check.False, seen: "0 such lines among 1", evidence: lines,
		},
		{
			name: "a line that is none", fill: func(tr *trial) {
				tr.phases()
				st := tr.stream(bundle.Journal, arm)
				tr.write(st, said{second: 0, message: "first", ident: ""}, said{second: 400, message: "last", ident: ""})
				tr.must(st.Line([]byte("-- Boot 7d2b --")))
			},
			met: check.Unknown, seen: "reading artifacts/00001-journal-vulnerable.jsonl: journal line 3: expected one JSON object", evidence: lines,
		},
		{name: "the other arm says so", fill: journal(other, 0, 400, said{second: 330, message: skipping("3m0s"), ident: ""}), met: check.Unknown, seen: "no journal was recorded for vulnerable"},
		{name: "a missing file", fill: journal(arm, 0, 400, said{second: 330, message: skipping("3m0s"), ident: ""}), damage: remove(t, bundle.Journal), met: check.Unknown, seen: "is missing"},
		{name: "a capture that failed", fill: func(tr *trial) { tr.phases(); tr.fail(bundle.Journal, arm, 0, "exit status 1") }, met: check.Unknown, seen: "the capture failed: exit status 1"},
		{name: "no pattern", spec: `{"pattern":"("}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "pattern: error parsing regexp"},
		{name: "every line", spec: `{"pattern":""}`, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "pattern is empty, which every line would match"},
		{name: "no line is enough", spec: `{"atLeast":0}`, wanted: "at least 0", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "atLeast is 0 (want at least 1)"},
		{
			name: "an age that exceeds the line's own limit", spec: exceeds, fill: journal(arm, 0, 400, said{second: 330, message: skip("3m0.5s"), ident: ""}, said{second: 331, message: skip("2m59s"), ident: ""}),
			met: check.True, seen: "1 such lines among 2", evidence: lines, detail: "active 3m0.5s ago",
			differs: []string{"age is 2m59s, which does not exceed the threshold of 3m0s"},
		},
		{
			name: "a group to exceed that the pattern lacks", spec: `{"exceeds":{"threshold":"no"}}`, fill: func(tr *trial) { tr.phases() },
			met: check.Unknown, seen: "exceeds.threshold: no: the pattern lacks one of these groups",
		},
	}, func(q *question) {
		q.kind, q.scope = "logLine", check.Scope{Arm: arm, Phase: check.Recovery, After: 30e9}
		q.spec = over(t, `{"pattern":"PLEG is not healthy: pleg was last seen active \\S+ ago; threshold is (?P<threshold>[0-9hms.]+)"}`, q.spec)
		if q.wanted == "" {
			q.wanted = "at least 1 line like "
		}
	})
}
