package check_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// renamed is an API server whose log has no line of a failed delete that anybody knows, beside what the load saw.
func renamed(rounds []string, shots ...shot) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		tr.process(arm, 312, 0, 394)
		tr.log(arm, "kube-apiserver", 0, 394, said{second: 100, message: `I1121 15:07:34.121212 1 store.go:1160] "An object was not deleted with its collection"`})
		tr.loadedWith(arm, "deletes", rounds...)
		tr.shoot(arm, shots...)
	}
}

// Exposure that rests on the API's own evidence is there whatever a build logs.
func TestCallsCutShort(t *testing.T) {
	early := strings.Replace(cut(20, 20, 20, 919), "10:00:45", "10:00:10", 1)
	run(t, []question{
		{
			name: "as many as are wanted", fill: renamed([]string{cut(20, 20, 20, 919)}), met: check.True, evidence: []bundle.Kind{bundle.LoadSummary},
			seen:   "20 calls that deleted and failed, as the load saw them, 20 of them with more than 256 items left (at least 919 of 1001)",
			wanted: "at least 10 calls of load deletes that failed while they deleted, with more than 256 items left",
		},
		{
			name: "which of them deleted is not known", fill: renamed([]string{cut(20, 15, 14, 919)}), met: check.False, evidence: []bundle.Kind{bundle.LoadSummary},
			seen: "9 calls that deleted and failed, as the load saw them (14 at most), 9 of them with more than 256 items left",
		},
		{
			name: "what was left the channel may have swallowed", fill: renamed([]string{cut(20, 20, 20, 256)}), met: check.False, evidence: []bundle.Kind{bundle.LoadSummary},
			seen: "0 of them with more than 256 items left (at least 256 of 1001)",
		},
		{
			name: "all is left: they died in their lists", fill: renamed([]string{cut(20, 0, 20, 1000)}), met: check.False, evidence: []bundle.Kind{bundle.LoadSummary},
			seen: "0 calls that deleted and failed",
		},
		{
			name: "none is left: they came to the end", fill: renamed([]string{cut(20, 20, 20, 0)}), met: check.False, evidence: []bundle.Kind{bundle.LoadSummary},
			seen: "0 calls that deleted and failed",
		},
		{
			name: "they succeeded", fill: renamed([]string{cut(20, 20, 0, 0)}), met: check.False, evidence: []bundle.Kind{bundle.LoadSummary},
			seen: "0 calls that deleted and failed",
		},
		{
			name: "what is left is not known", fill: renamed([]string{cut(20, 20, 20, -1)}), met: check.Unknown, evidence: []bundle.Kind{bundle.LoadSummary},
			seen: "how many objects round 1 of load deletes left is not known",
		},
		{
			name: "nobody saw a worker", met: check.Unknown, evidence: []bundle.Kind{bundle.LoadSummary}, seen: "in how many calls of round 1 of load deletes a worker deleted was not seen",
			fill: renamed([]string{`{"round":1,"start":"2026-03-01T10:00:45Z","calls":20}`}),
		},
		{
			name: "a round of another phase", fill: renamed([]string{early}), met: check.False, evidence: []bundle.Kind{bundle.LoadSummary}, seen: "0 calls that deleted and failed",
		},
		{
			name: "the rounds add up", met: check.True, evidence: []bundle.Kind{bundle.LoadSummary}, seen: "14 calls that deleted and failed, as the load saw them (16 at most), 14 of them",
			fill: renamed([]string{cut(8, 7, 8, 919), cut(8, 7, 8, 800)}),
		},
		{name: "no round", fill: renamed(nil), met: check.Unknown, seen: "load deletes made no round", evidence: []bundle.Kind{bundle.LoadSummary}},
		{
			name: "no record of the load", met: check.Unknown, seen: "no load deletes summed up what it did",
			fill: func(tr *trial) { tr.phases(); tr.loadedWith(arm, "others", cut(20, 20, 20, 919)) },
		},
		{
			name: "the other arm's load", met: check.Unknown, seen: "no load deletes summed up what it did",
			fill: func(tr *trial) { tr.phases(); tr.loadedWith(other, "deletes", cut(20, 20, 20, 919)) },
		},
		{
			name: "by the log", spec: byLog, fill: apiserver(arm, manyLinesEach(3)), met: check.True, evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			seen: "3 calls with a failed delete (20 at most), 3 of them with more than 256 items left (951..1000 of 1001)",
		},
		{
			name: "many lines about one collection", spec: byLog, fill: apiserver(arm, failed(100, 33, 39)), met: check.Unknown, evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			seen: "1 calls with a failed delete (2 at most), 1 of them with more than 256 items left (961..967 of 1001): one call may have written several of the lines",
		},
		{
			name: "fifty lines of one call", spec: over(t, byLog, `{"atLeast":10}`), fill: apiserver(arm, manyLinesEach(1)), met: check.Unknown,
			evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs}, seen: "1 calls with a failed delete (20 at most)",
		},
		{
			name: "one of two collections has no more left than the channel holds", spec: byLog, met: check.Unknown, evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			fill: apiserver(arm, append(manyLinesEach(1), failed(100, 33, 744)...)), seen: "1 calls with a failed delete (20 at most), 0 of them",
		},
		{
			name: "fewer lines than are wanted", spec: byLog, fill: apiserver(arm, failed(100, 33)), met: check.False, evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			seen: "1 calls with a failed delete, 1 of them with more than 256 items left",
		},
		{
			name: "they claim success, and left objects", fill: renamed([]string{succeeded(20, 0, 919)}), met: check.True, evidence: []bundle.Kind{bundle.LoadSummary},
			seen: "20 calls that deleted and failed, as the load saw them, 20 of them with more than 256 items left (at least 919 of 1001)",
		},
		{
			name: "by a log of other words", spec: byLog, fill: renamed([]string{cut(20, 20, 20, 919)}), met: check.False,
			evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs}, seen: "0 calls with a failed delete",
		},
		{name: "no load named", spec: `{"load":""}`, fill: renamed(nil), met: check.Unknown, seen: "load is empty"},
		{name: "none wanted", spec: `{"atLeast":0}`, fill: renamed(nil), met: check.Unknown, seen: "atLeast is 0 (want at least 1)"},
		{name: "no number in the line", spec: `{"failed":{"component":"c","pattern":"failed"}}`, fill: renamed(nil), met: check.Unknown, seen: "failed.pattern has no group index"},
	}, func(q *question) {
		q.kind, q.scope = "callsCutShort", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"load":"deletes","atLeast":10,"moreThan":256}`, q.spec)
	})
}

const byLog = `{"atLeast":2,"failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed.*item-(?P<index>[0-9]+)"}}`

// What an arm was tried with is measured, so that the verdict can say it.
func TestCallsCutShortSayWhatWasTried(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"as the load saw it", `{"load":"deletes"}`, "20 failed calls that left at least 919 of 1001 items each"},
		{"by the log", over(t, `{"load":"deletes"}`, byLog), "2 failed calls that left 951 to 1000 of 1001 items each"},
		{"too few", `{"load":"deletes","atLeast":21}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
			tr.phases()
			tr.log(arm, "kube-apiserver", 0, 394, manyLinesEach(2)...)
			tr.loadedWith(arm, "deletes", cut(20, 20, 20, 919))
			one, err := kinds.Decode[check.Check](kinds.Check, "callsCutShort", json.RawMessage(c.spec))
			if err != nil {
				t.Fatal(err)
			}
			if f := one.Eval(tr.w.View(), check.Scope{Arm: arm, Phase: check.Fault}); f.Tried != c.want {
				t.Errorf("tried %q, want %q: %+v", f.Tried, c.want, f)
			}
		})
	}
}

