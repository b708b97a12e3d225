package conformance_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A run only shows that an arm survives what was tried. So every scenario says which of the ways to its bug a run
// takes, and which it doesn't.
func TestEveryScenarioSaysWhatItTries(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/" + scenario.FileName)
	if err != nil || len(files) < 8 {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, f := range files {
		s, err := scenario.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(s, plan.Options{Pair: plan.AllPairs})
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range p.Trials {
			if tr.Tried == nil {
				t.Errorf("%s, pair %s: it doesn't say which ways to the bug a run takes (spec.tried)", s.Metadata.Name, tr.Pair)
				continue
			}
			for part, text := range map[string]string{"ways": tr.Tried.Ways, "not": tr.Tried.Not} {
				if len(text) < 40 || len(text) > 400 || strings.Contains(text, "$(") || strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
					t.Errorf("%s, pair %s: tried.%s is %q: want a part of a sentence on one line, every parameter filled in", s.Metadata.Name, tr.Pair, part, text)
				}
			}
		}
	}
}
