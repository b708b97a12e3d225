package kinds_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// A call that says that it emptied its collection has to have done so.
func TestEmptiedAsAnswered(t *testing.T) {
	round := func(n, was string) string { return strings.Replace(was, `"round":1`, `"round":`+n, 1) }
	summed := func(summary string) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			_, err := tr.W.Write(bundle.Meta{Kind: bundle.LoadSummary, Arm: checktest.Arm, Time: tr.At(280)}, "json", strings.NewReader(summary))
			tr.Must(err)
		}
	}
	checktest.Run(t, []checktest.Question{
		{
			Name: "all failed, and said so", Fill: renamed([]string{checktest.Succeeded(0, 20, 934)}), Met: check.True,
			Seen:   "0 of 20 calls of round 1 were answered with success, and 934 of 1000 objects are left",
			Wanted: "no call of load deletes that was answered with success and left objects behind",
		},
		{
			Name: "all claim success", Fill: renamed([]string{checktest.Succeeded(20, 0, 919)}), Met: check.False,
			Seen: "20 of 20 calls of round 1 were answered with success, and 919 of 1000 objects are left",
		},
		{Name: "one claims success", Fill: renamed([]string{checktest.Succeeded(1, 19, 919)}), Met: check.False, Seen: "1 of 20 calls of round 1 were answered with success"},
		{Name: "one object is left", Fill: renamed([]string{checktest.Succeeded(1, 19, 1)}), Met: check.False, Seen: "and 1 of 1000 objects are left"},
		{Name: "they did what they say", Fill: renamed([]string{checktest.Succeeded(20, 0, 0)}), Met: check.True, Seen: "20 of 20 calls of round 1 were answered with success, and 0 of 1000"},
		{Name: "what a success left is not known", Fill: renamed([]string{checktest.Succeeded(1, 19, -1)}), Met: check.Unknown, Seen: "and how many objects they left is not known"},
		{Name: "what failures left may stay unknown", Fill: renamed([]string{checktest.Succeeded(0, 20, -1)}), Met: check.True, Seen: "0 of 20 calls of round 1 were answered with success, and how many"},
		{
			Name: "nobody looked, and one claims success", Met: check.Unknown, Seen: "1 of 20 calls of round 1 were answered with success, and how many objects they left is not known",
			Fill: renamed([]string{`{"round":1,"start":"2026-03-01T10:00:45Z","calls":20,"codes":{"200":1,"none":19}}`}),
		},
		{
			Name: "one round of two", Fill: renamed([]string{checktest.Succeeded(0, 20, 934), round("2", checktest.Succeeded(3, 17, 800))}), Met: check.False,
			Seen: "934 of 1000 objects are left; 3 of 20 calls of round 2 were answered with success, and 800",
		},
		{
			Name: "another round's success", Fill: renamed([]string{checktest.Succeeded(0, 20, 934), round("2", checktest.Succeeded(20, 0, 0))}), Met: check.True,
			Seen: "20 of 20 calls of round 2 were answered with success, and 0 of",
		},
		{
			Name: "an earlier version counted the answers of the whole load only", Met: check.False, Seen: "20 of 20 calls of round 1 were answered with success, and 919",
			Fill: summed(`{"name":"deletes","objects":1000,"codes":{"200":20},"rounds":[` + checktest.Cut(20, 20, 0, 919) + `]}`),
		},
		{
			Name: "which round they were of is not known", Met: check.Unknown, Seen: "what the calls of round 1 were answered was not counted",
			Fill: summed(`{"name":"deletes","objects":1000,"codes":{"200":20},"rounds":[` + checktest.Cut(20, 20, 0, 919) + `,` + checktest.Cut(20, 20, 0, 0) + `]}`),
		},
		{
			Name: "the namespace controller's calls", Met: check.True, Seen: "the namespace controller deleted the collections, and no answer to the load says anything of them",
			Fill: summed(`{"name":"deletes","way":"namespaceController","objects":1000,"codes":{"200":12},"rounds":[{"round":1,"calls":12}]}`),
		},
		{Name: "no round", Fill: renamed(nil), Met: check.Unknown, Seen: "load deletes made no round"},
		{Name: "no record of the load", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "no load deletes summed up what it did"},
		{Name: "no load named", Spec: `{"load":""}`, Fill: renamed(nil), Met: check.Unknown, Code: check.BadCheck, Seen: "load is empty"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "emptiedAsAnswered", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, checktest.Over(t, `{"load":"deletes"}`, q.Spec)
		if !strings.Contains(q.Seen, "no load") && !strings.Contains(q.Seen, "is empty") {
			q.Evidence = []bundle.Kind{bundle.LoadSummary}
		}
	})
}
