package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A run whose reports can't be written isn't done, and has no verdict.json. Without Report there is the verdict alone.
func TestReportsAreWrittenBeforeTheVerdict(t *testing.T) {
	full := errors.New("the disk is full")
	for _, c := range []struct {
		name   string
		report func(string, judge.Verdict) error
		want   string // the files beside the plan and the index
		err    error
	}{
		{"no reports", nil, "verdict.json", nil},
		{"a report", func(dir string, v judge.Verdict) error {
			if _, err := os.Stat(filepath.Join(dir, judge.VerdictFile)); err == nil {
				t.Error("verdict.json is there before the reports are")
			}
			return os.WriteFile(filepath.Join(dir, "report of "+string(v.Verdict)), nil, 0o644)
		}, "report of Validated verdict.json", nil},
		{"a report that fails", func(string, judge.Verdict) error { return full }, "", full},
	} {
		dir, err := trial.CreateRunDir(t.TempDir(), "r1", &plan.Plan{Schema: plan.Schema, Scenario: "x"})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Report: c.report}
		if err := o.write(dir.Path(), judge.Verdict{Verdict: verdict.Validated}); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		entries, err := os.ReadDir(dir.Path())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			if e.Name() != "plan.json" && e.Name() != "index.json" {
				got = append(got, e.Name())
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: the run has %q, want %q", c.name, got, c.want)
		}
	}
}
