// Package history keeps the ledger of runs: a file that has one line for each arm of each trial that was ever judged,
// and outlives the runs.
package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// File is the ledger's name in the folder of run directories.
const File = "history.jsonl"

// Entry is one arm of one trial.
type Entry struct {
	Time     time.Time         `json:"time"` // when the trial began
	Scenario string            `json:"scenario"`
	Pair     string            `json:"pair"`
	Provider string            `json:"provider,omitempty"` // of the clusters; "" of older entries
	Arm      string            `json:"arm"`
	Role     string            `json:"role"`
	Outcome  string            `json:"outcome"`
	Expected string            `json:"expected"`
	Verdict  string            `json:"verdict"` // of the trial
	Versions map[string]string `json:"versions"`
	Digest   string            `json:"digest"` // SHA-256 of the arm's binary
	Seed     int64             `json:"seed"`
	Seconds  float64           `json:"seconds"` // how long the trial took, without what was built before it
	Run      string            `json:"run"`     // the run's directory, next to the ledger
	Trial    string            `json:"trial"`
	Manifest string            `json:"manifest,omitempty"` // SHA-256 of the trial's manifest; shows later removal
	Relapse  string            `json:"relapse"`
	// Apart says what made the trial other than the scenario's own, one phrase each. Such a trial isn't counted.
	Apart []string `json:"apart,omitempty"`
}

// validate returns an error if a field is missing that every entry has. A line may be JSON and still be no entry.
func (e Entry) validate() error {
	if e.Time.IsZero() {
		return errors.New("it has no time")
	}
	for _, f := range []struct{ name, value string }{{"scenario", e.Scenario}, {"pair", e.Pair}, {"arm", e.Arm},
		{"role", e.Role}, {"outcome", e.Outcome}} {
		if f.value == "" {
			return fmt.Errorf("it has no %s", f.name)
		}
	}
	return nil
}

// Append adds entries to the ledger at path in one write, under a lock. If a crash left the last line incomplete, that
// line stays as it is, and the entries begin on a new line.
func Append(path string, entries []Entry) (err error) {
	if len(entries) == 0 {
		return nil
	}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	for _, e := range entries {
		if err := e.validate(); err != nil {
			return fmt.Errorf("appending to %s: %w", path, err)
		}
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("appending to %s: %w", path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("appending to %s: %w", path, err)
	}
	lock := flock.New(path, flock.SetPermissions(0o644))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("appending to %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	torn, err := endsTorn(f)
	if err != nil {
		return fmt.Errorf("appending to %s: %w", path, err)
	}
	out := lines.Bytes()
	if torn {
		out = append([]byte("\n"), out...)
	}
	if _, err := f.Write(out); err != nil {
		return fmt.Errorf("appending to %s: %w", path, err)
	}
	return f.Sync()
}

// endsTorn reports whether a file's last line is incomplete.
func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return last[0] != '\n', err
}

// Skipped is a line that could not be read. It is always reported, because counts without it may be wrong.
type Skipped struct {
	File   string `json:"file"`
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

// String returns "runs/history.jsonl:7: …".
func (s Skipped) String() string { return fmt.Sprintf("%s:%d: %s", s.File, s.Line, s.Reason) }

// maxLine is a bound in bytes that no entry reaches.
const maxLine = 1 << 20

// Read returns the ledger's entries in order, and the lines that are no entries. The error is fs.ErrNotExist if there
// is no ledger.
func Read(path string) (entries []Entry, skipped []Skipped, err error) {
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	if err := lock.RLock(); err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer f.Close()
	entries, skipped, err = parse(f, path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return entries, skipped, nil
}

func parse(r io.Reader, path string) (entries []Entry, skipped []Skipped, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var e Entry
		err := json.Unmarshal(lines.Bytes(), &e)
		if err == nil {
			err = e.validate()
		}
		if err != nil {
			skipped = append(skipped, Skipped{File: path, Line: n, Reason: err.Error()})
			continue
		}
		entries = append(entries, e)
	}
	return entries, skipped, lines.Err()
}

// Durations returns how long each trial of a pair took on a provider, in the ledger's order. Trials that were set apart
// or failed may have ended early, and don't count.
func Durations(entries []Entry, scenario, pair, provider string) (out []time.Duration) {
	seen := map[[2]string]bool{}
	for _, e := range entries {
		trial := [2]string{e.Run, e.Trial}
		if e.Scenario != scenario || e.Pair != pair || e.Provider != provider || e.Seconds <= 0 || len(e.Apart) > 0 ||
			e.Verdict == "Error" || seen[trial] {
			continue
		}
		seen[trial] = true
		out = append(out, time.Duration(e.Seconds*float64(time.Second)))
	}
	return out
}
