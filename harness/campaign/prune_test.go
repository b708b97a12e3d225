package campaign_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
)

var now = time.Date(2026, 3, 30, 0, 0, 0, 0, time.UTC)

// putRun leaves a run of 100 kB; days is how long ago it began. Exit -1 is one that was ended before its verdict.
func putRun(t *testing.T, out, name, scenario string, days, exit int) {
	t.Helper()
	dir := filepath.Join(out, name)
	began := now.AddDate(0, 0, -days)
	files := map[string]any{"plan.json": plan.Plan{Schema: plan.Schema, Scenario: scenario}}
	if exit >= 0 {
		files["verdict.json"] = judge.Verdict{Schema: judge.Schema, Scenario: scenario, ExitCode: exit, StartedAt: began}
	}
	if err := os.MkdirAll(filepath.Join(dir, "trials", "001"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, v := range files {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dir, "plan.json"), began, began); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trials", "001", "evidence"), make([]byte, 100_000), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPrune(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name    string
		options campaign.PruneOptions
		removed []string
		over    bool
	}{
		{"no bound", campaign.PruneOptions{KeepFindings: day}, nil, false},
		{"two of each", campaign.PruneOptions{KeepRuns: 2, KeepFindings: 14 * day}, []string{"a-20", "a-failed-15", "a-12", "a-5", "a-ended-16"}, false},
		{"two of each, findings for a month", campaign.PruneOptions{KeepRuns: 2, KeepFindings: 30 * day}, []string{"a-20", "a-12", "a-5"}, false},
		{"the newest and what is under way stay, come what may", campaign.PruneOptions{MaxDisk: 1}, []string{"a-20", "a-failed-15", "a-12", "a-5", "a-failed-3", "a-ended-16"}, true},
		{"the oldest go first", campaign.PruneOptions{MaxDisk: 750_000, KeepFindings: 30 * day}, []string{"a-20", "a-12"}, false},
		{"some are in use", campaign.PruneOptions{KeepRuns: 1, Keep: []string{"a-20", "a-ended-16"}, KeepFindings: 14 * day}, []string{"a-failed-15", "a-12", "a-5"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := t.TempDir()
			for _, r := range []struct {
				name, scenario string
				days, exit     int
			}{{"a-20", "a", 20, 0}, {"a-failed-15", "a", 15, 1}, {"a-12", "a", 12, 0}, {"a-5", "a", 5, 0}, {"a-failed-3", "a", 3, 3}, {"a-1", "a", 1, 0}, {"b-19", "b", 19, 0},
				{"a-ended-16", "a", 16, -1}, {"a-under-way", "a", 0, -1}} {
				putRun(t, out, r.name, r.scenario, r.days, r.exit)
			}
			// None of these is a run's directory: one lies elsewhere, one has a plan of another program, one has none.
			elsewhere := t.TempDir()
			putRun(t, elsewhere, "a-99", "a", 99, 0)
			if err := os.Symlink(filepath.Join(elsewhere, "a-99"), filepath.Join(out, "a-99")); err != nil {
				t.Fatal(err)
			}
			putRun(t, out, "notes", "a", 99, 0)
			putRun(t, out, "theirs", "a", 99, 0)
			if err := os.Remove(filepath.Join(out, "notes", "plan.json")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(out, "theirs", "plan.json"), []byte(`{"schema":"v1","scenario":"a"}`), 0o644); err != nil {
				t.Fatal(err)
			}
			before := names(t, out)
			c.options.Now = now
			removed, over, err := campaign.Prune(out, c.options)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(removed)
			slices.Sort(c.removed)
			if diff := cmp.Diff(c.removed, removed); diff != "" || (over > 0) != c.over {
				t.Errorf("%d bytes over, removed: -want +got:\n%s", over, diff)
			}
			left := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(removed, name) })
			if diff := cmp.Diff(left, names(t, out)); diff != "" {
				t.Errorf("left: -want +got:\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(elsewhere, "a-99", "verdict.json")); err != nil {
				t.Errorf("something behind a link was removed: %v", err)
			}
		})
	}
	if removed, _, err := campaign.Prune(filepath.Join(t.TempDir(), "nowhere"), campaign.PruneOptions{KeepRuns: 1}); err != nil || removed != nil {
		t.Errorf("no folder: %v, %v", removed, err)
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
