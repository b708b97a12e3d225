package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// As many audit annotations as the rule says stand beside the response's own.
func TestAdmissionAnnotates(t *testing.T) {
	w := serve(t, webhook.Admission{}, `[{"when":"request.name == 'own'","answer":{"allowed":false,"auditAnnotations":{"a":"b"}},"auditAnnotations":2},
		{"when":"request.name == 'none'","answer":{"allowed":true,"auditAnnotations":{}},"auditAnnotations":1},
		{"when":"request.name == 'text'","compute":"{'allowed': true, 'auditAnnotations': 'text'}","auditAnnotations":1},
		{"auditAnnotations":3}]`)
	for name, want := range map[string]string{
		"own":   `{"allowed":false,"auditAnnotations":{"a":"b","k00000":"v","k00001":"v"},"uid":"u-own"}`,
		"none":  `{"allowed":true,"auditAnnotations":{"k00000":"v"},"uid":"u-none"}`,
		"text":  `500 rules[2]: the answer: auditAnnotations is "text" (want a map)`,
		"other": `{"allowed":true,"auditAnnotations":{"k00000":"v","k00001":"v","k00002":"v"},"uid":"u-other"}`,
	} {
		if got := w.ask(t, name, 20*time.Second); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	got := map[string]int{}
	for _, r := range w.reviews(t) {
		got[r.Object] = r.Annotations
	}
	if want := "map[ns/none:1 ns/other:3 ns/own:3 ns/text:0]"; fmt.Sprint(got) != want {
		t.Errorf("the record has %v annotations, want %s", got, want)
	}
}