// A vulnerable build that words the line differently is still told by as many goroutines as calls were cut short.
func TestLeakedGoroutinesOfRenamedLines(t *testing.T) {
	twenty := []shot{leaks(300, 20), leaks(330, 20), leaks(360, 20)}
	run(t, []question{
		{
			name: "as many as the calls", fill: renamed([]string{cut(20, 20, 20, 919)}, twenty...), met: check.True, evidence: pairs(3, bundle.LoadSummary, bundle.Logs),
			seen: "20 calls that deleted and failed, as the load saw them, 20 of them with more than 256 items left", detail: "\nitems left: at least 919 of 1001",
		},
		{
			name: "as many as may have been cut short", fill: renamed([]string{cut(20, 18, 20, 919)}, twenty...), met: check.True,
			evidence: pairs(3, bundle.LoadSummary, bundle.Logs), seen: "18 calls that deleted and failed, as the load saw them (20 at most)", detail: "items left",
		},
		{
			name: "more than the calls", fill: renamed([]string{cut(20, 20, 19, 919)}, twenty...), met: check.Unknown, evidence: pairs(3, bundle.LoadSummary, bundle.Logs),
			seen: "the numbers differ, 20 goroutines and 19 such calls", detail: "items left",
		},
		{
			name: "the load doesn't know", fill: renamed([]string{cut(20, 20, 20, -1)}, twenty...), met: check.Unknown, evidence: pairs(3, bundle.LoadSummary, bundle.Logs),
			seen: "0 calls with a failed delete: the numbers differ", detail: "chan send",
		},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "leakedGoroutines", check.Scope{Arm: arm, Phase: check.Recovery}, over(t, leakSpec, leakCalls)
	})
}

// How many calls failed is known without the line, too; and where it isn't, few goroutines are few all the same.
func TestNothingLeftByCallsOfRenamedLines(t *testing.T) {
	const feed = "k8s.io/apiserver/pkg/registry/generic/registry.feed"
	shots := func(n int) []shot {
		is := []sameStack{{n: n, in: feed, state: "select", first: 3000}}
		return []shot{{second: 22}, {second: 35}, {second: 300, others: is}, {second: 330, others: is}, {second: 360, others: is}}
	}
	told := "the log has no line of a failed call, and the load tells their number; "
	run(t, []question{
		{name: "what comes and goes", fill: renamed([]string{cut(20, 20, 20, 919)}, shots(9)...), met: check.True, seen: told + "20 calls failed, and 9 goroutines more than in the baseline stay, of fewer than 10"},
		{name: "as many as half of the calls", fill: renamed([]string{cut(20, 20, 20, 919)}, shots(10)...), met: check.False, seen: told + "20 calls failed, and 10 goroutines more", detail: feed},
		{name: "not known, and few", fill: renamed([]string{cut(20, 20, 20, -1)}, shots(3)...), met: check.True, seen: told + "0 calls failed, and 3 goroutines more than in the baseline stay, of fewer than 4"},
		{name: "not known, and not few", fill: renamed([]string{cut(20, 20, 20, -1)}, shots(4)...), met: check.Unknown, seen: "how many objects round 1 of load deletes left is not known"},
	}, func(q *question) {
		q.kind, q.scope = "nothingStuck", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = `{"states":["chan send"],"dumps":3,"lastAfter":"60s","load":"deletes","failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"share":"50%"}`
		q.evidence = append(times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
	})
}
