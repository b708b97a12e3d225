package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// Ledger is what a run notes down before it makes something, so that a run that was killed can be undone by `relapse clean`. It lies in the
// user's state directory, one file a run, and goes when the run has removed everything itself.
type Ledger struct {
	Run      string    `json:"run"`      // what the clusters' and networks' names begin with
	Clusters []string  `json:"clusters"` // their full names, whether they exist or not
	PID      int       `json:"pid"`
	Start    int64     `json:"startTicks"` // with PID it names one process: field 22 of /proc/PID/stat
	Began    time.Time `json:"began"`
	Dir      string    `json:"dir"`      // the run directory
	Files    string    `json:"files"`    // the run's private files: kubeconfig, what nodes mount
	Retained bool      `json:"retained"` // kept on purpose: removed by name only
}

// StateDir is where ledgers lie: $XDG_STATE_HOME/relapse/runs, or its default below the home directory.
func StateDir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "relapse", "runs"), nil
}

func (l Ledger) path() (string, error) {
	dir, err := StateDir()
	return filepath.Join(dir, l.Run+".json"), err
}

// openLedger notes a run down and makes its private directory.
func openLedger(run, dir string, clusters []string) (Ledger, error) {
	state, err := StateDir()
	if err != nil {
		return Ledger{}, err
	}
	ticks, err := startTicks(os.Getpid())
	if err != nil {
		return Ledger{}, err
	}
	l := Ledger{Run: run, Clusters: clusters, PID: os.Getpid(), Start: ticks, Began: time.Now().UTC(), Dir: dir, Files: filepath.Join(state, run)}
	if err := os.MkdirAll(l.Files, 0o700); err != nil {
		return l, err
	}
	return l, l.save()
}

func (l Ledger) save() error {
	p, err := l.path()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(p, append(raw, '\n'), 0o600)
}

// forget removes the note and the run's private files: nothing of the run is left.
func (l Ledger) forget() error {
	p, err := l.path()
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(l.Files), os.Remove(p))
}

// close forgets the run once nothing of it is left in the engine. Where something can't be removed the note stays, for `relapse clean`. It
// works after ctx has ended, too.
func (l Ledger) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := l.deleteClusters(ctx); err != nil {
		return err
	}
	return l.forget()
}

// deleteClusters removes whatever is left of the run's clusters.
func (l Ledger) deleteClusters(ctx context.Context) error {
	prov, err := newProvider(l.Files, nil, false)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range l.Clusters {
		errs = append(errs, prov.Delete(ctx, name))
	}
	return errors.Join(errs...)
}

// alive reports whether the process that owns the run still exists: the same process, not another one with its number.
func (l Ledger) alive() bool {
	ticks, err := startTicks(l.PID)
	return err == nil && ticks == l.Start
}

// Ledgers lists the runs that are noted down.
func Ledgers() ([]Ledger, error) {
	dir, err := StateDir()
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Ledger
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) { // its run ended just now
			continue
		}
		if err != nil {
			return out, err
		}
		var l Ledger
		if err := json.Unmarshal(raw, &l); err != nil {
			return out, fmt.Errorf("reading %s: %w", name, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// startTicks is when a process began, in clock ticks since boot: field 22 of /proc/PID/stat, counted after the command's name, which may
// itself hold spaces and parentheses.
func startTicks(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := cutLast(string(raw), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	return strconv.ParseInt(fields[19], 10, 64)
}

// removeUnsealed removes the trial directories of a run that have no manifest: half-written evidence must not be taken for a bundle.
func removeUnsealed(dir string) error {
	trials, err := filepath.Glob(filepath.Join(dir, "trials", "*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, t := range trials {
		if _, err := os.Stat(filepath.Join(t, "manifest.json")); errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, os.RemoveAll(t))
		}
	}
	return errors.Join(errs...)
}

// removeIfEmpty removes a run directory in which nothing is left but its plan: the run came to nothing.
func removeIfEmpty(dir string) error {
	if sealed, err := filepath.Glob(filepath.Join(dir, "trials", "*", "manifest.json")); err != nil || len(sealed) > 0 {
		return err
	}
	return os.RemoveAll(dir)
}

// CleanOptions say what Clean may remove beyond what dead runs left. Runs names retained runs.
type CleanOptions struct {
	Runs []string
	All  bool // every retained run
}

// Clean undoes runs whose process is gone: their clusters with the faults in them, networks, private files and half-written bundles, images
// in the making and abandoned cache scratch. Runs that are alive, and retained ones that are not named, are left alone.
func Clean(ctx context.Context, lab *Lab, o CleanOptions, say func(string)) error {
	ledgers, err := Ledgers()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range ledgers {
		named := o.All || slices.Contains(o.Runs, l.Run)
		switch {
		case l.alive() && !l.Retained:
			say(fmt.Sprintf("%s is running (process %d): left alone", l.Run, l.PID))
			continue
		case l.Retained && !named:
			say(fmt.Sprintf("%s was kept on purpose: `relapse clean %s` removes it", l.Run, l.Run))
			continue
		}
		if err := undo(ctx, l); err != nil {
			errs = append(errs, fmt.Errorf("undoing %s: %w", l.Run, err))
			continue
		}
		say("removed what " + l.Run + " had left: clusters, networks, private files")
	}
	left, err := lab.store.Clean(ctx)
	errs = append(errs, err)
	for _, x := range left {
		say("removed the " + x.Kind + " " + x.Name + " of an unfinished node image")
	}
	scratch, err := lab.cache.Clean(ctx)
	errs = append(errs, err)
	for _, x := range scratch {
		say("removed scratch " + x)
	}
	return errors.Join(errs...)
}

func undo(ctx context.Context, l Ledger) error {
	if err := l.deleteClusters(ctx); err != nil {
		return err
	}
	if err := removeUnsealed(l.Dir); err != nil {
		return err
	}
	if err := removeIfEmpty(l.Dir); err != nil {
		return err
	}
	return l.forget()
}
