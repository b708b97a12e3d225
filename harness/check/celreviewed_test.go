package check_test

import (
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// creations records requests that time out half a second after they came, each with so many annotations in its event, and what the webhooks say of
// them: the mutating one gave 16000 each, and a validating one was asked at 0.2 s.
func creations(annotations func(i int) int, more ...func(*trial, *bundle.Stream)) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		st, reviews := tr.stream(bundle.Audit, arm), tr.stream(bundle.Reviews, arm)
		for i := range 360 {
			at, id := 60+float64(i)*0.6, fmt.Sprint("id", i)
			name := "item-" + id
			object := "relapse-creations/" + name
			tr.must(st.JSON(bundle.AuditEvent{Time: tr.at(at), ID: id, Stage: "RequestReceived"}))
			tr.must(st.JSON(bundle.AuditEvent{Time: tr.at(at + 0.5), ID: id, Stage: "ResponseComplete", Code: 504, Namespace: "relapse-creations", Name: name, Annotations: annotations(i)}))
			tr.must(reviews.JSON(bundle.Review{Time: tr.at(at + 0.1), Mutating: true, Object: object, Annotations: 16000}))
			tr.must(reviews.JSON(bundle.Review{Time: tr.at(at + 0.2), Object: object}))
		}
		for _, m := range more {
			m(tr, st)
		}
		st.Alive(tr.at(0))
		st.Alive(tr.at(394))
	}
}

// A request without annotations gave the race no chance, and a build that leaves them out is not well.
func TestCELReviewed(t *testing.T) {
	both := []bundle.Kind{bundle.Reviews, bundle.Audit}
	annotated := func(i int) int { return 16004 + i%2*16000 }
	barely := func(i int) int { return map[bool]int{true: annotated(i)}[i < 4] }
	const exposed = `audited().filter(e, e.code == 504 && e.annotations >= 16000).size() >= 300 / 2`
	const kept = `reviewed().size() >= 12 && reviewed().all(r, r.has >= r.given)`
	run(t, []question{
		{name: "exposed", spec: celSpec(exposed), fill: creations(annotated), met: check.True, seen: "360 x 504", evidence: both[1:]},
		{name: "barely exposed", spec: celSpec(exposed), fill: creations(barely), met: check.False, seen: "360 x 504 with 0 to 32004 annotations", evidence: both[1:]},
		{name: "all kept", spec: celSpec(kept), fill: creations(annotated), met: check.True, seen: "360 events were written after the webhooks had answered, 0 without", evidence: both},
		{name: "nearly none kept", spec: celSpec(kept), fill: creations(barely), met: check.False, seen: "360 events were written after the webhooks had answered, 356 without all that they gave", evidence: both},
		{name: "one in ten left out", spec: celSpec(kept), met: check.False, seen: "36 without all that they gave", evidence: both,
			fill: creations(func(i int) int { return map[bool]int{true: 4, false: 16004}[i%10 == 0] })},
		{name: "one that the webhooks were never asked about, and one that was written before", spec: celSpec(kept), met: check.True, seen: "360 events", evidence: both,
			fill: creations(annotated, func(tr *trial, st *bundle.Stream) {
				tr.must(st.JSON(bundle.AuditEvent{Time: tr.at(280), ID: "x", Stage: "ResponseComplete", Code: 504, Namespace: "relapse-creations", Name: "other"}))
				tr.must(st.JSON(bundle.AuditEvent{Time: tr.at(60.15), ID: "y", Stage: "ResponseComplete", Code: 504, Namespace: "relapse-creations", Name: "item-id0"}))
			})},
		{name: "no event says what it is about", spec: celSpec(kept), met: check.Unknown, seen: "no event says which object it is about", evidence: both, fill: func(tr *trial) {
			tr.phases()
			st, reviews := tr.stream(bundle.Audit, arm), tr.stream(bundle.Reviews, arm)
			tr.must(st.JSON(bundle.AuditEvent{Time: tr.at(60), ID: "x", Stage: "ResponseComplete", Code: 504}))
			tr.must(reviews.JSON(bundle.Review{Time: tr.at(59), Object: "relapse-creations/x"}))
			st.Alive(tr.at(0))
			st.Alive(tr.at(394))
		}},
		{name: "the webhooks kept no record", spec: celSpec(kept), met: check.Unknown, seen: "no webhook.reviews was recorded for vulnerable", evidence: both[1:], fill: func(tr *trial) {
			tr.phases()
			st := tr.stream(bundle.Audit, arm)
			st.Alive(tr.at(0))
			st.Alive(tr.at(394))
		}},
	}, func(q *question) {
		q.kind, q.scope = "cel", check.Scope{Arm: arm, Phase: check.Fault}
	})
}
