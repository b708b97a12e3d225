// Package ledger records what a run is about to make, so that a run that was killed can be undone.
package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Ledger is what a run records before it makes anything, so that `relapse clean` can undo a run that was killed. It
// is one file for each run in the user's state directory, and is removed once the run has removed everything itself.
type Ledger struct {
	Run      string    `json:"run"`      // what the clusters' and networks' names begin with
	Clusters []string  `json:"clusters"` // their full names, whether they exist or not
	PID      int       `json:"pid"`
	Start    int64     `json:"startTicks"` // with PID it names one process: field 22 of /proc/PID/stat
	Began    time.Time `json:"began"`
	Dir      string    `json:"dir"`      // the run directory
	Provider string    `json:"provider"` // the name of the provider that makes them; "" is kind
	Retained bool      `json:"retained"` // kept on purpose: removed by name only
}

// StateDir is the directory of ledgers: $XDG_STATE_HOME/relapse/runs, or its default below the home directory.
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

// Open records a run. provider is the name of the provider that makes its clusters.
func Open(run, dir, provider string, clusters []string) (Ledger, error) {
	ticks, err := startTicks(os.Getpid())
	if err != nil {
		return Ledger{}, err
	}
	l := Ledger{Run: run, Clusters: clusters, PID: os.Getpid(), Start: ticks, Began: time.Now().UTC(), Dir: dir,
		Provider: provider}
	return l, l.Save()
}

// Save writes the record to its file.
func (l Ledger) Save() error {
	p, err := l.path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(p, append(raw, '\n'), 0o600)
}

// Forget removes the record, because nothing of the run is left.
func (l Ledger) Forget() error {
	p, err := l.path()
	if err != nil {
		return err
	}
	return os.Remove(p)
}

// Close removes the record once nothing of the run is left in the engine. If something can't be removed the record
// stays for `relapse clean`. It works after ctx has ended, too.
func (l Ledger) Close(ctx context.Context, provider cluster.Provider) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := l.deleteClusters(ctx, provider); err != nil {
		return err
	}
	return l.Forget()
}

// deleteClusters removes what is left of the run's clusters.
func (l Ledger) deleteClusters(ctx context.Context, provider cluster.Provider) error {
	var errs []error
	for _, name := range l.Clusters {
		errs = append(errs, provider.Delete(ctx, name))
	}
	return errors.Join(errs...)
}

// alive reports whether the process that owns the run still exists, and isn't another one with its number.
func (l Ledger) alive() bool {
	ticks, err := startTicks(l.PID)
	return err == nil && ticks == l.Start
}

// List lists the recorded runs.
func List() ([]Ledger, error) {
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

// startTicks is when a process began, in clock ticks since boot: field 22 of /proc/PID/stat, counted after the
// command's name, which may contain spaces and parentheses.
func startTicks(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(raw[bytes.LastIndex(raw, []byte(") "))+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	return strconv.ParseInt(fields[19], 10, 64)
}
