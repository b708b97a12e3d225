package campaign

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// SummaryFile is the name of the campaign's summary in the folder of run directories. Resume reads it.
const SummaryFile = "nightly.json"

// SummarySchema is the value of the schema field of SummaryFile.
const SummarySchema = "relapse.dev/nightly/v1alpha1"

// What became of a unit.
const (
	Done    = "done"    // there is a verdict, whichever it is
	Failed  = "failed"  // relapse failed, and there is no verdict
	NotDone = "notDone" // it had no time, or not enough
	Skipped = "notRun"  // it can't be run as was asked; only listed, and no part of the verdict
)

// Summary is the content of nightly.json. Seconds covers all parts of a campaign that was resumed.
type Summary struct {
	Schema    string             `json:"schema"`
	StartedAt time.Time          `json:"startedAt"`
	EndedAt   time.Time          `json:"endedAt"` // when it was last changed
	Relapse   string             `json:"relapse"`
	Verdict   verdict.Verdict    `json:"verdict"` // of the first unit whose exit code outranks the others
	ExitCode  int                `json:"exitCode"`
	Units     []Result           `json:"units"`
	Seconds   map[string]float64 `json:"secondsByScenario"`
	Pruned    []string           `json:"pruned,omitempty"` // run directories that were removed to bound the disk
}

// Result is what became of one unit.
type Result struct {
	Scenario string       `json:"scenario"`
	Pair     string       `json:"pair"`
	Provider string       `json:"provider,omitempty"`
	Key      string       `json:"key,omitempty"` // SHA-256 of its plan: a unit with another plan is another unit
	Trials   int          `json:"trials"`
	Seed     int64        `json:"seed"`
	Status   string       `json:"status"`
	Why      string       `json:"why,omitempty"` // why it failed or is not done
	Verdict  string       `json:"verdict,omitempty"`
	Exit     int          `json:"exitCode"`
	Seconds  float64      `json:"seconds"`
	Build    float64      `json:"buildSeconds,omitempty"` // what was built before; only where all is built before anything runs
	Dir      string       `json:"dir,omitempty"`          // the run's directory, next to the summary
	Rates    []judge.Rate `json:"rates,omitempty"`
}

func (r Result) describe() string {
	took := (time.Duration(r.Seconds * float64(time.Second))).Round(time.Second)
	if r.Status == Done {
		return fmt.Sprintf("%s (exit %d) after %s", r.Verdict, r.Exit, took)
	}
	return fmt.Sprintf("%s after %s: %s", r.Status, took, r.Why)
}

// newResult returns what there is to say of a unit before it runs.
func newResult(u Unit) Result {
	return Result{Scenario: u.Plan.Scenario, Pair: u.Pair(), Provider: cmp.Or(u.Plan.Provider, providers.Kind), Key: u.key,
		Trials: len(u.Plan.Trials), Seed: u.Plan.Seed, Status: NotDone, Why: "its turn hasn't come", Exit: verdict.ExitInconclusive}
}

// begin returns a summary that lists every unit as not done, and writes it. A unit stays done if an earlier part of the
// campaign has done it with the same program and plan, and its verdict is still there.
func begin(o Options) (Summary, error) {
	s := Summary{Schema: SummarySchema, StartedAt: o.Now().UTC(), Relapse: o.Relapse}
	if len(o.Units) == 0 {
		return s, errors.New("the campaign has nothing to run")
	}
	earlier := Summary{}
	if o.Resume {
		var err error
		if earlier, err = ReadSummary(o.Out); err != nil {
			return s, err
		}
		if earlier.Relapse != o.Relapse {
			o.Say(
				fmt.Sprintf(
					"nothing is taken over: %s was written by %s, and this is %s",
					SummaryFile,
					earlier.Relapse,
					o.Relapse,
				),
			)
			earlier = Summary{}
		} else {
			s.StartedAt, s.Pruned = earlier.StartedAt, earlier.Pruned
		}
	}
	for _, u := range o.Units {
		r := newResult(u)
		for _, was := range earlier.Units {
			if was.Scenario != r.Scenario || was.Pair != r.Pair {
				continue
			}
			_, err := os.Stat(filepath.Join(o.Out, was.Dir, judge.VerdictFile))
			switch {
			case was.Key != r.Key:
				o.Say(u.name() + " is run again: its scenario, its options or its seed have changed")
			case was.Status == Done && err != nil:
				o.Say(fmt.Sprintf("%s is run again: %s has no verdict any more", u.name(), was.Dir))
			case was.Status == Done:
				r = was
			default:
				r.Seconds = was.Seconds
			}
		}
		s.Units = append(s.Units, r)
	}
	s.conclude(o.Now())
	return s, s.write(o.Out, SummaryFile)
}

// ReadSummary reads the summary in a folder of run directories.
func ReadSummary(out string) (Summary, error) {
	s, err := readSummary(filepath.Join(out, SummaryFile), SummarySchema)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("there is nothing to resume: %w", errors.Unwrap(err))
	}
	return s, err
}

func readSummary(path, schema string) (Summary, error) {
	var s Summary
	raw, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("reading the summary: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("reading %s: %w", path, err)
	}
	if s.Schema != schema {
		return s, fmt.Errorf("reading %s: schema is %q, want %q", path, s.Schema, schema)
	}
	return s, nil
}

// conclude sets the verdict and the sums over all units but those that were skipped. A unit that is not done is
// Inconclusive.
func (s *Summary) conclude(now time.Time) {
	var exits []int
	s.Seconds = map[string]float64{}
	for _, r := range s.Units {
		if r.Status == Skipped {
			continue
		}
		exits = append(exits, r.Exit)
		s.Seconds[r.Scenario] += r.Seconds
	}
	s.ExitCode, s.EndedAt = verdict.Combine(exits), now.UTC()
	for _, r := range s.Units {
		if r.Exit != s.ExitCode || r.Status == Skipped {
			continue
		}
		s.Verdict = verdict.Verdict(r.Verdict)
		if r.Status == NotDone {
			s.Verdict = verdict.VerdictInconclusive
		}
		break
	}
}

func (s *Summary) prune(o Options) error {
	if o.Prune == nil {
		return nil
	}
	var keep []string
	for _, r := range s.Units {
		if r.Dir != "" {
			keep = append(keep, r.Dir)
		}
	}
	removed, err := o.Prune(keep)
	s.Pruned = append(s.Pruned, removed...)
	if err != nil {
		return fmt.Errorf("pruning runs: %w", err)
	}
	return nil
}

// write writes the summary to a file in out, and one JUnit file for all units beside it.
func (s *Summary) write(out, file string) error {
	b, err := judge.JSON(file, s)
	if err != nil {
		return err
	}
	x, err := s.junit(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{report.JUnitFile, x}, {file, b}} {
		if err := renameio.WriteFile(filepath.Join(out, f.name), f.data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	return nil
}
