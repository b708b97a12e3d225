package check_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// A call that says that it emptied its collection has to have done so.
func TestEmptiedAsAnswered(t *testing.T) {
	round := func(n, was string) string { return strings.Replace(was, `"round":1`, `"round":`+n, 1) }
	summed := func(summary string) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			_, err := tr.w.Write(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm, Time: tr.at(280)}, "json", strings.NewReader(summary))
			tr.must(err)
		}
	}
	run(t, []question{
		{
			name: "all failed, and said so", fill: renamed([]string{succeeded(0, 20, 934)}), met: check.True,
			seen:   "0 of 20 calls of round 1 were answered with success, and 934 of 1000 objects are left",
			wanted: "no call of load deletes that was answered with success and left objects behind",
		},
		{
			name: "all claim success", fill: renamed([]string{succeeded(20, 0, 919)}), met: check.False,
			seen: "20 of 20 calls of round 1 were answered with success, and 919 of 1000 objects are left",
		},
		{name: "one claims success", fill: renamed([]string{succeeded(1, 19, 919)}), met: check.False, seen: "1 of 20 calls of round 1 were answered with success"},
		{name: "one object is left", fill: renamed([]string{succeeded(1, 19, 1)}), met: check.False, seen: "and 1 of 1000 objects are left"},
		{name: "they did what they say", fill: renamed([]string{succeeded(20, 0, 0)}), met: check.True, seen: "20 of 20 calls of round 1 were answered with success, and 0 of 1000"},
		{name: "what a success left is not known", fill: renamed([]string{succeeded(1, 19, -1)}), met: check.Unknown, seen: "and how many objects they left is not known"},
		{name: "what failures left may stay unknown", fill: renamed([]string{succeeded(0, 20, -1)}), met: check.True, seen: "0 of 20 calls of round 1 were answered with success, and how many"},
		{
			name: "nobody looked, and one claims success", met: check.Unknown, seen: "1 of 20 calls of round 1 were answered with success, and how many objects they left is not known",
			fill: renamed([]string{`{"round":1,"start":"2026-03-01T10:00:45Z","calls":20,"codes":{"200":1,"none":19}}`}),
		},
		{
			name: "one round of two", fill: renamed([]string{succeeded(0, 20, 934), round("2", succeeded(3, 17, 800))}), met: check.False,
			seen: "934 of 1000 objects are left; 3 of 20 calls of round 2 were answered with success, and 800",
		},
		{
			name: "another round's success", fill: renamed([]string{succeeded(0, 20, 934), round("2", succeeded(20, 0, 0))}), met: check.True,
			seen: "20 of 20 calls of round 2 were answered with success, and 0 of",
		},
		{
			name: "an earlier version counted the answers of the whole load only", met: check.False, seen: "20 of 20 calls of round 1 were answered with success, and 919",
			fill: summed(`{"name":"deletes","objects":1000,"codes":{"200":20},"rounds":[` + cut(20, 20, 0, 919) + `]}`),
		},
		{
			name: "which round they were of is not known", met: check.Unknown, seen: "what the calls of round 1 were answered was not counted",
			fill: summed(`{"name":"deletes","objects":1000,"codes":{"200":20},"rounds":[` + cut(20, 20, 0, 919) + `,` + cut(20, 20, 0, 0) + `]}`),
		},
		{
			name: "the namespace controller's calls", met: check.True, seen: "the namespace controller deleted the collections, and no answer to the load says anything of them",
			fill: summed(`{"name":"deletes","way":"namespaceController","objects":1000,"codes":{"200":12},"rounds":[{"round":1,"calls":12}]}`),
		},
		{name: "no round", fill: renamed(nil), met: check.Unknown, seen: "load deletes made no round"},
		{name: "no record of the load", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "no load deletes summed up what it did"},
		{name: "no load named", spec: `{"load":""}`, fill: renamed(nil), met: check.Unknown, seen: "load is empty"},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "emptiedAsAnswered", check.Scope{Arm: arm, Phase: check.Recovery}, over(t, `{"load":"deletes"}`, q.spec)
		if !strings.Contains(q.seen, "no load") && !strings.Contains(q.seen, "is empty") {
			q.evidence = []bundle.Kind{bundle.LoadSummary}
		}
	})
}
