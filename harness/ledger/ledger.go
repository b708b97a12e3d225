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

// Ledger is the record that a run writes before it makes anything, so that `relapse clean` can undo a run that was
// killed. Each run has one file in the user's state directory. The file is removed once the run has removed everything
// that it made.
type Ledger struct {
	Run      string    `json:"run"`      // prefix of the clusters' and networks' names
	Clusters []string  `json:"clusters"` // full names, whether or not they exist
	PID      int       `json:"pid"`
	Start    int64     `json:"startTicks"` // names one process together with PID: field 22 of /proc/PID/stat
	Began    time.Time `json:"began"`
	Dir      string    `json:"dir"`           // the run directory
	Provider string    `json:"provider"`      // the provider of the clusters; "" is kind
	Retained bool      `json:"retained"`      // kept on purpose: removed only by name
	Job      *Job      `json:"job,omitempty"` // where the trials are made, if not on this host
}

// Job is the Job of a Kubernetes cluster that makes a run's trials. Its name is the run's.
type Job struct {
	Kubeconfig string `json:"kubeconfig,omitempty"` // "" for the user's own
	Context    string `json:"context"`              // of the kubeconfig
	Namespace  string `json:"namespace"`
	Registry   string `json:"registry"` // the repository that has the run's image, and the bundles unless they lie elsewhere
	Insecure   bool   `json:"insecure,omitempty"`
	Storage    string `json:"storage,omitempty"` // the claim of the volume that has the bundles
	Held       bool   `json:"held,omitempty"`    // each bundle lies in its pod until it is fetched
	Image      string `json:"image,omitempty"`   // Image, Secret and CPU are what a pod takes that reads the volume
	Secret     string `json:"secret,omitempty"`
	CPU        string `json:"cpu,omitempty"`
}

// StateDir returns the directory of ledgers: $XDG_STATE_HOME/relapse/runs, or its default below the home directory.
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

// Open records a run. provider is the name of the provider of its clusters.
func Open(run, dir, provider string, clusters []string) (Ledger, error) {
	ticks, err := startTicks(os.Getpid())
	if err != nil {
		return Ledger{}, err
	}
	l := Ledger{
		Run:      run,
		Clusters: clusters,
		PID:      os.Getpid(),
		Start:    ticks,
		Began:    time.Now().UTC(),
		Dir:      dir,
		Provider: provider,
	}
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

// Forget removes the record. Call it when nothing of the run remains.
func (l Ledger) Forget() error {
	p, err := l.path()
	if err != nil {
		return err
	}
	return os.Remove(p)
}

// Close deletes the run's clusters, then the record. If something can't be removed, the record stays for `relapse
// clean`. Close works even after ctx has ended.
func (l Ledger) Close(ctx context.Context, provider cluster.Provider) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := l.deleteClusters(ctx, provider); err != nil {
		return err
	}
	return l.Forget()
}

// deleteClusters deletes the run's clusters, as far as they exist.
func (l Ledger) deleteClusters(ctx context.Context, provider cluster.Provider) error {
	var errs []error
	for _, name := range l.Clusters {
		errs = append(errs, provider.Delete(ctx, name))
	}
	return errors.Join(errs...)
}

// OpenJob records a run whose trials a Job makes. The record stays until the run is removed by its name.
func OpenJob(run, dir string, j Job) (Ledger, error) {
	ticks, err := startTicks(os.Getpid())
	if err != nil {
		return Ledger{}, err
	}
	l := Ledger{
		Run:      run,
		PID:      os.Getpid(),
		Start:    ticks,
		Began:    time.Now().UTC(),
		Dir:      dir,
		Retained: true,
		Job:      &j,
	}
	return l, l.Save()
}

// TakeJob makes this process the one that follows the Job of a run. It is an error if another process does.
func TakeJob(run string) (Ledger, error) {
	all, err := List()
	if err != nil {
		return Ledger{}, err
	}
	for _, l := range all {
		if l.Run != run || l.Job == nil {
			continue
		}
		if l.PID != os.Getpid() && l.alive() {
			return l, fmt.Errorf("process %d follows the run %s (want one at a time)", l.PID, run)
		}
		l.PID = os.Getpid()
		if l.Start, err = startTicks(l.PID); err != nil {
			return l, err
		}
		return l, l.Save()
	}
	return Ledger{}, fmt.Errorf("this host knows no run %s on Kubernetes", run)
}

// alive reports whether the process that owns the run still exists. It isn't fooled by another process with the same
// number.
func (l Ledger) alive() bool {
	ticks, err := startTicks(l.PID)
	return err == nil && ticks == l.Start
}

// List returns the recorded runs.
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
		if errors.Is(err, fs.ErrNotExist) { // the run has just ended
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

// startTicks returns when a process began, in clock ticks since boot. That is field 22 of /proc/PID/stat, counted after
// the command's name, which may contain spaces and parentheses.
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
