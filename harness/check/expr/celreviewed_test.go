package expr_test

import (
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// creations records requests that time out half a second after they came, each with so many annotations in its event,
// and what the webhooks say of them: the mutating one gave 16000 each, and a validating one was asked at 0.2 s.
func creations(annotations func(i int) int, more ...func(*checktest.Trial, *bundle.Stream)) func(*checktest.Trial) {
	return creationsAsked(func(tr *checktest.Trial, at float64, r bundle.Review) bundle.Review {
		r.Time = tr.At(at + 0.2)
		return r
	}, annotations, more...)
}

// unanswered makes the record of a validating webhook with rules that was asked at 0.2 s, and whose API server gave up a
// second later: after the event was written.
func unanswered(tr *checktest.Trial, at float64, r bundle.Review) bundle.Review {
	r.Asked, r.Time, r.Webhook, r.Outcome = tr.At(at+0.2), tr.At(at+1.2), "w/hangs", bundle.ReviewNever
	return r
}

func creationsAsked(asked func(*checktest.Trial, float64, bundle.Review) bundle.Review, annotations func(i int) int,
	more ...func(*checktest.Trial, *bundle.Stream)) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		tr.Phases()
		st, reviews := tr.Stream(bundle.Audit, checktest.Arm), tr.Stream(bundle.Reviews, checktest.Arm)
		for i := range 360 {
			at, id := 60+float64(i)*0.6, fmt.Sprint("id", i)
			name := "item-" + id
			object := "relapse-creations/" + name
			tr.Must(st.JSON(bundle.AuditEvent{Time: tr.At(at), ID: id, Stage: "RequestReceived"}))
			tr.Must(st.JSON(bundle.AuditEvent{Time: tr.At(at + 0.5), ID: id, Stage: "ResponseComplete", Code: 504, Namespace: "relapse-creations", Name: name, Annotations: annotations(i)}))
			tr.Must(reviews.JSON(bundle.Review{Time: tr.At(at + 0.1), Mutating: true, Object: object, Annotations: 16000}))
			tr.Must(reviews.JSON(asked(tr, at, bundle.Review{Object: object})))
		}
		for _, m := range more {
			m(tr, st)
		}
		st.Alive(tr.At(0))
		st.Alive(tr.At(394))
	}
}

