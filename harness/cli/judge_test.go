package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// writeRun leaves a run of one trial in which nothing was recorded but a failure, if there is one.
func writeRun(t *testing.T, failure string) string {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	if err := makeRun(run, failure, ""); err != nil {
		t.Fatal(err)
	}
	return run
}

func makeRun(run, failure, scenario string) error {
	plan := `{"schema":"relapse.dev/plan/v1alpha1","scenario":"x","trials":[{"id":"001","pair":"p","arms":[
		{"name":"vulnerable","arm":{"name":"vulnerable","role":"vulnerable"},"expected":"Reproduced"},
		{"name":"fixed","arm":{"name":"fixed","role":"fixed"},"expected":"NotReproduced"}]}]}`
	trial := filepath.Join(run, "trials", "001")
	w, err := bundle.Create(trial)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(plan))
	x := bundle.Index{Run: "r1", Plan: hex.EncodeToString(sum[:]), Scenario: scenario, Complete: true}
	err = errors.Join(w.PutPlan([]byte(plan)), w.SetWorld(bundle.World{Run: x.Run, Plan: x.Plan, Scenario: scenario}))
	if failure != "" {
		w.Emit(event.Event{Type: event.Failure, Message: failure})
	}
	_, lost := w.Write(bundle.Meta{Kind: bundle.Configz}, "json", strings.NewReader("{}"))
	err = errors.Join(err, lost, w.Seal(), os.WriteFile(filepath.Join(run, "plan.json"), []byte(plan), 0o644))
	manifest, unread := bundle.ManifestSum(trial)
	x.Trials = []bundle.IndexedTrial{{ID: "001", Pair: "p", Manifest: manifest}}
	return errors.Join(err, unread, x.Write(run))
}

func TestJudgeCommand(t *testing.T) {
	spoilt := func(t *testing.T) string {
		run := writeRun(t, "")
		if err := os.WriteFile(filepath.Join(run, "trials", "001", "extra"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return run
	}
	for _, c := range []struct {
		name       string
		dir        func(t *testing.T) string
		args       []string
		exit       int
		out, errs  string // what must stand there
		lastOnErrs bool
		last       string
		writes     bool
	}{
		{name: "no evidence", dir: func(t *testing.T) string { return writeRun(t, "") }, exit: 3, out: "fixed is Inconclusive: ", last: "relapse: Inconclusive (exit 3)", writes: true},
		{name: "as JSON", dir: func(t *testing.T) string { return writeRun(t, "") }, args: []string{"-o", "json"}, exit: 3, out: `"exitCode": 3,`, lastOnErrs: true, last: "relapse: Inconclusive (exit 3)", writes: true},
		{name: "one trial", dir: func(t *testing.T) string { return filepath.Join(writeRun(t, ""), "trials", "001") }, exit: 3, out: "vulnerable", last: "relapse: Inconclusive (exit 3)"},
		{name: "a failure of ours", dir: func(t *testing.T) string { return writeRun(t, "no engine") }, exit: 4, out: "something of the harness failed: no engine", last: "relapse: Error (exit 4)", writes: true},
		{name: "damaged", dir: spoilt, exit: 4, errs: "extra is not listed in manifest.json", last: "relapse: Error (exit 4)"},
		{name: "no directory", dir: func(t *testing.T) string { return filepath.Join(t.TempDir(), "nowhere") }, exit: 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.dir(t)
			var out, errs bytes.Buffer
			cmd := newJudgeCmd()
			cmd.SetOut(&out)
			cmd.SetErr(&errs)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{dir}, c.args...))
			err := cmd.ExecuteContext(t.Context())
			if code := finish(t.Context(), cmd, err); code != c.exit {
				t.Fatalf("%v: exit %d, want %d", err, code, c.exit)
			}
			if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("stdout %q, want %q in it; stderr %q, want %q in it", out.String(), c.out, errs.String(), c.errs)
			}
			said := out.String()
			if c.lastOnErrs {
				said = errs.String()
			}
			if lines := strings.Split(strings.TrimSpace(said), "\n"); lines[len(lines)-1] != c.last {
				t.Errorf("the last line is %q, want %q", lines[len(lines)-1], c.last)
			}
			if _, err := os.Stat(filepath.Join(dir, "verdict.json")); (err == nil) != c.writes {
				t.Errorf("verdict.json: %v, want it written: %v", err, c.writes)
			}
		})
	}
}
