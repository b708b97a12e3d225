package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/cel-go/common/types/ref"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// celReviewed is a request in the audit log, with the number of audit annotations that the webhooks had given it before
// its event was written.
type celReviewed struct {
	Code  int `cel:"code"`  // of the answer
	Given int `cel:"given"` // annotations that its event must have
	Has   int `cel:"has"`   // annotations that it has
}

// reviewed joins the audit log with the webhooks' own record, and returns the events that were written after a
// validating webhook was asked about their object. An API server asks the validating webhooks only once it has added
// the mutating webhooks' annotations to the event. So these events must have the annotations, however slow the API
// server is.
func (a *asked) reviewed([]ref.Val) (any, string, error) {
	given, validated, doubt := a.reviews()
	st := question.Read[bundle.AuditEvent](a.Question, bundle.Audit)
	a.Evidence = question.Union(a.Evidence, st.Paths...)
	doubt = cmp.Or(doubt, st.Doubt)
	out, lacking, named, ended := []celReviewed{}, 0, false, false
	for _, e := range st.Records {
		if e.Stage != "ResponseComplete" || !question.Contains(a.Window, e.Time) {
			continue
		}
		ended, named = true, named || e.Object() != ""
		asked, ok := validated[e.Object()]
		if !ok || e.Time.Before(asked) {
			continue
		}
		one := celReviewed{Code: e.Code, Given: given[e.Object()], Has: e.Annotations}
		if out = append(out, one); one.Has < one.Given {
			lacking++
		}
	}
	if ended && !named {
		doubt = cmp.Or(
			doubt,
			check.Doubt(check.NotConclusive, "no event says which object it is about"),
		)
	}
	return out, fmt.Sprintf(
		"%d events were written after the webhooks had answered, %d without all that they gave",
		len(out),
		lacking,
	), doubt
}

// reviews returns how many annotations the mutating webhooks gave each object, and when a validating webhook was first
// asked about it. The log names an event's object and not its request, so that each webhook may have been asked about an
// object once only.
func (a *asked) reviews() (given map[string]int, validated map[string]time.Time, doubt error) {
	given, validated = map[string]int{}, map[string]time.Time{}
	all, doubt := a.reviewRecords()
	asked := map[string]bool{}
	for _, r := range all {
		if !r.Admission() {
			continue
		}
		if once := r.Webhook + " " + r.Object; r.Webhook != "" {
			if asked[once] {
				doubt = cmp.Or(doubt, check.Doubt(check.NotConclusive, "the webhook %s was asked about %s more than once: which event its "+
					"answers belong to isn't known", r.Webhook, r.Object))
			}
			asked[once] = true
		}
		was, ok := validated[r.Object]
		at := r.Asked
		if at.IsZero() {
			at = r.Time // a record of a webhook without rules, as earlier versions wrote them
		}
		switch {
		case r.Mutating:
			given[r.Object] += r.Annotations
		case !ok || at.Before(was):
			validated[r.Object] = at
		}
	}
	return given, validated, doubt
}

// reviewRecords returns what the faults' webhooks recorded.
func (a *asked) reviewRecords() (out []bundle.Review, doubt error) {
	arts := a.View.Artifacts(bundle.Query{Kind: bundle.Reviews, Arm: a.Arm})
	if len(arts) == 0 {
		doubt = check.Doubt(check.NotRecorded, "no %s was recorded for %s", bundle.Reviews, a.Arm)
	}
	for _, art := range arts {
		if art.Missing || art.Error != "" {
			doubt = fmt.Errorf("%s of %s: %w", bundle.Reviews, a.Arm, question.CaptureError(art))
			continue
		}
		a.Evidence = question.Union(a.Evidence, art.Path)
		all, err := question.Records[bundle.Review](a.View, art)
		if err != nil {
			doubt = err
		}
		out = append(out, all...)
	}
	return out, doubt
}

// celWebhookAnswer is what became of a request that a webhook with rules was asked about.
type celWebhookAnswer struct {
	Webhook   string  `cel:"webhook"`
	Rule      int     `cel:"rule"`
	Outcome   string  `cel:"outcome"`
	Code      int     `cel:"code"`
	Allowed   bool    `cel:"allowed"`
	Operation string  `cel:"operation"`
	Resource  string  `cel:"resource"`
	Object    string  `cel:"object"`
	Version   string  `cel:"version"`
	Objects   int     `cel:"objects"`
	Seconds   float64 `cel:"seconds"`
}

// webhookAnswers returns what became of the requests that the webhooks with rules were asked about in the window. A
// webhook records from before it is registered until it is gone, so that what isn't in its record was not asked.
func (a *asked) webhookAnswers([]ref.Val) (any, string, error) {
	all, doubt := a.reviewRecords()
	out, by := []celWebhookAnswer{}, map[string]int{}
	for _, r := range all {
		if r.Webhook == "" || !question.Contains(a.Window, r.Asked) {
			continue
		}
		if r.Error != "" {
			doubt = cmp.Or(doubt, check.Doubt(check.NotConclusive, "the webhook %s could not follow its rules for %s: %s",
				r.Webhook, r.Object, r.Error))
		}
		out = append(
			out,
			celWebhookAnswer{
				Webhook:   r.Webhook,
				Rule:      r.Rule,
				Outcome:   r.Outcome,
				Code:      r.Code,
				Allowed:   r.Allowed,
				Operation: r.Operation,
				Resource:  r.Resource,
				Object:    r.Object,
				Version:   r.Version,
				Objects:   r.Objects,
				Seconds:   r.Time.Sub(r.Asked).Seconds(),
			},
		)
		by[fmt.Sprintf("%s of %s by rule %d", r.Outcome, r.Webhook, r.Rule)]++
	}
	said := fmt.Sprintf("%d requests", len(out))
	for _, what := range slices.Sorted(maps.Keys(by)) {
		said += fmt.Sprintf("; %d x %s", by[what], what)
	}
	return out, said, doubt
}
