package match_test

import (
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/measure"
)

// Evidence as people have it is answered rightly, about each incident. A case that is open is wrong, may be met of
// nothing that it doesn't show, and loses its mark once it is right.
func TestOutsideCases(t *testing.T) {
	cases, err := measure.Cases(known(t), []string{"testdata/cases"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range cases {
		seen[filepath.Base(c.Dir)] = true
		t.Run(c.Name, func(t *testing.T) {
			tables, err := measure.RunCases(t.Context(), known(t), shipped(t), []measure.Case{c})
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range tables {
				for _, m := range table.Wrong {
					t.Errorf("%s; because %s", m.Message, c.Why)
				}
				for _, m := range table.Open {
					t.Logf("open: %s", m.Message)
				}
			}
		})
	}
	// A folder without the file would be no case, and nobody would miss it.
	folders, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(folders) != len(seen) {
		t.Errorf("%d of %d folders are cases, %v", len(seen), len(folders), err)
	}
	for _, s := range known(t) {
		if s.Spec.Match != nil && !shown(cases, s.Metadata.Name) {
			t.Errorf("no case shows %s", s.Metadata.Name)
		}
	}
}

// shown reports whether a case shows an incident, and has to be met or suspected.
func shown(cases []measure.Case, name string) bool {
	for _, c := range cases {
		for _, a := range c.Answer[name] {
			if c.Shows == name && (a == match.Met || a == match.Suspected) {
				return true
			}
		}
	}
	return false
}
