package redact_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-relapse/relapse/harness/judge/redact"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Runs on real clusters, with real logs, dumps, profiles and objects, are judged the same once they are redacted.
func TestRealRunsAreJudgedTheSame(t *testing.T) {
	archives, err := filepath.Glob("../../report/testdata/earlier/*.tar.zst")
	if err != nil || len(archives) < 3 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, file := range archives {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got, err := redact.Run(unpack(t, file), filepath.Join(t.TempDir(), "redacted"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict.Verdict != verdict.Validated {
				t.Errorf("the verdict is %s, want Validated", got.Verdict.Verdict)
			}
			if got.Table.Mapped() == 0 || len(got.TakenOut()) < 2 {
				t.Errorf("nothing was taken out: %q", got.TakenOut())
			}
		})
	}
}

// unpack puts the run in an archive into a folder of the test's own.
func unpack(t *testing.T, file string) string {
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
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	run := ""
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(root.Name(), run)
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if filepath.Base(h.Name) == "index.json" {
			run = filepath.Dir(h.Name)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, root.MkdirAll(filepath.Dir(h.Name), 0o755), root.WriteFile(h.Name, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}
