package scenario_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kube-relapse/relapse/harness/scenario/editor"
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
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("editor.json", doc); err != nil {
		t.Fatal(err)
	}
	v, err := c.Compile("editor.json")
	if err != nil {
		t.Fatal(err)
	}
	raw, err = yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v.Validate(value)
}
