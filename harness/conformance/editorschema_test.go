package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario/editor"
	"github.com/kube-relapse/relapse/internal/schematest"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// An editor that reads `relapse schema` finds nothing wrong with the scenarios that are shipped, in whatever short forms
// they are written.
func TestTheEditorSchemaTakesEveryScenario(t *testing.T) {
	s, err := editor.Schema()
	if err != nil {
		t.Fatal(err)
	}
	schema := schematest.Compile(t, s)
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d scenarios: %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(schematest.YAML(t, text)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}
