package bundle_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/disktest"
)

// A bundle for which the disk is too small is never sealed: what couldn't be written is an error, to whoever wrote it or at
// the end, also where room came back meanwhile. A bundle that was finished before stays whole.
func TestABundleOnAFullDisk(t *testing.T) {
	dir := disktest.Small(t, "4")
	if dir == "" {
		return
	}
	begin := func(name string) *bundle.Writer {
		t.Helper()
		w, err := bundle.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	write := func(w *bundle.Writer, size int) error {
		_, err := w.Write(bundle.Meta{Kind: "demo", Time: t0}, "txt", bytes.NewReader(bytes.Repeat([]byte("x\n"), size/2)))
		return err
	}
	first := begin("001")
	first.Emit(event.Event{Time: t0, Message: "it begins"})
	if err := errors.Join(write(first, 1<<10), first.Seal()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		lose func(*bundle.Writer) error // what is lost on the full disk
		late bool                       // the writer is only told when the bundle is to be sealed
	}{
		{"a snapshot and the seal", func(w *bundle.Writer) error { return write(w, 1<<20) }, false},
		{"an event", func(w *bundle.Writer) error {
			w.Emit(event.Event{Time: t0, Message: strings.Repeat("it goes on ", 1<<17)})
			return nil
		}, true},
		{"a line of a stream", func(w *bundle.Writer) error {
			s, err := w.Stream(bundle.Meta{Kind: "demo", Time: t0}, "log")
			if err != nil {
				return err
			}
			return s.Line(bytes.Repeat([]byte("y"), 1<<20))
		}, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := begin("second")
			defer func() {
				if err := os.RemoveAll(w.Dir()); err != nil {
					t.Error(err)
				}
			}()
			if err := w.PutPlan([]byte("{}")); err != nil {
				t.Fatal(err)
			}
			full := disktest.Fill(t, dir, 8<<10)
			before := names(t, w.Dir())
			err := c.lose(w)
			if c.late && err != nil || !c.late && !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("writing says %v", err)
			}
			if left := names(t, w.Dir()); !strings.Contains(c.what, "stream") && !slices.Equal(left, before) {
				t.Errorf("there is %q, and was %q before", left, before)
			}
			if c.what != "a snapshot and the seal" { // room comes back, and what was lost doesn't
				if err := os.Remove(full); err != nil {
					t.Fatal(err)
				}
			} else {
				w.Fail(bundle.Meta{Kind: "demo", Time: t0}, errors.New(strings.Repeat("no room ", 1<<14)))
			}
			if err := w.Seal(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("sealing says %v, want that no space was left", err)
			}
			var damage *bundle.DamageError
			if _, err := bundle.Open(w.Dir()); !errors.As(err, &damage) || !strings.Contains(err.Error(), "it was never sealed") {
				t.Errorf("it opens, or %v", err)
			}
			if err := os.RemoveAll(full); err != nil {
				t.Fatal(err)
			}
		})
	}
	if b, err := bundle.Open(filepath.Join(dir, "001")); err != nil || len(b.Timeline()) != 1 {
		t.Errorf("the bundle that was finished before: %v", err)
	}
}

// names are the files below a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
