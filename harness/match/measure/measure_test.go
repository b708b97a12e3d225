package measure

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func counted(rule, is string, label Label, met ...check.Truth) Row {
	r := Row{Rule: rule, Is: is, Evidence: match.Stacks, Label: label}
	for _, m := range met {
		r.count(m, false)
	}
	return r
}

// A decisive sign, or all signs together, that is met where it must not be is a defect; a suspicious one is not.
func TestDefect(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want bool
	}{
		{counted("s", scenario.Decisive, Shows, check.True), false},
		{counted("s", scenario.Decisive, Without, check.True, check.False), true},
		{counted("s", scenario.Decisive, Baseline, check.False, check.Unknown), false},
		{counted("s", scenario.Suspicious, Other, check.True), false},
		{counted(incident, "", Other, check.True), true},
	} {
		if got := c.row.Defect(); got != c.want || strings.Contains(c.row.describe(), "DEFECT") != c.want {
			t.Errorf("%+v: %t, %s", c.row, got, c.row.describe())
		}
	}
}

// A table says how much it rests on, and is read as it was written.
func TestTable(t *testing.T) {
	table := Table{Schema: schema, Scenario: "pleg-deadlock", Relapse: "v1", LeftOut: []string{"x"},
		Bundles: []Bundle{{Run: "r", Trial: "001", Scenario: "pleg-deadlock", Pair: "modern", Outcomes: map[string]string{"fixed": "NotReproduced"}}},
		Rows:    []Row{counted("s", scenario.Decisive, Shows, check.True, check.True, check.Unknown), counted("s", scenario.Decisive, Without, check.False)}}
	text := table.Text()
	for _, want := range []string{"s     stacks  2/0/1, 20 to 94 %  0/1/0, 0 to 80 %  none", "r, trial 001: pleg-deadlock, pair modern: fixed NotReproduced", "left out: x"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if want := "| `s` | stacks | 2/0/1, 20 to 94 % | 0/1/0, 0 to 80 % | none | none |"; !strings.Contains(table.Markdown(), want) {
		t.Errorf("the markdown lacks %q:\n%s", want, table.Markdown())
	}
	at := filepath.Join(t.TempDir(), "scenario.yaml")
	if _, ok, err := Load(at); ok || err != nil {
		t.Errorf("where there is none: %t, %v", ok, err)
	}
	if err := table.Write(at); err != nil {
		t.Fatal(err)
	}
	back, ok, err := Load(at)
	if diff := cmp.Diff(table, back); !ok || err != nil || diff != "" {
		t.Errorf("%t, %v: %s", ok, err, diff)
	}
}
