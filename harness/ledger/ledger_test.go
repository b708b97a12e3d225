package ledger_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// deleting is a provider that tells what it was asked to delete, and may fail at it.
type deleting struct {
	clustertest.Provider
	deleted []string
	err     error
}

func (p *deleting) Delete(_ context.Context, name string) error {
	p.deleted = append(p.deleted, name)
	return p.err
}

// noted is a run of this process that is noted down, with a sealed trial and a half-written one.
func noted(t *testing.T, run string) ledger.Ledger {
	t.Helper()
	dir := filepath.Join(t.TempDir(), run)
	for _, file := range []string{"trials/001/manifest.json", "trials/002/timeline.jsonl"} {
		at := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := ledger.Open(run, dir, "fake", []string{run + "-vulnerable", run + "-fixed"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dead makes a run one whose process is gone: its process id is another process's now.
func dead(t *testing.T, l ledger.Ledger) {
	t.Helper()
	l.Start++
	if err := l.Save(); err != nil {
		t.Fatal(err)
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct {
		name           string
		killed, kept   bool
		options        ledger.CleanOptions
		fails          error
		deleted, there bool // its clusters were, and its note still is
		says, err      string
	}{
		{name: "a run that is alive", there: true, says: "relapse-1 is running (process "},
		{name: "a run that was killed", killed: true, deleted: true, says: "removed what relapse-1 had left"},
		{name: "one that was kept", killed: true, kept: true, there: true, says: "relapse-1 was kept on purpose: `relapse clean relapse-1` removes it"},
		{name: "one that was kept, by its name", killed: true, kept: true, options: ledger.CleanOptions{Runs: []string{"relapse-1"}}, deleted: true, says: "removed what"},
		{name: "all that were kept", killed: true, kept: true, options: ledger.CleanOptions{All: true}, deleted: true, says: "removed what"},
		{name: "an engine that fails", killed: true, fails: errors.New("no engine"), deleted: true, there: true, err: "undoing relapse-1: no engine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			l := noted(t, "relapse-1")
			l.Retained = c.kept
			if err := l.Save(); err != nil {
				t.Fatal(err)
			}
			if c.killed {
				dead(t, l)
			}
			p, said := &deleting{err: c.fails}, ""
			err := ledger.Clean(t.Context(), func(name string) (cluster.Provider, error) {
				if name != "fake" {
					t.Errorf("asked for the provider %q", name)
				}
				return p, nil
			}, c.options, func(s string) { said += s })
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %q", err, c.err)
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("it says %q, want %q", said, c.says)
			}
			if want := []string{"relapse-1-vulnerable", "relapse-1-fixed"}; c.deleted != slices.Equal(p.deleted, want) {
				t.Errorf("deleted %v", p.deleted)
			}
			list, err := ledger.List()
			if err != nil || c.there != (len(list) == 1) {
				t.Errorf("noted down are %+v, %v", list, err)
			}
			_, half := os.Stat(filepath.Join(l.Dir, "trials", "002"))
			if undone := c.deleted && c.fails == nil; undone != errors.Is(half, os.ErrNotExist) {
				t.Errorf("the half-written bundle: %v", half)
			}
			if _, err := os.Stat(filepath.Join(l.Dir, "trials", "001", "manifest.json")); err != nil {
				t.Errorf("the sealed bundle: %v", err)
			}
		})
	}
}

// A run that came to nothing leaves no folder.
func TestARunWithoutABundleLeavesNothing(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "run")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "trials", "001"), 0o755), os.WriteFile(filepath.Join(dir, "plan.json"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open("relapse-2", dir, "fake", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ledger.RemoveUnsealed(dir), ledger.RemoveIfEmpty(dir), l.Close(t.Context(), &deleting{})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run's folder: %v", err)
	}
	if list, err := ledger.List(); err != nil || len(list) != 0 {
		t.Errorf("noted down are %+v, %v", list, err)
	}
}
