package match_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/match/measure"
)

const (
	crossPage  = "../../docs/scenarios.md"
	crossBegin = "<!-- answers: written by go test ./harness/match -run TestEveryRuleByEveryIncident -update -->\n"
	crossEnd   = "<!-- end of answers -->\n"
)

// Each rule is met by evidence of its own incident, and by none of another one's, of another bug's or of a healthy
// process's. The page of scenarios has the table.
func TestEveryRuleByEveryIncident(t *testing.T) {
	pieces, err := measure.Cases(known(t), []string{"testdata/cases"})
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := filepath.Glob("../report/testdata/earlier/*.tar.zst")
	if err != nil || len(bundles) == 0 {
		t.Fatalf("%d bundles, %v", len(bundles), err)
	}
	for _, b := range bundles {
		pieces = append(pieces, measure.OwnBundle(strings.TrimSuffix(filepath.Base(b), ".tar.zst"), b))
	}
	got, err := measure.RunCross(t.Context(), known(t), shipped(t), pieces)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range got.Defects() {
		t.Error(d)
	}
	b, err := os.ReadFile(crossPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(b), crossBegin)
	was, after, ends := strings.Cut(rest, crossEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", crossPage)
	}
	table := "\n" + got.Markdown() + "\n"
	if *update {
		if err := os.WriteFile(crossPage, []byte(before+crossBegin+table+crossEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		was = table
	}
	if diff := cmp.Diff(table, was); diff != "" {
		t.Errorf("%s differs (-update writes it): -want +got\n%s", crossPage, diff)
	}
}
