package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

func TestRulesOfAConversionValidate(t *testing.T) {
	for text, want := range map[string]string{
		`[{"merge":{"spec":{"by":"$(namespace)/$(name) $(version) $(n) $(arm) $(uid)"}}}]`: "",
		`[{"answer":{"result":{"status":"Failure","message":"no $(version)"}}}]`:           "",
		`[{"compute":"{'convertedObjects': request.objects}"}]`:                            "",
		`[{"answer":{"allowed":true}}]`:                                                    `rules[0].answer: json: unknown field "allowed"`,
		`[{"answer":{"uid":"$(name)"}}]`:                                                   "rules[0].answer: it refers to $(name), which has no value here (want one of arm, n, uid, version)",
		`[{"merge":[]}]`:                                                                   "rules[0].merge: [] is no JSON object",
		`[{"merge":{"a":"$(user)"}}]`:                                                      "rules[0].merge: it refers to $(user), which has no value here (want one of namespace, name, arm, n, uid, version)",
		`[{"merge":{},"never":true}]`:                                                      "rules[0]: it has several answers (want one of answer, compute, merge, code, never and close)",
		`[{"delay":"1s","auditAnnotations":3}]`:                                            "rules[0]: auditAnnotations have no meaning in a conversion",
	} {
		got := ""
		if err := rules(t, text).Validate(webhook.Conversion{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if err := rules(t, `[{"merge":{}}]`).Validate(webhook.Admission{}); err == nil ||
		err.Error() != "rules[0]: merge has no meaning in an admission (want answer with a patch)" {
		t.Error(err)
	}
}

// conversionOf is a review of objects, each of which has its members as JSON.
func conversionOf(uid string, objects ...string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":%q,`+
		`"desiredAPIVersion":"example.com/v2","objects":[%s]}}`, uid, strings.Join(objects, ","))
}

const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"ns","name":%q},"spec":{"size":12345678901234567890}}`

func TestConversionAnswersByItsRulesAndRecordsEach(t *testing.T) {
	w := serve(t, webhook.Conversion{Resource: "widgets.example.com", Shows: "slow"}, `[
		{"when":"request.uid == 'closed'","close":true},
		{"when":"request.uid == 'code'","code":503},
		{"when":"request.uid == 'refused'","answer":{"result":{"status":"Failure","message":"$(uid) to $(version)"}}},
		{"when":"request.uid == 'computed'","compute":"{'convertedObjects': request.objects.map(o, {'apiVersion': request.desiredAPIVersion, 'kind': o.kind, 'metadata': o.metadata})}"},
		{"when":"request.uid == 'merged'","merge":{"spec":{"size":null,"by":"$(namespace)/$(name) of $(arm)"}}},
		{"when":"request.uid == 'late'","delay":"1ms"},
		{"when":"request.uid == 'never'","never":true}]`)
	a, b := fmt.Sprintf(widget, "a"), fmt.Sprintf(widget, "b")
	plain := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"namespace":"ns","name":%q},"spec":{"size":12345678901234567890}}`, name)
	}
	merged := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"namespace":"ns","name":%q},"spec":{"by":"ns/%s of fixed"}}`, name, name)
	}
	success := func(uid string, objects ...string) string {
		return fmt.Sprintf(`{"convertedObjects":[%s],"result":{"status":"Success"},"uid":%q}`, strings.Join(objects, ","), uid)
	}
	for uid, want := range map[string]string{
		"closed":   "closed",
		"code":     "503 the webhook answers so",
		"refused":  `{"result":{"message":"refused to example.com/v2","status":"Failure"},"uid":"refused"}`,
		"computed": success("computed", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"a","namespace":"ns"}}`, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"b","namespace":"ns"}}`),
		"merged":   success("merged", merged("a"), merged("b")),
		"late":     success("late", plain("a"), plain("b")),
		"other":    success("other", plain("a"), plain("b")),
	} {
		if got := w.post(t, conversionOf(uid, a, b), 20*time.Second); got != want {
			t.Errorf("%s: %s\nwant %s", uid, got, want)
		}
	}
	if got, want := w.post(t, conversionOf("one", a), 20*time.Second), success("one", plain("a")); got != want {
		t.Errorf("one: %s\nwant %s", got, want)
	}
	if got := w.post(t, conversionOf("never", a, b), 2*time.Second); got != "no answer" {
		t.Errorf("never: %s", got)
	}
	if got, want := w.post(t, `{"request":{"uid":"u"}}`, 20*time.Second), "400 it is no ConversionReview with a request that has a desiredAPIVersion\n"; got != want {
		t.Errorf("no review: %q, want %q", got, want)
	}
	got := map[string]bundle.Review{}
	for _, r := range w.reviews(t) {
		if r.Asked.IsZero() || r.Time.Before(r.Asked) {
			t.Errorf("a review without its times: %+v", r)
		}
		uid := r.UID
		r.Asked, r.Time, r.UID = time.Time{}, time.Time{}, ""
		got[uid] = r
	}
	for uid, want := range map[string]bundle.Review{
		"closed":   {Rule: 1, Outcome: bundle.ReviewClosed},
		"code":     {Rule: 2, Outcome: bundle.ReviewAnswered, Code: 503},
		"refused":  {Rule: 3, Outcome: bundle.ReviewAnswered, Code: 200},
		"computed": {Rule: 4, Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true},
		"merged":   {Rule: 5, Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true},
		"late":     {Rule: 6, Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true},
		"never":    {Rule: 7, Outcome: bundle.ReviewNever},
		"other":    {Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true},
		"one":      {Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true, Objects: 1, Object: "ns/a"},
	} {
		want.Webhook, want.Operation, want.Resource, want.Version = "slow", bundle.ReviewConvert, "widgets.example.com", "example.com/v2"
		if want.Objects == 0 {
			want.Objects = 2
		}
		if got[uid] != want {
			t.Errorf("the record of %s is %+v, want %+v", uid, got[uid], want)
		}
	}
	if len(got) != 9 {
		t.Errorf("%d reviews are recorded, want 9", len(got))
	}
}
