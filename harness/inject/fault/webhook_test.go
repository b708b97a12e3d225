package fault_test

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
}
