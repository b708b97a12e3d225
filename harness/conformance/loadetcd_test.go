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
	loads.add(loadCase{calls: 13, sent: 2, asks: asksEtcd, spec: `{"rounds":2,"pause":"10ms","steps":[` +
		`{"put":{"key":"a-$(n)","value":"one"}},{"name":"again","put":{"key":"b-$(n)","bytes":10}},` +
		`{"delete":` + a + `},{"name":"last","put":` + a + `},{"compact":{"at":"delete"}},` +
		`{"watch":{"key":"a-$(n)","from":"delete","until":"last","within":"5s"}},` +
		`{"open":{"key":"a-$(n)","watches":3,"from":"last"}},{"progress":{"of":"open","within":"5s"}},{"pause":"1ms"},` +
		`{"close":{"of":"open"}},{"name":"two","addMember":{"peer":"http://one.invalid","learner":true}},{"members":{"of":"two"}},` +
		`{"updateMember":{"of":"two","peer":"http://two.invalid"}},{"removeMember":{"of":"two"}}]}`}, "etcd")
	checks.add(checkCase{evidence: watchesShown}, "etcdWatches")
	checks.add(checkCase{evidence: membersListed}, "etcdMembers")
}

func asksEtcd(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/etcdserverpb.") }

// watchesShown records a load whose two watches showed all.
func watchesShown(t *testing.T, s *staged) {
	t.Helper()
	answered(t, s, "history", bundle.EtcdAnswer{Step: "put", Verb: "put", Revision: 2}, bundle.EtcdAnswer{Step: "delete", Verb: "delete", Revision: 3},
		bundle.EtcdAnswer{Step: "watch", Verb: "watch", From: 2, Until: 3, Events: []bundle.EtcdEvent{{Type: "PUT", Key: "a", Revision: 2}, {Type: "DELETE", Key: "a", Revision: 3}}},
		bundle.EtcdAnswer{Step: "again", Verb: "watch", From: 3, Until: 3, Events: []bundle.EtcdEvent{{Type: "DELETE", Key: "a", Revision: 3}}})
}

// membersListed records a load that was shown a learner.
func membersListed(t *testing.T, s *staged) {
	t.Helper()
	is := &bundle.EtcdMember{ID: "2", Is: bundle.EtcdLearner, Peers: []string{"http://two.invalid"}}
	answered(t, s, "members", bundle.EtcdAnswer{Step: "addMember", Verb: "addMember", Member: is}, bundle.EtcdAnswer{Step: "listed", Verb: "members", Member: is})
}

// answered records a load of one round, with what etcd answered.
func answered(t *testing.T, s *staged, load string, all ...bundle.EtcdAnswer) {
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
	for _, one := range all {
		one.Load, one.Round, one.Key, one.Code, one.Time, one.Done = load, 1, "a", 200, now, now
		if err := answers.JSON(one); err != nil {
			t.Fatal(err)
		}
		if err := calls.JSON(bundle.Call{Load: load, Round: 1, Time: now, Done: now, Verb: one.Verb, Path: "a", Code: 200}); err != nil {
			t.Fatal(err)
		}
	}
	sum := bundle.Load{Name: load, Planned: len(all), Codes: map[string]int{"200": len(all)},
		Rounds: []bundle.LoadRound{{Round: 1, Start: now, Calls: len(all)}}}
	if _, err := s.w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm}, sum); err != nil {
		t.Fatal(err)
	}
}
