package conformance_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster/seam"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// item holds what the examples of all categories have in common.
type item struct {
	Name string         `json:"name"`
	Kind string         `json:"kind"`
	Spec map[string]any `json:"spec"`
}

// exampleOf reads a kind's example. It returns the item in it, and the whole document.
func exampleOf(t *testing.T, e kinds.Entry) (item, map[string]any) {
	t.Helper()
	var whole map[string]any
	if err := yaml.Unmarshal([]byte(e.Example), &whole); err != nil {
		t.Fatalf("the example is no YAML: %v\n%s", err, e.Example)
	}
	b, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	var i item
	if err := json.Unmarshal(b, &i); err != nil {
		t.Fatal(err)
	}
	return i, whole
}

// specOf returns the example's spec as JSON.
func specOf(t *testing.T, e kinds.Entry) json.RawMessage {
	t.Helper()
	i, _ := exampleOf(t, e)
	b, err := json.Marshal(i.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every kind is documented and has an example that a scenario accepts. Its defaults survive encoding and decoding.
func TestEveryKindIsDocumentedAndFitsIntoAScenario(t *testing.T) {
	for _, category := range []string{kinds.Fault, kinds.Load, kinds.Collector, kinds.Check, kinds.Seam, kinds.Mutation} {
		if len(kinds.Of(category)) == 0 {
			t.Errorf("there is no %s at all", category)
		}
	}
	for _, category := range kinds.Categories {
		for _, e := range kinds.Of(category) {
			t.Run(category+"."+e.Name, func(t *testing.T) {
				documented(t, e)
				typed(t, e)
				if i, _ := exampleOf(t, e); i.Kind != e.Name {
					t.Errorf("the example is of kind %q", i.Kind)
				}
				strictly(t, specOf(t, e), e.New())
				roundTrip(t, e)
				inScenario(t, e)
			})
		}
	}
}

func documented(t *testing.T, e kinds.Entry) {
	t.Helper()
	first, details, more := strings.Cut(e.Doc, "\n\n")
	if !strings.HasSuffix(first, ".") || strings.Contains(first, "\n") || len(first) > 200 || first[:1] != strings.ToUpper(first[:1]) {
		t.Errorf("the doc begins %q, want one sentence on one line", first)
	}
	if more && strings.TrimSpace(details) == "" {
		t.Error("the doc has an empty second paragraph")
	}
}

// typed checks that a kind has the Go type of its category.
func typed(t *testing.T, e kinds.Entry) {
	t.Helper()
	ok := true
	v := e.New()
	switch e.Category {
	case kinds.Fault:
		_, ok = v.(fault.Fault)
	case kinds.Load:
		_, ok = v.(load.Load)
	case kinds.Collector:
		_, ok = v.(capture.Collector)
	case kinds.Check:
		_, ok = v.(check.Check)
	case kinds.Seam:
		_, ok = v.(seam.Seam)
	case kinds.Mutation:
		_, ok = v.(mutate.Shape)
	default:
		t.Fatalf("the suite doesn't know what a %s is: add it here", e.Category)
	}
	if !ok {
		t.Errorf("it is a %T, which is no %s", v, e.Category)
	}
	if a, b := e.New(), e.New(); reflect.TypeOf(a).Elem().Size() > 0 && a == b {
		t.Error("New returns the same value twice: two items would share a spec")
	}
}

// strictly decodes JSON into a value and fails on unknown fields.
func strictly(t *testing.T, spec json.RawMessage, into any) {
	t.Helper()
	if string(spec) == "null" {
		return
	}
	d := json.NewDecoder(bytes.NewReader(spec))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("decoding %s: %v", spec, err)
	}
}

func roundTrip(t *testing.T, e kinds.Entry) {
	t.Helper()
	want := e.New()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := reflect.New(reflect.TypeOf(want).Elem()).Interface()
	if e.Category == kinds.Seam {
		got = e.New() // it has no settings: what it is follows from its name
	}
	strictly(t, b, got)
	if d := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); d != "" {
		t.Errorf("the defaults %s come back otherwise (-want +got):\n%s", b, d)
	}
}

// inScenario puts the example into a scenario of the repository, at a place for its category, and validates the whole
// scenario.
func inScenario(t *testing.T, e kinds.Entry) {
	t.Helper()
	text, err := os.ReadFile("../../scenarios/pleg-deadlock/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	_, example := exampleOf(t, e)
	spec := doc["spec"].(map[string]any)
	list := map[string]string{kinds.Fault: "faults", kinds.Load: "loads", kinds.Collector: "collectors", kinds.Check: "exposure"}[e.Category]
	switch e.Category {
	case kinds.Seam:
		spec["seams"] = []any{e.Name}
	case kinds.Mutation:
		pair := spec["pairs"].(map[string]any)["modern"].(map[string]any)
		pair[scenario.Vulnerable].(map[string]any)["mutations"] = []any{example}
	default:
		delete(example, "name")
		others, _ := spec[list].(map[string]any)
		others["the-example"] = example
	}
	out, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Parse("scenario.yaml", out); err != nil {
		t.Errorf("a scenario with the example is refused:\n%v", err)
	}
	if e.Category == kinds.Seam {
		return
	}
	example["kind"] = "no-such-kind"
	if out, err = yaml.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Parse("scenario.yaml", out); err == nil || !strings.Contains(err.Error(), "no-such-kind") {
		t.Errorf("with another kind in its place the scenario is still accepted: %v", err)
	}
}
