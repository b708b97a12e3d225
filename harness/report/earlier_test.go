package report_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Runs of earlier versions of relapse are judged as they were then. Each archive is one run, with the verdict.json that
// its own version wrote and without the artifacts that nothing judges by.
func TestEarlierRunsAreJudgedAsTheyWere(t *testing.T) {
	archives, err := filepath.Glob("testdata/earlier/*.tar.zst")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range archives {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dir := unpack(t, file)
			raw, err := os.ReadFile(filepath.Join(dir, judge.VerdictFile))
			if err != nil {
				t.Fatal(err)
			}
			var then judge.Verdict
			if err := json.Unmarshal(raw, &then); err != nil {
				t.Fatal(err)
			}
			now, err := judge.Run(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(answers(then), answers(now)); diff != "" {
				t.Errorf("then (-) and now (+):\n%s", diff)
			}
			for _, a := range now.Arms {
				for _, part := range findings(a) {
					wantCodes(t, a.Name, part)
				}
			}
		})
	}
}

func TestTrialsSayWhereTheyRan(t *testing.T) {
	v, err := judge.Run(unpack(t, "testdata/earlier/pleg-deadlock.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	if trial := v.Trials[0]; trial.Provider != "kind" || trial.Cores != 2 {
		t.Errorf("the trial ran on %q with %d cores, want kind and 2", trial.Provider, trial.Cores)
	}
}

// answers are all answers of a verdict, without the words that they are told in.
func answers(v judge.Verdict) []string {
	out := []string{fmt.Sprintf("%s, exit %d", v.Verdict, v.ExitCode)}
	for _, a := range v.Arms {
		out = append(out, a.Name+" is "+string(a.Outcome))
		for _, part := range findings(a) {
			for _, f := range part {
				out = append(out, fmt.Sprintf("%s: %s %s", a.Name, f.Name, f.Met))
			}
		}
	}
	return out
}

func findings(a verdict.Arm) [][]check.Finding {
	return [][]check.Finding{a.Identity, a.Steady, a.Baseline, a.Exposure, a.Signature, a.Healed}
}

// wantCodes wants each finding to have a code if and only if it is unknown.
func wantCodes(t *testing.T, arm string, all []check.Finding) {
	t.Helper()
	for _, f := range all {
		if (f.Met == check.Unknown) != slices.Contains(check.Codes, f.Code) {
			t.Errorf("%s: %s is %s with the code %q: %s", arm, f.Name, f.Met, f.Code, f.Seen)
		}
		wantCodes(t, arm, f.AnyOf)
	}
}

// unpack puts an archive of one folder into a folder of the test's own.
func unpack(t *testing.T, file string) (dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	root := t.TempDir()
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(root, filepath.FromSlash(h.Name))
		if !filepath.IsLocal(h.Name) || h.Typeflag != tar.TypeReg {
			continue
		}
		names = append(names, h.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := os.Create(at)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(out, r)
		if err := errors.Join(err, out.Close()); err != nil {
			t.Fatal(err)
		}
	}
	i := slices.IndexFunc(names, func(n string) bool { return filepath.Base(n) == "index.json" })
	if i < 0 {
		t.Fatalf("%s holds no run: %v", file, names)
	}
	return filepath.Join(root, filepath.Dir(names[i]))
}
