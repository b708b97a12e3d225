package logs_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// said is a line of kubelet's at a second of the trial, and journald one of journald's own.
func said(second float64, message string) checktest.Said {
	return checktest.Said{Second: second, Message: message}
}

func journald(second float64, message string) checktest.Said {
	return checktest.Said{Second: second, Message: message, Ident: "systemd-journald"}
}

// skipped is kubelet's line that it skips pod synchronization because PLEG exceeds 3 minutes.
func skipped(second float64) checktest.Said { return said(second, checktest.Skipping("3m0s")) }

// journal is the judged arm's journal with these lines, followed to the end.
func journal(lines ...checktest.Said) func(*checktest.Trial) {
	return checktest.Journal(checktest.Arm, 0, 400, lines...)
}

func TestLogLine(t *testing.T) {
	lines := []bundle.Kind{bundle.Journal}
	checktest.Run(t, []checktest.Question{
		{
			Name: "it says so", Fill: journal(skipped(330), said(331, "I0301 another")),
			Met: check.True, Seen: "1 such lines among 2", Evidence: lines, Detail: "threshold is 3m0s",
		},
		{
			Name: "case does not matter", Spec: `{"pattern":"pleg IS NOT healthy: .* threshold is (?P<threshold>[0-9hms.]+)"}`, Fill: journal(said(330, checktest.Skipping("180s"))),
			Met: check.True, Seen: "1 such lines among 1", Evidence: lines, Detail: "180s",
		},
		{
			Name: "the line of every start, without a threshold", Fill: journal(said(330, `"Skipping pod synchronization" err="PLEG is not healthy: pleg has yet to be successful"`)),
			Met: check.False, Seen: "0 such lines among 1", Evidence: lines,
		},
		{
			Name: "said while the fault lasted, during the lift, before the offset and after the end",
			Fill: journal(skipped(280), skipped(292), skipped(324), skipped(396)),
			Met:  check.False, Seen: "0 such lines among 0", Evidence: lines,
		},
		{
			Name: "the edges of the window are in it", Fill: journal(skipped(325), skipped(395)),
			Met: check.True, Seen: "2 such lines among 2", Evidence: lines, Detail: "3m0s",
		},
		{
			Name: "fewer than wanted", Spec: `{"atLeast":3}`, Wanted: "at least 3 line", Fill: journal(skipped(330), skipped(340)),
			Met: check.False, Seen: "2 such lines among 2", Evidence: lines, Detail: "3m0s",
		},
		{
			Name: "nothing, and the journal was not followed to the end", Fill: checktest.Journal(checktest.Arm, 0, 350),
			Met: check.Unknown, Code: check.Gap, Seen: "journal of vulnerable does not cover 10:05:25.0 to 10:06:35.0", Evidence: lines,
		},
		{
			Name: "there it is, though the journal was not followed to the end", Fill: checktest.Journal(checktest.Arm, 0, 350, skipped(330)),
			Met: check.True, Seen: "1 such lines among 1", Evidence: lines, Detail: "3m0s",
		},
		{
			Name: "nothing, and a gap", Fill: func(tr *checktest.Trial) {
				tr.Phases()
				st := tr.Stream(bundle.Journal, checktest.Arm)
				st.Alive(tr.At(0))
				st.Alive(tr.At(400))
				st.Gap(tr.At(340), tr.At(360), "the node is off")
			},
			Met: check.Unknown, Seen: "the node is off", Evidence: lines,
		},
		{
			Name: "nothing, and journald suppressed lines", Fill: journal(journald(330, "Suppressed 37 messages from kubelet.service")),
			Met: check.Unknown, Code: check.Gap, Seen: "0 such lines, and the journal suppressed 37", Evidence: lines,
		},
		{
			Name: "lines suppressed before the window are no matter", Fill: journal(journald(100, "Suppressed 37 messages from kubelet.service"), said(330, "I0301 hello")),
			Met: check.False, Seen: "0 such lines among 1", Evidence: lines,
		},
		{
			Name: "a kubelet that speaks of suppressing is not journald", Fill: journal(said(330, "Suppressed 37 messages from kubelet.service")),
			Met: check.False, Seen: "0 such lines among 1", Evidence: lines,
		},
		{
			Name: "a line that is none", Fill: func(tr *checktest.Trial) {
				tr.Phases()
				st := tr.Stream(bundle.Journal, checktest.Arm)
				tr.Write(st, said(0, "first"), said(400, "last"))
				tr.Must(st.Line([]byte("-- Boot 7d2b --")))
			},
			Met: check.Unknown, Seen: "reading artifacts/00001-journal-vulnerable.jsonl: journal line 3: expected one JSON object", Evidence: lines,
		},
		{Name: "the other arm says so", Fill: checktest.Journal(checktest.Other, 0, 400, skipped(330)), Met: check.Unknown, Code: check.NotRecorded, Seen: "no journal was recorded for vulnerable"},
		{Name: "a missing file", Fill: journal(skipped(330)), Damage: checktest.Remove(t, bundle.Journal), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
		{Name: "a capture that failed", Fill: func(tr *checktest.Trial) { tr.Phases(); tr.Fail(bundle.Journal, checktest.Arm, 0, "exit status 1") }, Met: check.Unknown, Code: check.Unreadable, Seen: "the capture failed: exit status 1"},
		{Name: "no pattern", Spec: `{"pattern":"("}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "pattern: error parsing regexp"},
		{Name: "every line", Spec: `{"pattern":""}`, Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "pattern is empty, which every line would match"},
		{Name: "no line is enough", Spec: `{"atLeast":0}`, Wanted: "at least 0", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Code: check.BadCheck, Seen: "atLeast is 0 (want at least 1)"},
		{
			Name: "an age that exceeds the line's own limit", Spec: checktest.Exceeds, Fill: journal(said(330, checktest.LastSeenActive("3m0.5s")), said(331, checktest.LastSeenActive("2m59s"))),
			Met: check.True, Seen: "1 such lines among 2", Evidence: lines, Detail: "active 3m0.5s ago",
			Differs: []string{"age is 2m59s, which does not exceed the threshold of 3m0s"},
		},
		{
			Name: "a group to exceed that the pattern lacks", Spec: `{"exceeds":{"threshold":"no"}}`, Fill: func(tr *checktest.Trial) { tr.Phases() },
			Met: check.Unknown, Seen: "exceeds.threshold: no: the pattern lacks one of these groups",
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "logLine", check.Scope{Arm: checktest.Arm, Phase: check.Recovery, After: 30e9}
		q.Spec = checktest.Over(t, `{"pattern":"PLEG is not healthy: pleg was last seen active \\S+ ago; threshold is (?P<threshold>[0-9hms.]+)"}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "at least 1 line like "
		}
	})
}
