package webhook_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

func TestRulesOfAnExtenderValidate(t *testing.T) {
	for _, tc := range []struct{ verb, text, want string }{
		{webhook.Filter, `[{"answer":{"NodeNames":[],"FailedNodes":{"a":"$(name) of $(namespace) for $(arm), $(n), $(uid)"}}}]`, ""},
		{webhook.Filter, `[{"compute":"{'NodeNames': request.NodeNames}"}]`, ""},
		{webhook.Prioritize, `[{"answer":[{"Host":"a","Score":10}]}]`, ""},
		{webhook.Filter, `[{"answer":{"nodes":[]}}]`, `rules[0].answer: it is no answer to filter: json: unknown field "nodes" ` +
			"(want an object with NodeNames, FailedNodes, FailedAndUnresolvableNodes or Error)"},
		{webhook.Prioritize, `[{"answer":{"Host":"a"}}]`, "rules[0].answer: it is no answer to prioritize: json: cannot unmarshal object"},
		{webhook.Filter, `[{"answer":{"Error":"$(user)"}}]`, "rules[0].answer: it refers to $(user), which has no value here (want one of arm, n, uid, namespace, name)"},
		{webhook.Prioritize, `[{"compute":"{'a': 1}"}]`, "rules[0].compute: its value is a map, and the answer to prioritize is a list (want answer)"},
		{webhook.Filter, `[{"merge":{}}]`, "rules[0].merge: it has no meaning in an extender's answer"},
		{webhook.Filter, `[{"auditAnnotations":3}]`, "rules[0].auditAnnotations: it has no meaning in an extender's answer"},
	} {
		got := ""
		if err := rules(t, tc.text).Validate(webhook.Extender{Verb: tc.verb}); err != nil {
			got = err.Error()
		}
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s by %s: %q, want %q", tc.verb, tc.text, got, tc.want)
		}
	}
}

// schedule asks about a pod as kube-scheduler does.
func schedule(t *testing.T, w world, name, labels string) string {
	t.Helper()
	body := fmt.Sprintf(`{"Pod":{"metadata":{"namespace":"ns","name":%q,"uid":"u-%[1]s","labels":{%s}}},"Nodes":null,"NodeNames":["a","b"]}`,
		name, labels)
	resp, err := w.client.Post(w.url, "application/json", strings.NewReader(body))
	if err != nil {
		return "closed"
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, raw)
}

// What no rule takes changes nothing.
func TestExtenderAnswersByItsRulesAndRecordsEach(t *testing.T) {
	w := serve(t, webhook.Extender{Verb: webhook.Filter, Shows: "picky"}, `[
		{"when":"request.Pod.metadata.name == 'closed'","close":true},
		{"when":"request.Pod.metadata.name == 'one'","compute":"{'NodeNames': request.NodeNames.filter(n, n == 'a')}"},
		{"when":"request.Pod.metadata.name == 'wrong'","compute":"{'Nodes': 1}"},
		{"when":"request.Pod.metadata.name.startsWith('no')","answer":{"Error":"$(arm) has no place for $(namespace)/$(name)"}}]`)
	for _, tc := range []struct{ name, labels, want string }{
		{"free", "", `200 {"NodeNames":["a","b"]}`},
		{"one", "", `200 {"NodeNames":["a"]}`},
		{"none", "", `200 {"Error":"fixed has no place for ns/none"}`},
		{"closed", "", "closed"},
		{"wrong", "", "500 rules[2]: the answer: it is no answer to filter: json: unknown field"},
	} {
		if got := schedule(t, w, tc.name, tc.labels); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s is answered %s, want %s", tc.name, got, tc.want)
		}
	}
	var got []string
	for _, r := range w.reviews(t) {
		got = append(got, fmt.Sprintf("%s %s %s of %d: %d %s %v", r.Operation, r.Resource, r.Object, r.Objects, r.Rule, r.Outcome, r.Allowed))
	}
	want := []string{"filter pods ns/free of 2: 0 answered true", "filter pods ns/one of 2: 2 answered true",
		"filter pods ns/none of 2: 4 answered false", "filter pods ns/closed of 2: 1 closed false", "filter pods ns/wrong of 2: 3 answered false"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("recorded is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnExtenderPrefersNoNodeByItself(t *testing.T) {
	w := serve(t, webhook.Extender{Verb: webhook.Prioritize}, `[{"when":"request.Pod.metadata.name == 'b-first'","answer":[{"Host":"b","Score":10}]}]`)
	for name, want := range map[string]string{"any": `200 [{"Host":"a","Score":0},{"Host":"b","Score":0}]`, "b-first": `200 [{"Host":"b","Score":10}]`} {
		if got := schedule(t, w, name, `"x":"y"`); got != want {
			t.Errorf("%s is answered %s, want %s", name, got, want)
		}
	}
}
