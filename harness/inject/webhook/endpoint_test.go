package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

func rules(t *testing.T, text string) (out webhook.Rules) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRulesValidate(t *testing.T) {
	const answers = "(want one of answer, compute, merge, code, never and close)"
	for text, want := range map[string]string{
		`[{"never":true}]`: "",
		`[{"when":"request.name == 'a'","oneIn":2,"delay":"1s","code":500},{"close":true}]`: "",
		`[{"delay":"1s"}]`: "",
		`[{"answer":{"allowed":true,"patch":[{"op":"remove","path":"/data"}]}}]`: "",
		`[]`:                                    "rules is empty (want at least one, such as {never: true})",
		`[{}]`:                                  "rules[0]: it has no answer (want answer, compute, code, never, close or delay)",
		`[{"never":true,"code":500}]`:           "rules[0]: it has several answers " + answers,
		`[{"never":true,"delay":"1s"}]`:         "rules[0]: delay has no meaning with never (want one of them)",
		`[{"delay":"-1s"}]`:                     "rules[0]: delay is -1s (want above 0)",
		`[{"oneIn":-1,"never":true}]`:           "rules[0]: oneIn is -1 (want 1 or more)",
		`[{"auditAnnotations":16000}]`:          "",
		`[{"auditAnnotations":3,"never":true}]`: "rules[0]: auditAnnotations have no meaning without a response (want them with answer, compute, delay or alone)",
		`[{"auditAnnotations":50001}]`:          "rules[0]: auditAnnotations is 50001 (want 0 to 50000)",
		`[{"answer":{"allowed":true,"uid":"$(version)"}}]`: "rules[0].answer: it refers to $(version), which has no value here (want one of arm, n, uid, namespace, name, operation, user)",
		`[{"code":200}]`:                              "rules[0]: code is 200 (want 400 to 599)",
		`[{"answer":[1]}]`:                            "rules[0].answer: [1] is no JSON object",
		`[{"answer":{"warnings":[]}}]`:                "rules[0].answer: it has no allowed (want allowed: true or false)",
		`[{"answer":{"allowed":true,"alowed":true}}]`: `rules[0].answer: json: unknown field "alowed"`,
		`[{"when":"request.","never":true}]`:          "rules[0].when: expression, line 1, column 9: Syntax error: ",
		`[{"when":"object.a","never":true}]`:          "rules[0].when: expression, line 1, column 1: undeclared reference to 'object'",
		`[{"compute":"1"}]`:                           "rules[0].compute: expression, line 1, column 1: it is a int (want a map)",
		`[{"never":true},{"close":true}]`:             "rules[0]: it takes every request, so that the rules below it are never asked (want when or oneIn, or the rule at the end)",
	} {
		got := ""
		if err := rules(t, text).Validate(webhook.Admission{}); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// asker asks a webhook as an API server does.
type asker struct {
	url    string
	client *http.Client
}

// ask asks about the creation of a deployment. It returns what post returns.
func (a asker) ask(t *testing.T, name string, within time.Duration) string {
	t.Helper()
	return a.post(t, fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-%s","name":%q,`+
		`"namespace":"ns","operation":"CREATE","resource":{"group":"apps","version":"v1","resource":"deployments"},`+
		`"userInfo":{"username":"me"},"object":{"spec":{"replicas":3}}}}`, name, name), within)
}

// post returns the code and the response of the answer to a review, or how it came to none.
func (a asker) post(t *testing.T, body string, within time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.client.Do(r)
	switch {
	case ctx.Err() != nil:
		return "no answer"
	case err != nil:
		return "closed"
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var of struct{ Response json.RawMessage }
	if resp.StatusCode != http.StatusOK || json.Unmarshal(raw, &of) != nil {
		return fmt.Sprintf("%d %s", resp.StatusCode, raw)
	}
	return string(of.Response)
}

// world is a webhook with its record.
type world struct {
	asker
	*webhook.Endpoint
	writer *bundle.Writer
}

// reviewPath is where the tests' webhooks are asked.
const reviewPath = "/review"

func serve(t *testing.T, of webhook.Protocol, text string) world {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := webhook.NewRecord(w, "fixed", "node")
	if err != nil {
		t.Fatal(err)
	}
	s, err := webhook.Start("127.0.0.1", "fixed", record, webhook.Hook{Path: reviewPath, Protocol: of, Name: "slow", Rules: rules(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	to := s.Client(reviewPath)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(to.CABundle)
	return world{Endpoint: s, writer: w, asker: asker{*to.URL, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}}}
}

// reviews ends the webhook and returns its record.
func (w world) reviews(t *testing.T) (out []bundle.Review) {
	t.Helper()
	w.Close()
	if err := w.writer.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(w.writer.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range sealed.Artifacts(bundle.Query{Kind: bundle.Reviews, Arm: "fixed", Node: "node"}) {
		rc, err := sealed.Open(a)
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		raw, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(bytes.NewReader(raw)); sc.Scan(); {
			var r bundle.Review
			if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
	}
	// An answer is recorded once it is written, when the next request may have come already.
	slices.SortStableFunc(out, func(a, b bundle.Review) int { return a.Asked.Compare(b.Asked) })
	return out
}

func TestAdmissionAnswersByItsRulesAndRecordsEach(t *testing.T) {
	w := serve(t, webhook.Admission{}, `[
		{"when":"request.name == 'closed'","close":true},
		{"when":"request.name == 'never'","never":true},
		{"when":"request.name == 'code'","code":503},
		{"when":"request.name == 'computed'","compute":"{'allowed': request.object.spec.replicas > 3, 'warnings': [request.userInfo.username]}"},
		{"when":"request.name == 'denied'","answer":{"allowed":false,"status":{"message":"$(user) may not $(operation) $(namespace)/$(name), the $(n)th of $(arm)"}}},
		{"when":"request.name == 'uid'","answer":{"allowed":true,"uid":"another","auditAnnotations":{"a":"b","c":"d"}}},
		{"when":"request.name == 'fails'","compute":"{'allowed': request.nothing}"},
		{"when":"request.name == 'unknown' && request.nothing","close":true}]`)
	for name, want := range map[string]string{
		"closed":   "closed",
		"code":     "503 the webhook answers so",
		"computed": `{"allowed":false,"uid":"u-computed","warnings":["me"]}`,
		"denied":   `{"allowed":false,"status":{"message":"me may not CREATE ns/denied, the 0th of fixed"},"uid":"u-denied"}`,
		"uid":      `{"allowed":true,"auditAnnotations":{"a":"b","c":"d"},"uid":"another"}`,
		"other":    `{"allowed":true,"uid":"u-other"}`,
		"fails":    "500 rules[6]: the answer: the expression has no value: no such key: nothing",
		"unknown":  "500 rules[7].when: the expression has no value: no such key: nothing",
	} {
		if got := w.ask(t, name, 20*time.Second); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := w.ask(t, "never", 2*time.Second); got != "no answer" {
		t.Errorf("never: %s", got)
	}
	got := map[string]bundle.Review{}
	for _, r := range w.reviews(t) {
		if r.Asked.IsZero() || r.Time.Before(r.Asked) {
			t.Errorf("a review without its times: %+v", r)
		}
		r.Asked, r.Time = time.Time{}, time.Time{}
		got[strings.TrimPrefix(r.Object, "ns/")] = r
	}
	for name, want := range map[string]bundle.Review{
		"closed":   {Rule: 1, Outcome: bundle.ReviewClosed},
		"never":    {Rule: 2, Outcome: bundle.ReviewNever},
		"code":     {Rule: 3, Outcome: bundle.ReviewAnswered, Code: 503},
		"computed": {Rule: 4, Outcome: bundle.ReviewAnswered, Code: 200},
		"denied":   {Rule: 5, Outcome: bundle.ReviewAnswered, Code: 200},
		"uid":      {Rule: 6, Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true, Annotations: 2},
		"fails": {Rule: 7, Outcome: bundle.ReviewAnswered, Code: 500,
			Error: "rules[6]: the answer: the expression has no value: no such key: nothing"},
		"unknown": {Rule: 8, Outcome: bundle.ReviewAnswered, Code: 500,
			Error: "rules[7].when: the expression has no value: no such key: nothing"},
		"other": {Outcome: bundle.ReviewAnswered, Code: 200, Allowed: true},
	} {
		want.Webhook, want.UID, want.Object = "slow", "u-"+name, "ns/"+name
		want.Operation, want.Resource = "CREATE", "deployments.apps"
		if got[name] != want {
			t.Errorf("the record of %s is %+v, want %+v", name, got[name], want)
		}
	}
}

// The rule takes every third request that meets its condition; the others fall to the rules below.
func TestAdmissionOneInN(t *testing.T) {
	w := serve(t, webhook.Admission{Mutating: true}, `[{"when":"request.name != 'other'","oneIn":3,"code":500},
		{"answer":{"allowed":true,"patch":[{"op":"add","path":"/metadata/labels","value":{"n":"$(n)"}}]}}]`)
	var codes []string
	for _, name := range []string{"a", "other", "b", "c", "d", "e", "f"} {
		w.ask(t, name, 20*time.Second)
	}
	for _, r := range w.reviews(t) {
		if !r.Mutating {
			t.Errorf("a review that is not a mutating one: %+v", r)
		}
		codes = append(codes, fmt.Sprintf("%s %d", r.Object, r.Code))
	}
	if got, want := strings.Join(codes, ", "), "ns/a 200, ns/other 200, ns/b 200, ns/c 500, ns/d 200, ns/e 200, ns/f 500"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A patch that is written as a list comes as an API server wants it.
func TestAdmissionEncodesAPatch(t *testing.T) {
	w := serve(t, webhook.Admission{Mutating: true}, `[{"answer":{"allowed":true,"patch":[{"op":"add","path":"/data/n","value":"$(n)"}]}}]`)
	w.ask(t, "a", 20*time.Second)
	var got struct {
		UID, PatchType string
		Patch          []byte
	}
	if err := json.Unmarshal([]byte(w.ask(t, "b", 20*time.Second)), &got); err != nil {
		t.Fatal(err)
	}
	if want := `[{"op":"add","path":"/data/n","value":"1"}]`; string(got.Patch) != want || got.PatchType != "JSONPatch" || got.UID != "u-b" {
		t.Errorf("the response has uid %s, patchType %q and patch %s, want %s", got.UID, got.PatchType, got.Patch, want)
	}
}

// A delay comes before the answer. Where the API server leaves earlier, or the webhook ends, the record says that there
// was no answer.
func TestAdmissionDelays(t *testing.T) {
	w := serve(t, webhook.Admission{}, `[{"when":"request.name == 'short'","delay":"200ms","answer":{"allowed":true}},{"delay":"1h"}]`)
	began := time.Now()
	if got := w.ask(t, "short", 20*time.Second); got != `{"allowed":true,"uid":"u-short"}` || time.Since(began) < 200*time.Millisecond {
		t.Errorf("%s after %s", got, time.Since(began))
	}
	if got := w.ask(t, "left", 2*time.Second); got != "no answer" {
		t.Errorf("the delay is an hour, and the answer came: %s", got)
	}
	said := ""
	for _, r := range w.reviews(t) {
		said += fmt.Sprintf("%s %s %d %d; ", r.Object, r.Outcome, r.Rule, r.Code)
	}
	if want := "ns/short answered 1 200; ns/left left 2 0; "; said != want {
		t.Errorf("%s, want %s", said, want)
	}
}
