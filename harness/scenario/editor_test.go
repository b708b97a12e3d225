package scenario_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario/editor"
	"github.com/kube-relapse/relapse/internal/schematest"
)

// An editor takes what Parse takes, references and manifests too, and still sees what is wrong beside them.
func TestEditorSchema(t *testing.T) {
	for _, tc := range []struct{ name, in, wrong string }{
		{"values", text(t), ""},
		{"references", paramsText(t), ""},
		{"a manifest", withManifest(t, pulse), ""},
		{"no reference", strings.Replace(paramsText(t), "pods: $(pods)", "pods: pods", 1), "/spec/faults/1/spec/pods"},
		{"no unit", strings.Replace(paramsText(t), "latency: $(latency), calls", "latency: 5, calls", 1), "/spec/faults/0/spec/latency"},
		{"a manifest of no tool", withManifest(t, strings.Replace(pulse, "example/v1", "example/v2", 1)), "/spec/faults/0/apiVersion"},
		{"no subject", strings.Replace(text(t), "subject: kubelet", "subject: kublet", 1), "/spec/subject"},
		{"no component", strings.Replace(text(t), "selector: {component: kubelet}", "selector: {component: kublet}", 1), "/spec/faults/0/target/selector/component"},
		{"no provider", strings.Replace(text(t), "placement: node", "placement: node\n  providers: [kindd]", 1), "/spec/providers/0"},
		{"no component's flags", strings.Replace(text(t), "placement: node", "placement: node\n  args: {kublet: {v: 4}}", 1), "invalid propertyName 'kublet'"},
		{"no kind of a check", strings.Replace(text(t), "{name: stuck, kind: testAbove, after: 60s, spec: {metric: blocked}}", "{name: stuck, after: 60s, testAbov: {metric: blocked}}", 1), "invalid propertyName 'testAbov'"},
		{"a reference for a kind", strings.Replace(text(t), "kind: testFlood", "kind: testFlod", 1), "/spec/faults/1/kind"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := againstEditorSchema(t, tc.in)
			if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("got %v, want a complaint about %q", err, tc.wrong)
			}
		})
	}
}

// againstEditorSchema returns what the editor schema says of a scenario's text.
func againstEditorSchema(t *testing.T, text string) error {
	t.Helper()
	s, err := editor.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return schematest.Compile(t, s).Validate(schematest.YAML(t, []byte(text)))
}
