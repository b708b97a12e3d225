package faults_test

import (
	"strings"
	"testing"
)

func TestWebhookValidate(t *testing.T) {
	for spec, want := range map[string]string{
		`{"resources":["pods"],"rules":[{"never":true}]}`: "",
		`{"admission":"mutating","groups":[""],"resources":["pods/eviction"],"operations":["CREATE","UPDATE"],"failurePolicy":"Fail",` +
			`"timeoutSeconds":30,"namespaces":["a"],"rules":[{"oneIn":2,"code":500}]}`: "",
		`{"rules":[{"never":true}]}`: "resources is empty (want resources: [pods])",
		`{"admission":"converting","resources":["pods"],"operations":["PATCH","*"],"failurePolicy":"Open","timeoutSeconds":31,"rules":[]}`: strings.Join([]string{
			`admission is "converting" (want validating or mutating)`,
			`operations has "PATCH" (want some of CREATE, UPDATE, DELETE, CONNECT, or "*" alone)`,
			`operations has "*" (want some of CREATE, UPDATE, DELETE, CONNECT, or "*" alone)`,
			`failurePolicy is "Open" (want Ignore or Fail)`,
			`timeoutSeconds is 31 (want 1 to 30)`,
			`rules is empty (want at least one, such as {never: true})`,
		}, "\n"),
		`{"resources":["pods"],"webhooks":[{"name":"a","admission":"mutating","rules":[{"never":true}]},{"name":"b-1","rules":[{"close":true}]}]}`: "",
		`{"resources":["pods"],"rules":[{"never":true}],"webhooks":[{"name":"A","admission":"none","rules":[{"code":200}]},{"name":"seen-by","rules":[]},` +
			`{"name":"a","rules":[{"close":true}]},{"name":"a","rules":[{"close":true}]}]}`: strings.Join([]string{
			"rules and webhooks are both given (want rules for one webhook, webhooks for several)",
			`webhooks[0]: name is "A" (want small letters, digits and hyphens, each name once, and none that begins with seen)`,
			`webhooks[0]: admission is "none" (want validating or mutating)`,
			`webhooks[0].rules[0]: code is 200 (want 400 to 599)`,
			`webhooks[1]: name is "seen-by" (want small letters, digits and hyphens, each name once, and none that begins with seen)`,
			`webhooks[1]: rules is empty (want at least one, such as {never: true})`,
			`webhooks[3]: name is "a" (want small letters, digits and hyphens, each name once, and none that begins with seen)`,
		}, "\n"),
		`{"extender":{"verbs":["filter"]},"rules":[{"when":"request.Pod.metadata.name == 'a'","answer":{"NodeNames":[],"Error":"$(name)"}},{"never":true}]}`: "",
		`{"extender":{"verbs":["filter","prioritize"]},"rules":[{"oneIn":2,"delay":"1s"},{"code":503}]}`:                                                     "",
		`{"extender":{"verbs":[]},"rules":[{"never":true}]}`:                                                                                                 "extender: verbs is empty (want verbs: [filter])",
		`{"extender":{"verbs":["bind"]},"rules":[{"never":true}]}`: "extender: verbs has bind, to which no answer is neutral: an extender that binds " +
			"takes the binding from kube-scheduler, in every phase (want some of filter, prioritize)",
		`{"extender":{"verbs":["filter","filter","preempt"]},"resources":["pods"],"rules":[]}`: strings.Join([]string{
			"resources has no meaning with extender (want one of them)",
			`extender: verbs has "filter" (want some of filter, prioritize, each once)`,
			"rules is empty (want at least one, such as {never: true})"}, "\n"),
		`{"extender":{"verbs":["filter","prioritize"]},"rules":[{"oneIn":2,"code":200},{"answer":{"NodeNames":["$(node)"]}}]}`: strings.Join([]string{
			"rules[0]: code is 200 (want 400 to 599)", // said once
			"rules[1].answer: it refers to $(node), which has no value here (want one of arm, n, uid, namespace, name)",
			"rules[1].answer: it is no answer to prioritize: json: cannot unmarshal object into Go value of type []webhook.score " +
				"(want a list of objects with Host and Score)"}, "\n"),
		`{"extender":{"verbs":["filter"]},"conversion":{"crd":"a.b"},"rules":[{"never":true}]}`: "conversion and extender are both given (want one of them)",
	} {
		got := ""
		if err := newFault(t, "webhook", spec).(interface{ Validate() error }).Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

func TestWebhookSaysWhatItDoes(t *testing.T) {
	f := newFault(t, "webhook", `{"resources":["pods","nodes"],"operations":["CREATE"],"namespaces":["a"],"rules":[{"never":true}]}`)
	if got, want := f.(interface{ Describe() string }).Describe(), "validating webhook for CREATE of pods, nodes, rules: 1, in a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := f.(interface{ Modelled() []string }).Modelled()[0], "the validating webhook for pods, nodes is the harness's own"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f = newFault(t, "webhook", `{"extender":{"verbs":["filter","prioritize"]},"rules":[{"never":true}]}`)
	if got, want := f.(interface{ Describe() string }).Describe(), "extender of kube-scheduler for filter, prioritize, rules: 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := f.(interface{ Modelled() []string }).Modelled()[0], "the extender of kube-scheduler is the harness's own"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f = newFault(t, "webhook", `{"admission":"mutating","resources":["pods"],"webhooks":[{"name":"a","rules":[{"never":true}]},{"name":"b","admission":"validating","rules":[{"never":true}]}]}`)
	if got, want := f.(interface{ Describe() string }).Describe(), "mutating webhook a, validating webhook b for * of pods"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := strings.Join(f.(interface{ Modelled() []string }).Modelled(), "; "), "the mutating webhook a for pods is the harness's own; the validating webhook b for pods is the harness's own"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
