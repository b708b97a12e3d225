package match_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	model "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/internal/schematest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What programs rely on changes only where the golden file of the schema does: a name that goes is a break.
func TestSchemaIsAsPromised(t *testing.T) {
	s, err := match.Schema()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/schema.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(got)); diff != "" {
		t.Errorf("the schema differs from %s (-want +got); write it anew with -update, unless a name has changed:\n%s", golden, diff)
	}
}

// closed refuses fields that the schema doesn't have.
func closed(s *model.Schema) {
	if len(s.Properties) > 0 {
		s.AdditionalProperties = &model.Schema{Not: &model.Schema{}}
	}
	for _, p := range s.Properties {
		closed(p)
	}
	if s.Items != nil {
		closed(s.Items)
	}
}

// compiledSchema returns the schema of results, with more fields allowed as it is printed, or refused.
func compiledSchema(t *testing.T, more bool) *jsonschema.Schema {
	t.Helper()
	s, err := match.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if !more {
		closed(s)
	}
	return schematest.Compile(t, s)
}

// Every field of real results is in the schema, with its type, and one that isn't there is refused only by the test.
func TestResultsAreAsTheirSchemaSays(t *testing.T) {
	printed, exact := compiledSchema(t, true), compiledSchema(t, false)
	var seen []string
	for name, paths := range map[string][]string{
		"nothing known": {files(t, map[string]string{"a": "nobody\n"})},
		"own run":       {"../report/testdata/earlier/pleg-deadlock.tar.zst"},
		"pasted":        {"testdata/cases"},
		"well":          {"testdata/cases/pleg-whole-dump-healthy"},
		"objects": {files(t, map[string]string{"pods.yaml": pods, "node.yaml": node("v1.34.4", "False", "x"),
			"broken.zip": "PK\x03\x04", "kubelet.log": overdue})},
	} {
		r := run(t, nil, paths...)
		doc := schematest.JSON(t, r)
		if err := exact.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		doc.(map[string]any)["added"] = true
		if err := printed.Validate(doc); err != nil {
			t.Errorf("%s, with a field of a later version: %v", name, err)
		}
		if exact.Validate(doc) == nil {
			t.Error("a field that isn't in the schema passes the exact one")
		}
		doc.(map[string]any)["answer"] = "perhaps"
		if printed.Validate(doc) == nil {
			t.Error("an answer that isn't one passes")
		}
		for _, i := range r.Incidents {
			seen = append(seen, string(i.Answer))
			for _, j := range i.Subjects {
				if j.Answer == "" || slices.ContainsFunc(j.Signs, func(s match.Sign) bool { return string(s.Answer) != s.Met.String() }) {
					t.Errorf("%s: %s in %s lacks an answer", name, i.Name, j.Place)
				}
			}
		}
	}
	for _, want := range []match.Answer{match.Met, match.Suspected, match.Unknown, match.NotMet} {
		if !slices.Contains(seen, string(want)) {
			t.Errorf("no result is %s, so that the schema was not held to one", want)
		}
	}
}
