package bundle_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// What a reader made of a stream is kept, and only what was added is read again.
func TestRemember(t *testing.T) {
	for _, ext := range []string{"jsonl", "jsonl" + bundle.Packed} {
		t.Run(ext, func(t *testing.T) {
			w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
			if err != nil {
				t.Fatal(err)
			}
			st, err := w.Stream(bundle.Meta{Kind: bundle.Logs, Arm: "fixed", Time: time.Now()}, ext)
			if err != nil {
				t.Fatal(err)
			}
			var given []string
			read := func(v bundle.View) string {
				t.Helper()
				got, err := v.Remember(v.Artifacts(bundle.Query{Kind: bundle.Logs})[0], "text", func(before any, r io.Reader) (any, error) {
					b, err := io.ReadAll(r)
					given = append(given, string(b))
					had, _ := before.(string)
					return had + string(b), err
				})
				if err != nil {
					t.Fatal(err)
				}
				return got.(string)
			}
			all := ""
			for _, line := range []string{"one", "two"} {
				if err := st.Line([]byte(line)); err != nil {
					t.Fatal(err)
				}
				all += line + "\n"
				for range 2 {
					if got := read(w.View()); got != all {
						t.Errorf("after %s it is %q, want %q", line, got, all)
					}
				}
			}
			want := []string{"one\n", "two\n"}
			if strings.HasSuffix(ext, bundle.Packed) {
				want[1] = all // what is compressed has no middle to begin at
			}
			if strings.Join(given, "|") != strings.Join(want, "|") {
				t.Errorf("what was read is %q, want %q", given, want)
			}
			if err := w.Seal(); err != nil {
				t.Fatal(err)
			}
			sealed, err := bundle.Open(w.Dir())
			if err != nil {
				t.Fatal(err)
			}
			if a, b := read(sealed), read(sealed); a != all || b != all || len(given) != 3 {
				t.Errorf("sealed it is %q and %q, read %d times", a, b, len(given)-2)
			}
		})
	}
}

// An error is kept by nobody, and neither is what belongs to a file that is gone.
func TestRememberFails(t *testing.T) {
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bundle.Meta{Kind: bundle.Heap, Arm: "fixed"}, "txt", strings.NewReader("profile")); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	v, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	a := v.Artifacts(bundle.Query{Kind: bundle.Heap})[0]
	bad := errors.New("it is no profile")
	if _, err := v.Remember(a, "x", func(any, io.Reader) (any, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Errorf("the error is %v, want %v", err, bad)
	}
	if got, err := v.Remember(a, "x", func(before any, r io.Reader) (any, error) { return before == nil, nil }); err != nil || got != true {
		t.Errorf("after an error: %v, %v; want to begin anew", got, err)
	}
	if err := os.Remove(filepath.Join(w.Dir(), filepath.FromSlash(a.Path))); err != nil {
		t.Fatal(err)
	}
	if v, err = bundle.Open(w.Dir()); err != nil {
		t.Fatal(err)
	}
	gone := v.Artifacts(bundle.Query{Kind: bundle.Heap})[0]
	if _, err := v.Remember(gone, "x", func(any, io.Reader) (any, error) { return 1, nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a file that is gone the error is %v, want %v", err, os.ErrNotExist)
	}
}
