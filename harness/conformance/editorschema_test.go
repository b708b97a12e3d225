package conformance_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kube-relapse/relapse/harness/scenario/editor"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// An editor that reads `relapse schema` finds nothing wrong with the scenarios that are shipped, in whatever short forms
// they are written.
func TestTheEditorSchemaTakesEveryScenario(t *testing.T) {
	s, err := editor.Schema()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("editor.json", schema); err != nil {
		t.Fatal(err)
	}
	v, err := c.Compile("editor.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d scenarios: %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Validate(value); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}
