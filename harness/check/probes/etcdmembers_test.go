package probes_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestEtcdMembers(t *testing.T) {
	listed := func(is string) bundle.EtcdAnswer {
		return bundle.EtcdAnswer{Step: "listed", Verb: "members", Code: 200, Member: &bundle.EtcdMember{ID: "2f", Is: is, Peers: []string{"http://two.invalid"}}}
	}
	added, refused, noAnswer := listed(bundle.EtcdVoter), bundle.EtcdAnswer{Step: "listed", Verb: "members", Code: 400, Error: "no leader"}, bundle.EtcdAnswer{Step: "listed", Verb: "members"}
	added.Step, added.Verb = "addMember", "addMember"
	failed := refused
	failed.Code = 503
	learner, voter := listed(bundle.EtcdLearner), listed(bundle.EtcdVoter)
	const one, two = `"is":"learner","atLeast":1`, `"is":"learner","atLeast":2`
	for name, c := range map[string]struct {
		spec    string
		fill    func(*checktest.Trial)
		met     check.Truth
		code    check.Code
		seen    string
		differs []string
	}{
		"a learner":            {one, asked(2, 0, added, learner), check.True, "", "1 of 1", nil},
		"a voter":              {one, asked(2, 0, added, voter), check.False, "", "0 of 1", []string{"round 1: 2f is voter http://two.invalid"}},
		"of another step":      {`"is":"voter","atLeast":1`, asked(2, 0, added, learner), check.False, "", "0 of 1", []string{"2f is learner"}},
		"at another address":   {one + `,"peer":"http://one.invalid"`, asked(1, 0, learner), check.False, "", "0 of 1", []string{"2f is learner http://two.invalid"}},
		"at this address":      {one + `,"peer":"http://two.invalid"`, asked(1, 0, learner), check.True, "", "1 of 1", nil},
		"removed":              {`"is":"missing","atLeast":1`, asked(1, 0, listed(bundle.EtcdMissing)), check.True, "", "1 of 1", nil},
		"refused":              {one, asked(1, 0, refused), check.False, "", "0 of 1", []string{"round 1: no leader"}},
		"failed":               {`"is":"voter","atLeast":1`, asked(1, 0, failed), check.Unknown, check.NotConclusive, "0 of 1; of 1 more it isn't known", nil},
		"without an answer":    {two, asked(2, 0, learner, noAnswer), check.Unknown, check.NotConclusive, "1 of 2; of 1 more it isn't known", nil},
		"not all was asked":    {two, asked(3, 0, learner), check.Unknown, check.NotConclusive, "1 of 1; of 2 more it isn't known", nil},
		"answers lost":         {one, asked(2, 1, added, learner), check.Unknown, check.NotRecorded, "1 of the 2 answers of etcd to load history are recorded", nil},
		"no record of any":     {one, (*checktest.Trial).Phases, check.Unknown, check.NotRecorded, "no load history summed up what it did", nil},
		"began after baseline": {one, asked(1, 0, learner), check.False, "", "0 of 0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := checktest.Question{Kind: "etcdMembers", Spec: `{"load":"history","step":"listed",` + c.spec + `}`,
				Scope: check.Scope{Arm: checktest.Arm, Phase: check.Fault}, Fill: c.fill, Met: c.met, Code: c.code, Seen: c.seen, Differs: c.differs,
				Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Calls, bundle.EtcdAnswers}, Wanted: "answers to listed of load history"}
			switch name {
			case "no record of any":
				q.Evidence = nil
			case "began after baseline":
				q.Scope.Phase, q.Evidence = check.Baseline, q.Evidence[:1]
			}
			checktest.Open(t, q)
		})
	}
}
