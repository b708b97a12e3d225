package expr

import (
	"cmp"
	"fmt"

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
		if !ok || e.Time.Before(asked.Time) {
			continue
		}
		one := celReviewed{Code: e.Code, Given: given[e.Object()], Has: e.Annotations}
		if out = append(out, one); one.Has < one.Given {
			lacking++
		}
	}
	if ended && !named {
		doubt = cmp.Or(doubt, check.Doubt(check.NotConclusive, "no event says which object it is about"))
	}
	return out, fmt.Sprintf("%d events were written after the webhooks had answered, %d without all that they gave", len(out),
		lacking), doubt
}

// reviews returns how many annotations the mutating webhooks gave each object, and the first review of each object by a
// validating webhook.
func (a *asked) reviews() (given map[string]int, validated map[string]bundle.Review, doubt error) {
	given, validated = map[string]int{}, map[string]bundle.Review{}
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
		for _, r := range all {
			was, ok := validated[r.Object]
			switch {
			case r.Mutating:
				given[r.Object] += r.Annotations
			case !ok || r.Time.Before(was.Time):
				validated[r.Object] = r
			}
		}
	}
	return given, validated, doubt
}
