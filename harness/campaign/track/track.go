// Package track keeps each scenario's track record: which runs reproduced its incident, with what and on which machine,
// and how its checks judged candidates whose right answer is known. The record is a file next to the scenario's. The
// parts of the documentation that tell it are written from it.
package track

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// File is the name of a scenario's record, which lies next to its scenario.yaml.
const File = "track-record.json"

// schema is the value of a record's schema field.
const schema = "relapse.dev/track-record/v1alpha1"

// Record is the track record of one scenario. Results are in the order of their dates.
type Record struct {
	Schema   string   `json:"schema"`
	Scenario string   `json:"scenario"`
	Runs     []Run    `json:"runs"`
	Oracles  []Oracle `json:"oracles"`
}

// Run is what the trials of one pair came to in a run of the scenario's own arms.
type Run struct {
	Conditions
	Verdicts map[string]int `json:"verdicts"` // of the trials: verdict -> how many
	// Seconds is how long each trial took, without what was built before it. A trial that failed may have ended early,
	// and isn't among them. Results that were recorded before times were have none.
	Seconds []float64 `json:"seconds,omitempty"`
}

// Oracle is how a run of relapse oracle graded its candidates.
type Oracle struct {
	Conditions
	Answers []Answer `json:"answers"`
}

// Answer is what one candidate gave.
type Answer struct {
	Candidate string         `json:"candidate"`
	Right     string         `json:"right"`
	Given     []string       `json:"given,omitempty"` // the outcome of its arm in each trial
	Grade     campaign.Grade `json:"grade"`
	Changed   bool           `json:"changed,omitempty"` // whether the candidate is another one since
}

// Conditions say when, with what and on which machine a result was got. A field is empty if nobody knows it any more.
type Conditions struct {
	Date     string            `json:"date"`           // 2006-01-02, in UTC
	Began    time.Time         `json:"began,omitzero"` // known of results that were read from evidence
	Pair     string            `json:"pair"`
	Provider string            `json:"provider"`
	Set      map[string]string `json:"set,omitempty"`  // settings in place of the scenario's own
	Full     bool              `json:"full,omitempty"` // an oracle's, without the scenario's short constants
	Arms     map[string]string `json:"arms,omitempty"` // the version that each arm was built from, by role

	Kubernetes string `json:"kubernetes,omitempty"` // of the clusters
	NodeImage  string `json:"nodeImage,omitempty"`  // official, assembled or given
	Engine     string `json:"engine,omitempty"`
	Linux      string `json:"linux,omitempty"` // the first two numbers of its release
	Cores      int    `json:"cores,omitempty"`

	Relapse string `json:"relapse,omitempty"` // the version that ran it
	Run     string `json:"run,omitempty"`     // the name that its directory was given
	// From says where a result comes from that was not read from a run's directory.
	From string `json:"from,omitempty"`
}

func (c Conditions) conditions() Conditions { return c }

// validate returns an error if a field is missing that every result has, or every one that was read from a run.
func (c Conditions) validate() error {
	if _, err := time.Parse(time.DateOnly, c.Date); err != nil {
		return fmt.Errorf("its date is %q, want YYYY-MM-DD", c.Date)
	}
	if c.From != "" {
		return nil
	}
	if c.Began.UTC().Format(time.DateOnly) != c.Date {
		return fmt.Errorf("it began at %s, which isn't its date", c.Began)
	}
	for _, f := range []struct{ name, value string }{{"pair", c.Pair}, {"provider", c.Provider}, {"run", c.Run}} {
		if f.value == "" {
			return fmt.Errorf("it has no %s, and doesn't say where it is from", f.name)
		}
	}
	return nil
}

// Load reads the record next to a scenario's file. A scenario without one has an empty record.
func Load(s *scenario.Scenario) (Record, error) {
	r := Record{Schema: schema, Scenario: s.Metadata.Name}
	at := path(s)
	text, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = kinds.DecodeStrictly(text, &r)
	}
	if err == nil {
		err = r.validate(s.Metadata.Name)
	}
	if err != nil {
		return r, fmt.Errorf("reading %s: %w", at, err)
	}
	return r, nil
}

func (r Record) validate(name string) error {
	if r.Schema != schema {
		return fmt.Errorf("its schema is %q, want %s", r.Schema, schema)
	}
	if r.Scenario != name {
		return fmt.Errorf("it is the record of %s, not of %s", r.Scenario, name)
	}
	for i, run := range r.Runs {
		if err := run.validate(); err != nil {
			return fmt.Errorf("runs[%d]: %w", i, err)
		}
		if len(run.Verdicts) == 0 {
			return fmt.Errorf("runs[%d]: it has no verdicts", i)
		}
	}
	for i, o := range r.Oracles {
		if err := o.validate(); err != nil {
			return fmt.Errorf("oracles[%d]: %w", i, err)
		}
		if len(o.Answers) == 0 {
			return fmt.Errorf("oracles[%d]: it has no answers", i)
		}
	}
	return nil
}

// Write writes the record next to a scenario's file.
func (r Record) Write(s *scenario.Scenario) error {
	text, err := judge.JSON(File, r)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path(s), text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path(s), err)
	}
	return nil
}

func path(s *scenario.Scenario) string { return filepath.Join(filepath.Dir(s.Origin.File), File) }

// Add adds results to the record. One that came from the same evidence is replaced, whatever its directory is called.
func (r *Record) Add(f Found) {
	r.Runs = added(r.Runs, f.Runs)
	r.Oracles = added(r.Oracles, f.Oracles)
}

func added[T interface{ conditions() Conditions }](have, more []T) []T {
	for _, m := range more {
		have = slices.DeleteFunc(have, func(h T) bool {
			is, was := m.conditions(), h.conditions()
			return was.Pair == is.Pair && was.From == "" &&
				(was.Run == is.Run || was.Began.Equal(is.Began))
		})
		have = append(have, m)
	}
	slices.SortStableFunc(have, func(a, b T) int {
		was, is := a.conditions(), b.conditions()
		return cmp.Or(cmp.Compare(was.Date, is.Date), was.Began.Compare(is.Began))
	})
	return have
}
