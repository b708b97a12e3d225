package probes_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func changed(verb string, revision int64) bundle.EtcdAnswer {
	return bundle.EtcdAnswer{Step: verb, Verb: verb, Key: "a", Code: 200, Revision: revision}
}

// watched is a watch of a from revision 4 to 5 that showed changes, each with its type and revision.
func watched(events ...bundle.EtcdEvent) bundle.EtcdAnswer {
	for i := range events {
		events[i].Key = "a"
	}
	return bundle.EtcdAnswer{Step: "watch", Verb: "watch", Key: "a", Code: 200, From: 4, Until: 5, Events: events}
}

// asked records a load of so many planned requests, with the answers of etcd and a call for each but the last lost.
func asked(planned, lost int, answers ...bundle.EtcdAnswer) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		sum := bundle.Load{Name: "history", Planned: planned, Rounds: []bundle.LoadRound{{Round: 1, Start: tr.At(100), Calls: len(answers)}}}
		var calls []bundle.Call
		for _, a := range answers {
			calls = append(calls, bundle.Call{Verb: a.Verb, Code: a.Code})
		}
		tr.Calls(sum, calls...)
		st := tr.Stream(bundle.EtcdAnswers, checktest.Arm)
		for _, a := range answers[:len(answers)-lost] {
			a.Load, a.Round = "history", 1
			tr.Must(st.JSON(a))
		}
	}
}

func TestEtcdWatches(t *testing.T) {
	put3, gone4, put5 := changed("put", 3), changed("delete", 4), changed("put", 5)
	del, put := bundle.EtcdEvent{Type: "DELETE", Revision: 4}, bundle.EtcdEvent{Type: "PUT", Revision: 5}
	noAnswer, elsewhere, refused, ended, stranger := changed("put", 0), changed("put", 4), watched(), watched(), watched(del, put)
	noAnswer.Code = 0
	failed := changed("put", 0)
	failed.Code = 500
	elsewhere.Key = "b"
	refused.Canceled, refused.Compacted, refused.Reason = true, 5, "compacted"
	ended.Code, ended.LoadEnded = 0, true
	stranger.Key, stranger.Events = "other", []bundle.EtcdEvent{{Type: "PUT", Key: "other", Revision: 5}}
	later := asked(4, 0, put3, gone4, put5, watched(put))
	const gap, all, refusal, less = `"shown":"gap","lacks":"DELETE"`, `"shown":"all"`, `"shown":"refused"`, `"shown":"less"`
	for name, c := range map[string]struct {
		spec string
		fill func(*checktest.Trial)
		met  check.Truth
		code check.Code
		seen string
		more []string // what differs, or the detail if the answer is true
	}{
		"all is shown":              {all, asked(4, 0, put3, gone4, put5, watched(del, put)), check.True, "", "1 of 1, all: 1", []string{"watch in round 1, from revision 4 on: DELETE 4, PUT 5"}},
		"the deletion is missing":   {gap, asked(4, 0, put3, gone4, put5, watched(put)), check.True, "", "1 of 1, gap: 1", []string{"watch in round 1, from revision 4 on: PUT 5; it lacks DELETE 4"}},
		"a gap is not all":          {all, asked(4, 0, put3, gone4, put5, watched(put)), check.False, "", "0 of 1, gap: 1", []string{"from revision 4 on: PUT 5; it lacks DELETE 4"}},
		"another change is missing": {gap, asked(4, 0, put3, changed("put", 4), put5, watched(put)), check.False, "", "0 of 1, gap: 1", []string{"it lacks PUT 4"}},
		"nothing came":              {gap, asked(4, 0, put3, gone4, put5, watched()), check.False, "", "0 of 1, less: 1", []string{"from revision 4 on: nothing"}},
		"the end is missing":        {less, asked(4, 0, put3, gone4, put5, watched(del)), check.True, "", "1 of 1, less: 1", []string{"on: DELETE 4"}},
		"twice the same":            {less, asked(4, 0, put3, gone4, put5, watched(del, del, put)), check.True, "", "1 of 1, less: 1", []string{"on: DELETE 4, DELETE 4, PUT 5"}},
		"in another order":          {all, asked(4, 0, put3, gone4, put5, watched(put, del)), check.False, "", "0 of 1, less: 1", []string{"on: PUT 5, DELETE 4"}},
		"what nobody changed":       {less, asked(1, 0, stranger), check.True, "", "1 of 1, less: 1", []string{"on: PUT 5"}},
		"compacted":                 {refusal, asked(4, 0, put3, gone4, put5, refused), check.True, "", "1 of 1, refused: 1", []string{"on: nothing; etcd ended it, with everything below 5 compacted: compacted"}},
		"a change has no answer":    {all, asked(4, 0, put3, noAnswer, put5, watched(del, put)), check.Unknown, check.NotConclusive, "; of 1 more it isn't known", nil},
		"a change failed":           {all, asked(4, 0, failed, gone4, put5, watched(del, put)), check.Unknown, check.NotConclusive, "; of 1 more it isn't known", nil},
		"another key's has none":    {all, asked(4, 0, elsewhere, gone4, put5, watched(del, put)), check.True, "", "1 of 1, all: 1", []string{"on: DELETE 4, PUT 5"}},
		"the load ended":            {all, asked(4, 0, put3, gone4, put5, ended), check.Unknown, check.NotConclusive, "; of 1 more it isn't known", nil},
		"not all was asked":         {all, asked(8, 0, put3, gone4, put5, watched(put)), check.Unknown, check.NotConclusive, "; of 4 more it isn't known", []string{"it lacks DELETE 4"}},
		"answers lost":              {all, asked(4, 1, put3, gone4, put5, watched(del, put)), check.Unknown, check.NotRecorded, "3 of the 4 answers of etcd to load history are recorded", nil},
		"began after the phase":     {gap, later, check.False, "", "0 of 0", nil},
		"no record":                 {all, (*checktest.Trial).Phases, check.Unknown, check.NotRecorded, "no load history summed up what it did", nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := checktest.Question{Kind: "etcdWatches", Spec: `{"load":"history","atLeast":1,` + c.spec + `}`,
				Scope: check.Scope{Arm: checktest.Arm, Phase: check.Fault}, Fill: c.fill, Met: c.met, Code: c.code, Seen: c.seen,
				Evidence: []bundle.Kind{bundle.LoadSummary, bundle.Calls, bundle.EtcdAnswers}, Wanted: "watches of load history"}
			switch name {
			case "no record":
				q.Evidence = nil
			case "began after the phase":
				q.Scope.Phase, q.Evidence = check.Baseline, q.Evidence[:1]
			}
			if c.met == check.True {
				q.Detail = c.more[0]
			} else {
				q.Differs = c.more
			}
			checktest.Open(t, q)
		})
	}
}