// A request without annotations gave the race no chance, and a build that leaves them out is not well.
func TestCELReviewed(t *testing.T) {
	both := []bundle.Kind{bundle.Reviews, bundle.Audit}
	annotated := func(i int) int { return 16004 + i%2*16000 }
	barely := func(i int) int { return map[bool]int{true: annotated(i)}[i < 4] }
	const exposed = `audited().filter(e, e.code == 504 && e.annotations >= 16000).size() >= 300 / 2`
	const kept = `reviewed().size() >= 12 && reviewed().all(r, r.has >= r.given)`
	checktest.Run(t, []checktest.Question{
		{Name: "exposed", Spec: celSpec(exposed), Fill: creations(annotated), Met: check.True, Seen: "360 x 504", Evidence: both[1:]},
		{Name: "barely exposed", Spec: celSpec(exposed), Fill: creations(barely), Met: check.False, Seen: "360 x 504 with 0 to 32004 annotations", Evidence: both[1:]},
		{Name: "all kept", Spec: celSpec(kept), Fill: creations(annotated), Met: check.True, Seen: "360 events were written after the webhooks had answered, 0 without", Evidence: both},
		{Name: "all kept, by the record of rules", Spec: celSpec(kept), Fill: creationsAsked(unanswered, annotated), Met: check.True, Seen: "360 events were written after the webhooks had answered, 0 without", Evidence: both},
		{Name: "nearly none kept, by the record of rules", Spec: celSpec(kept), Fill: creationsAsked(unanswered, barely), Met: check.False, Seen: "360 events were written after the webhooks had answered, 356 without all that they gave", Evidence: both},
		{Name: "nearly none kept", Spec: celSpec(kept), Fill: creations(barely), Met: check.False, Seen: "360 events were written after the webhooks had answered, 356 without all that they gave", Evidence: both},
		{Name: "one in ten left out", Spec: celSpec(kept), Met: check.False, Seen: "36 without all that they gave", Evidence: both,
			Fill: creations(func(i int) int { return map[bool]int{true: 4, false: 16004}[i%10 == 0] })},
		{Name: "one that the webhooks were never asked about, and one that was written before", Spec: celSpec(kept), Met: check.True, Seen: "360 events", Evidence: both,
			Fill: creations(annotated, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Must(st.JSON(bundle.AuditEvent{Time: tr.At(280), ID: "x", Stage: "ResponseComplete", Code: 504, Namespace: "relapse-creations", Name: "other"}))
				tr.Must(st.JSON(bundle.AuditEvent{Time: tr.At(60.15), ID: "y", Stage: "ResponseComplete", Code: 504, Namespace: "relapse-creations", Name: "item-id0"}))
			})},
		{Name: "a conversion of the object is no review", Spec: celSpec(`reviewed().size() == 0`), Met: check.True, Seen: "0 events were written after the webhooks had answered", Evidence: both, Fill: func(tr *checktest.Trial) {
			tr.Phases()
			st, reviews := tr.Stream(bundle.Audit, checktest.Arm), tr.Stream(bundle.Reviews, checktest.Arm)
			tr.Must(st.JSON(bundle.AuditEvent{Time: tr.At(70), ID: "x", Stage: "ResponseComplete", Code: 201, Namespace: "ns", Name: "a"}))
			tr.Must(reviews.JSON(bundle.Review{Asked: tr.At(69), Time: tr.At(69), Webhook: "w", Operation: bundle.ReviewConvert, Object: "ns/a"}))
			st.Alive(tr.At(0))
			st.Alive(tr.At(394))
		}},
		{Name: "a webhook that was asked about an object twice", Spec: celSpec(kept), Met: check.Unknown, Code: check.NotConclusive, Evidence: both,
			Seen: "the webhook w/hangs was asked about relapse-creations/item-id0 more than once: which event its answers belong to isn't known",
			Fill: creationsAsked(func(tr *checktest.Trial, at float64, r bundle.Review) bundle.Review {
				r = unanswered(tr, at, r)
				if r.Object == "relapse-creations/item-id1" {
					r.Object = "relapse-creations/item-id0"
				}
				return r
			}, annotated)},
		{Name: "no event says what it is about", Spec: celSpec(kept), Met: check.Unknown, Seen: "no event says which object it is about", Evidence: both, Fill: func(tr *checktest.Trial) {
			tr.Phases()
			st, reviews := tr.Stream(bundle.Audit, checktest.Arm), tr.Stream(bundle.Reviews, checktest.Arm)
			tr.Must(st.JSON(bundle.AuditEvent{Time: tr.At(60), ID: "x", Stage: "ResponseComplete", Code: 504}))
			tr.Must(reviews.JSON(bundle.Review{Time: tr.At(59), Object: "relapse-creations/x"}))
			st.Alive(tr.At(0))
			st.Alive(tr.At(394))
		}},
		{Name: "the webhooks kept no record", Spec: celSpec(kept), Met: check.Unknown, Code: check.NotRecorded, Seen: "no webhook.reviews was recorded for vulnerable", Evidence: both[1:], Fill: func(tr *checktest.Trial) {
			tr.Phases()
			st := tr.Stream(bundle.Audit, checktest.Arm)
			st.Alive(tr.At(0))
			st.Alive(tr.At(394))
		}},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "cel", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
}

// The record of a webhook with rules tells what became of each request in the window.
func TestCELWebhookAnswers(t *testing.T) {
	reviews := []bundle.Kind{bundle.Reviews}
	fill := func(more ...bundle.Review) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			st := tr.Stream(bundle.Reviews, checktest.Arm)
			for i, r := range append([]bundle.Review{
				{Rule: 1, Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true, Object: "ns/a", Resource: "pods", Operation: "CREATE"},
				{Rule: 2, Outcome: bundle.ReviewAnswered, Code: 503}, {Rule: 2, Outcome: bundle.ReviewAnswered, Code: 503},
				{Rule: 3, Outcome: bundle.ReviewNever},
			}, more...) {
				r.Webhook, r.Asked, r.Time = "slow", tr.At(100+float64(i)), tr.At(102+float64(i))
				tr.Must(st.JSON(r))
			}
			tr.Must(st.JSON(bundle.Review{Time: tr.At(120), Object: "ns/of-another-kind"}))
			tr.Must(st.JSON(bundle.Review{Time: tr.At(5), Asked: tr.At(4), Webhook: "slow", Object: "ns/before"}))
		}
	}
	const said = "webhookAnswers(): 4 requests; 1 x answered of slow by rule 1; 2 x answered of slow by rule 2; 1 x never of slow by rule 3"
	const first = `webhookAnswers().exists(r, r.object == "ns/a" && r.resource == "pods" && r.operation == "CREATE" && r.allowed && r.seconds == 2.0)`
	const failing = `webhookAnswers().filter(r, r.webhook == "slow" && r.code == 503).size() == `
	const broken = "webhookAnswers(): the webhook slow could not follow its rules for ns/b: no such key: a"
	checktest.Run(t, []checktest.Question{
		{Name: "fields", Spec: celSpec(first), Fill: fill(), Met: check.True, Seen: said, Evidence: reviews},
		{Name: "count", Spec: celSpec(failing + "2"), Fill: fill(), Met: check.True, Seen: said, Evidence: reviews},
		{Name: "a conversion", Spec: celSpec(`webhookAnswers().exists(r, r.operation == "CONVERT" && r.version == "example.com/v2" && r.objects == 3 && r.allowed)`),
			Fill: fill(bundle.Review{Operation: bundle.ReviewConvert, Version: "example.com/v2", Objects: 3, Allowed: true, Outcome: bundle.ReviewAnswered}), Met: check.True, Evidence: reviews},
		{Name: "another count", Spec: celSpec(failing + "3"), Fill: fill(), Met: check.False, Seen: said, Evidence: reviews},
		{Name: "rules that failed", Spec: celSpec(failing + "2"), Fill: fill(bundle.Review{Object: "ns/b", Error: "no such key: a"}),
			Met: check.Unknown, Code: check.NotConclusive, Seen: broken, Evidence: reviews},
		{Name: "no record", Spec: celSpec(failing + "0"), Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown,
			Code: check.NotRecorded, Seen: "no webhook.reviews was recorded for vulnerable"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "cel", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
}
