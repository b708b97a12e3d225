package conformance_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	const a = `{"key":"a-$(n)"}`
	loads.add(loadCase{calls: 8, sent: 2, asks: asksEtcd, spec: `{"rounds":2,"pause":"10ms","steps":[` +
		`{"put":{"key":"a-$(n)","value":"one"}},{"name":"again","put":{"key":"b-$(n)","bytes":10}},` +
		`{"delete":` + a + `},{"name":"last","put":` + a + `},{"compact":{"at":"delete"}},` +
		`{"watch":{"key":"a-$(n)","from":"delete","until":"last","within":"5s"}},` +
		`{"open":{"key":"a-$(n)","watches":3}},{"pause":"1ms"},{"close":{"of":"open"}}]}`}, "etcd")
	checks.add(checkCase{evidence: watchesShown}, "etcdWatches")
}

func asksEtcd(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/etcdserverpb.") }

// watchesShown records a load whose two watches showed all.
func watchesShown(t *testing.T, s *staged) {
	t.Helper()
	now := time.Now()
	calls, err := s.w.Stream(bundle.Meta{Kind: bundle.Calls, Arm: arm}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := s.w.Stream(bundle.Meta{Kind: bundle.EtcdAnswers, Arm: arm}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []bundle.EtcdAnswer{{Step: "put", Verb: "put", Revision: 2}, {Step: "delete", Verb: "delete", Revision: 3},
		{Step: "watch", Verb: "watch", From: 2, Until: 3, Events: []bundle.EtcdEvent{{Type: "PUT", Key: "a", Revision: 2}, {Type: "DELETE", Key: "a", Revision: 3}}},
		{Step: "again", Verb: "watch", From: 3, Until: 3, Events: []bundle.EtcdEvent{{Type: "DELETE", Key: "a", Revision: 3}}},
	} {
		one.Load, one.Round, one.Key, one.Code, one.Time, one.Done = "history", 1, "a", 200, now, now
		if err := answers.JSON(one); err != nil {
			t.Fatal(err)
		}
		if err := calls.JSON(bundle.Call{Load: "history", Round: 1, Time: now, Done: now, Verb: one.Verb, Path: "a", Code: 200}); err != nil {
			t.Fatal(err)
		}
	}
	sum := bundle.Load{Name: "history", Planned: 4, Codes: map[string]int{"200": 4}, Rounds: []bundle.LoadRound{{Round: 1, Start: now, Calls: 4}}}
	if _, err := s.w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm}, sum); err != nil {
		t.Fatal(err)
	}
}
