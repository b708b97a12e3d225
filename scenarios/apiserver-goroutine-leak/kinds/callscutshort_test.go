package kinds_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// renamed is an API server whose log has no line of a failed delete that anybody knows, beside what the load saw.
func renamed(rounds []string, shots ...checktest.Shot) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		tr.Phases()
		tr.Process(checktest.Arm, 312, 0, 394)
		tr.Log(checktest.Arm, "kube-apiserver", 0, 394, checktest.Said{Second: 100, Message: `I1121 15:07:34.121212 1 store.go:1160] "An object was not deleted with its collection"`})
		tr.LoadedWith(checktest.Arm, "deletes", rounds...)
		tr.Shoot(checktest.Arm, shots...)
	}
}

// Exposure that rests on the API's own evidence is there whatever a build logs.
func TestCallsCutShort(t *testing.T) {
	early := strings.Replace(checktest.Cut(20, 20, 20, 919), "10:00:45", "10:00:10", 1)
	checktest.Run(t, []checktest.Question{
		{
			Name: "as many as are wanted", Fill: renamed([]string{checktest.Cut(20, 20, 20, 919)}), Met: check.True, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen:   "20 calls that deleted and failed, as the load saw them, 20 of them with more than 256 items left (at least 919 of 1001)",
			Wanted: "at least 10 calls of load deletes that failed while they deleted, with more than 256 items left",
		},
		{
			Name: "which of them deleted is not known", Fill: renamed([]string{checktest.Cut(20, 15, 14, 919)}), Met: check.False, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen: "9 calls that deleted and failed, as the load saw them (14 at most), 9 of them with more than 256 items left",
		},
		{
			Name: "what was left the channel may have swallowed", Fill: renamed([]string{checktest.Cut(20, 20, 20, 256)}), Met: check.False, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen: "0 of them with more than 256 items left (at least 256 of 1001)",
		},
		{
			Name: "all is left: they died in their lists", Fill: renamed([]string{checktest.Cut(20, 0, 20, 1000)}), Met: check.False, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen: "0 calls that deleted and failed",
		},
		{
			Name: "none is left: they came to the end", Fill: renamed([]string{checktest.Cut(20, 20, 20, 0)}), Met: check.False, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen: "0 calls that deleted and failed",
		},
		{
			Name: "they succeeded", Fill: renamed([]string{checktest.Cut(20, 20, 0, 0)}), Met: check.False, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen: "0 calls that deleted and failed",
		},
		{
			Name: "what is left is not known", Fill: renamed([]string{checktest.Cut(20, 20, 20, -1)}), Met: check.Unknown, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen: "how many objects round 1 of load deletes left is not known",
		},
		{
			Name: "nobody saw a worker", Met: check.Unknown, Evidence: []bundle.Kind{bundle.LoadSummary}, Seen: "in how many calls of round 1 of load deletes a worker deleted was not seen",
			Fill: renamed([]string{`{"round":1,"start":"2026-03-01T10:00:45Z","calls":20}`}),
		},
		{
			Name: "a round of another phase", Fill: renamed([]string{early}), Met: check.False, Evidence: []bundle.Kind{bundle.LoadSummary}, Seen: "0 calls that deleted and failed",
		},
		{
			Name: "the rounds add up", Met: check.True, Evidence: []bundle.Kind{bundle.LoadSummary}, Seen: "14 calls that deleted and failed, as the load saw them (16 at most), 14 of them",
			Fill: renamed([]string{checktest.Cut(8, 7, 8, 919), checktest.Cut(8, 7, 8, 800)}),
		},
		{Name: "no round", Fill: renamed(nil), Met: check.Unknown, Seen: "load deletes made no round", Evidence: []bundle.Kind{bundle.LoadSummary}},
		{
			Name: "no record of the load", Met: check.Unknown, Seen: "no load deletes summed up what it did",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LoadedWith(checktest.Arm, "others", checktest.Cut(20, 20, 20, 919))
			},
		},
		{
			Name: "the other arm's load", Met: check.Unknown, Seen: "no load deletes summed up what it did",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LoadedWith(checktest.Other, "deletes", checktest.Cut(20, 20, 20, 919))
			},
		},
		{
			Name: "by the log", Spec: byLog, Fill: checktest.Apiserver(checktest.Arm, manyLinesEach(3)), Met: check.True, Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			Seen: "3 calls with a failed delete (20 at most), 3 of them with more than 256 items left (951..1000 of 1001)",
		},
		{
			Name: "many lines about one collection", Spec: byLog, Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33, 39)), Met: check.Unknown, Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			Seen: "1 calls with a failed delete (2 at most), 1 of them with more than 256 items left (961..967 of 1001): one call may have written several of the lines",
		},
		{
			Name: "fifty lines of one call", Spec: checktest.Over(t, byLog, `{"atLeast":10}`), Fill: checktest.Apiserver(checktest.Arm, manyLinesEach(1)), Met: check.Unknown,
			Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs}, Seen: "1 calls with a failed delete (20 at most)",
		},
		{
			Name: "one of two collections has no more left than the channel holds", Spec: byLog, Met: check.Unknown, Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			Fill: checktest.Apiserver(checktest.Arm, append(manyLinesEach(1), checktest.Failed(100, 33, 744)...)), Seen: "1 calls with a failed delete (20 at most), 0 of them",
		},
		{
			Name: "fewer lines than are wanted", Spec: byLog, Fill: checktest.Apiserver(checktest.Arm, checktest.Failed(100, 33)), Met: check.False, Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs},
			Seen: "1 calls with a failed delete, 1 of them with more than 256 items left",
		},
		{
			Name: "they claim success, and left objects", Fill: renamed([]string{checktest.Succeeded(20, 0, 919)}), Met: check.True, Evidence: []bundle.Kind{bundle.LoadSummary},
			Seen: "20 calls that deleted and failed, as the load saw them, 20 of them with more than 256 items left (at least 919 of 1001)",
		},
		{
			Name: "by a log of other words", Spec: byLog, Fill: renamed([]string{checktest.Cut(20, 20, 20, 919)}), Met: check.False,
			Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Logs}, Seen: "0 calls with a failed delete",
		},
		{Name: "no load named", Spec: `{"load":""}`, Fill: renamed(nil), Met: check.Unknown, Code: check.BadCheck, Seen: "load is empty"},
		{Name: "none wanted", Spec: `{"atLeast":0}`, Fill: renamed(nil), Met: check.Unknown, Code: check.BadCheck, Seen: "atLeast is 0 (want at least 1)"},
		{Name: "no number in the line", Spec: `{"failed":{"component":"c","pattern":"failed"}}`, Fill: renamed(nil), Met: check.Unknown, Seen: "failed.pattern has no group index"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "callsCutShort", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"load":"deletes","atLeast":10,"moreThan":256}`, q.Spec)
	})
}

const byLog = `{"atLeast":2,"failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed.*item-(?P<index>[0-9]+)"}}`

// What an arm was tried with is measured, so that the verdict can say it.
func TestCallsCutShortSayWhatWasTried(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"as the load saw it", `{"load":"deletes"}`, "20 failed calls that left at least 919 of 1001 items each"},
		{"by the log", checktest.Over(t, `{"load":"deletes"}`, byLog), "2 failed calls that left 951 to 1000 of 1001 items each"},
		{"too few", `{"load":"deletes","atLeast":21}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := checktest.NewTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
			tr.Phases()
			tr.Log(checktest.Arm, "kube-apiserver", 0, 394, manyLinesEach(2)...)
			tr.LoadedWith(checktest.Arm, "deletes", checktest.Cut(20, 20, 20, 919))
			one, err := kinds.Decode[check.Check](kinds.Check, "callsCutShort", json.RawMessage(c.spec))
			if err != nil {
				t.Fatal(err)
			}
			if f := one.Eval(tr.W.View(), check.Scope{Arm: checktest.Arm, Phase: check.Fault}); f.Tried != c.want {
				t.Errorf("tried %q, want %q: %+v", f.Tried, c.want, f)
			}
		})
	}
}

