package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// IndexFile is the name of the index of a run's trials. It lies in the run's directory, like the run's plan.
const IndexFile = "index.json"

// IndexSchema is the value of an index's schema field.
const IndexSchema = "relapse.dev/index/v1alpha1"

// Index ties bundles to the run that made them. A trial is listed before it begins, and gets the SHA-256 of its
// manifest once its bundle is sealed. So a trial that was removed, or that comes from another run, is noticed.
type Index struct {
	Schema   string         `json:"schema"`
	Run      string         `json:"run"`              // World.Run of each trial
	Plan     string         `json:"plan"`             // SHA-256 of the run's plan.json
	Scenario string         `json:"scenario"`         // SHA-256 of the scenario file that was planned
	Relapse  string         `json:"relapse"`          // the version of relapse that made the run
	Complete bool           `json:"complete"`         // the run came to its end; false during the run, or if it was cut short
	Trials   []IndexedTrial `json:"trials"`           // in the order in which they began
	Lost     []LostTrial    `json:"lost,omitempty"`   // trials that were made elsewhere and left no bundle
	Beyond   []BeyondTrial  `json:"beyond,omitempty"` // trials of an open-ended run that were over when its rule had ended without them
	Redacted *Redacted      `json:"redacted,omitempty"`
}

// BeyondTrial is a trial that was made elsewhere beside others, and that the rule of its open-ended run no longer asked for.
// Its bundle is no part of the run: had the trials been made one after the other, it would not have been made.
type BeyondTrial struct {
	ID      string `json:"id"`
	Verdict string `json:"verdict"`
}

// String says how the trial came out.
func (t BeyondTrial) String() string {
	return fmt.Sprintf(
		"trial %s was %s, and is left out: the rule had ended the run before it",
		t.ID,
		t.Verdict,
	)
}

// LostTrial is a trial of a run that was made elsewhere and left no sealed bundle. An incident may destroy its own
// evidence: unless what ended the trial was shown to come from outside, the trial counts against the judged arm.
type LostTrial struct {
	ID      string `json:"id"`
	Pair    string `json:"pair"`
	Why     string `json:"why"`
	Outside bool   `json:"outside"`
	Seen    string `json:"seen,omitempty"` // where to look at what it had seen, which counts for nothing
}

// String says which trial was lost, and why.
func (t LostTrial) String() string {
	return fmt.Sprintf("trial %s left no evidence: %s", t.ID, t.Reason())
}

// Reason says why the trial was lost, and whether the incident may have done that.
func (t LostTrial) Reason() string {
	if t.Outside {
		return t.Why
	}
	return t.Why + ", which may be the incident's own doing"
}

// IndexedTrial is one trial of a run.
type IndexedTrial struct {
	ID       string            `json:"id"`
	Pair     string            `json:"pair"`
	Arms     map[string]string `json:"arms"`               // arm -> SHA-256 of its binary
	Manifest string            `json:"manifest,omitempty"` // SHA-256 of the bundle's manifest.json; "" for a trial that was not sealed
}

// ReadIndex reads the index in a run's directory. If there is none, the error is fs.ErrNotExist.
func ReadIndex(dir string) (Index, error) {
	var x Index
	b, err := os.ReadFile(filepath.Join(dir, IndexFile))
	if err != nil {
		return x, fmt.Errorf("reading %s: %w", IndexFile, err)
	}
	if err := kinds.DecodeStrictly(b, &x); err != nil {
		return x, fmt.Errorf("reading %s: %w", IndexFile, err)
	}
	if x.Schema != IndexSchema {
		return x, fmt.Errorf(
			"reading %s: schema is %q, want %q",
			IndexFile,
			x.Schema,
			IndexSchema,
		)
	}
	return x, nil
}

// Write writes the index to a run's directory, whole or not at all, and without secrets: why a trial was lost is said in
// the words of somebody else's cluster.
func (x *Index) Write(dir string) error {
	x.Schema = IndexSchema
	for i := range x.Lost {
		x.Lost[i].Why = redactString(x.Lost[i].Why)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(x); err != nil {
		return fmt.Errorf("encoding %s: %w", IndexFile, err)
	}
	if err := renameio.WriteFile(filepath.Join(dir, IndexFile), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", IndexFile, err)
	}
	return nil
}

// Trial returns the trial with this id, nil if there is none.
func (x *Index) Trial(id string) *IndexedTrial {
	i := slices.IndexFunc(x.Trials, func(t IndexedTrial) bool { return t.ID == id })
	if i < 0 {
		return nil
	}
	return &x.Trials[i]
}

// IndexSum returns the SHA-256 of a run's index.json.
func IndexSum(dir string) (string, error) {
	_, sum, err := hashFile(filepath.Join(dir, IndexFile))
	return sum, err
}

// ManifestSum returns the SHA-256 of a bundle's manifest.json, which lists the SHA-256 of every other file; "" if the
// bundle isn't sealed.
func ManifestSum(dir string) (string, error) {
	_, sum, err := hashFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return sum, err
}