// A vulnerable build that words the line differently is still told by as many goroutines as calls were cut short.
func TestLeakedGoroutinesOfRenamedLines(t *testing.T) {
	twenty := []checktest.Shot{checktest.Leaks(300, 20), checktest.Leaks(330, 20), checktest.Leaks(360, 20)}
	checktest.Run(t, []checktest.Question{
		{
			Name: "as many as the calls", Fill: renamed([]string{checktest.Cut(20, 20, 20, 919)}, twenty...), Met: check.True, Evidence: checktest.Pairs(3, bundle.LoadSummary, bundle.Logs),
			Seen: "20 calls that deleted and failed, as the load saw them, 20 of them with more than 256 items left", Detail: "\nitems left: at least 919 of 1001",
		},
		{
			Name: "as many as may have been cut short", Fill: renamed([]string{checktest.Cut(20, 18, 20, 919)}, twenty...), Met: check.True,
			Evidence: checktest.Pairs(3, bundle.LoadSummary, bundle.Logs), Seen: "18 calls that deleted and failed, as the load saw them (20 at most)", Detail: "items left",
		},
		{
			Name: "more than the calls", Fill: renamed([]string{checktest.Cut(20, 20, 19, 919)}, twenty...), Met: check.Unknown, Evidence: checktest.Pairs(3, bundle.LoadSummary, bundle.Logs),
			Seen: "the numbers differ, 20 goroutines and 19 such calls", Detail: "items left",
		},
		{
			Name: "the load doesn't know", Fill: renamed([]string{checktest.Cut(20, 20, 20, -1)}, twenty...), Met: check.Unknown, Evidence: checktest.Pairs(3, bundle.LoadSummary, bundle.Logs),
			Seen: "0 calls with a failed delete: the numbers differ", Detail: "chan send",
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "leakedGoroutines", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, checktest.Over(t, leakSpec, leakCalls)
	})
}

// How many calls failed is known without the line, too; and where it isn't, few goroutines are few all the same.
func TestNothingLeftByCallsOfRenamedLines(t *testing.T) {
	const feed = "k8s.io/apiserver/pkg/registry/generic/registry.feed"
	shots := func(n int) []checktest.Shot {
		is := []checktest.SameStack{{N: n, In: feed, State: "select", First: 3000}}
		return []checktest.Shot{{Second: 22}, {Second: 35}, {Second: 300, Others: is}, {Second: 330, Others: is}, {Second: 360, Others: is}}
	}
	told := "the log has no line of a failed call, and the load tells their number; "
	checktest.Run(t, []checktest.Question{
		{Name: "what comes and goes", Fill: renamed([]string{checktest.Cut(20, 20, 20, 919)}, shots(9)...), Met: check.True, Seen: told + "20 calls failed, and 9 goroutines more than in the baseline stay, of fewer than 10"},
		{Name: "as many as half of the calls", Fill: renamed([]string{checktest.Cut(20, 20, 20, 919)}, shots(10)...), Met: check.False, Seen: told + "20 calls failed, and 10 goroutines more", Detail: feed},
		{Name: "not known, and few", Fill: renamed([]string{checktest.Cut(20, 20, 20, -1)}, shots(3)...), Met: check.True, Seen: told + "0 calls failed, and 3 goroutines more than in the baseline stay, of fewer than 4"},
		{Name: "not known, and not few", Fill: renamed([]string{checktest.Cut(20, 20, 20, -1)}, shots(4)...), Met: check.Unknown, Seen: "how many objects round 1 of load deletes left is not known"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "nothingStuck", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = `{"states":["chan send"],"dumps":3,"lastAfter":"60s","load":"deletes","failed":{"component":"kube-apiserver","pattern":"Delete object in DeleteCollection failed"},"share":"50%"}`
		q.Evidence = append(checktest.Times(5, bundle.Goroutines2), bundle.Logs, bundle.LoadSummary)
	})
}
