package campaign

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// PruneOptions limit how many run directories stay and how much disk they take up. A limit of zero is none.
type PruneOptions struct {
	KeepRuns     int           // runs of each scenario
	MaxDisk      int64         // bytes of all runs together
	KeepFindings time.Duration // how long a run that was not as expected stays, whatever the limits say
	Keep         []string      // names of run directories that stay
	Now          time.Time
}

// restOfUnfinished is how long a run without a verdict stays at least, because it may be under way.
const restOfUnfinished = 24 * time.Hour

// run is a run directory.
type run struct {
	name, scenario string
	began          time.Time
	judged         bool
	exit           int
	bytes          int64
}

// Prune removes run directories below out, oldest first, until there are at most KeepRuns of each scenario and they
// take up at most MaxDisk. It never removes the newest run of a scenario that has a verdict, a run in Keep, or a run
// that was not as expected and is younger than KeepFindings. If these alone take too much, over says by how many bytes.
// A run without a verdict is removed once it is a day old and older than KeepFindings. A directory without a plan of
// relapse is neither counted nor touched.
func Prune(out string, o PruneOptions) (removed []string, over int64, err error) {
	if o.KeepRuns == 0 && o.MaxDisk == 0 {
		return nil, 0, nil
	}
	runs, err := runsBelow(out)
	if err != nil {
		return nil, 0, err
	}
	var total int64
	left := map[string]int{}
	newest := map[string]string{}
	for _, r := range runs { // oldest first
		total += r.bytes
		if r.judged {
			left[r.scenario]++
			newest[r.scenario] = r.name
		}
	}
	for _, r := range runs {
		hold := o.KeepFindings
		if !r.judged {
			hold = max(hold, restOfUnfinished)
		}
		if r.name == newest[r.scenario] || slices.Contains(o.Keep, r.name) || r.exit != verdict.ExitOK &&
			o.Now.Sub(r.began) < hold {
			continue
		}
		if !r.judged || o.KeepRuns > 0 && left[r.scenario] > o.KeepRuns || o.MaxDisk > 0 && total > o.MaxDisk {
			if err := os.RemoveAll(filepath.Join(out, r.name)); err != nil {
				return removed, 0, fmt.Errorf("removing the run %s: %w", r.name, err)
			}
			removed = append(removed, r.name)
			total -= r.bytes
			if r.judged {
				left[r.scenario]--
			}
		}
	}
	if o.MaxDisk > 0 {
		over = max(total-o.MaxDisk, 0)
	}
	return removed, over, nil
}

// runsBelow lists the run directories in out, oldest first. Links don't count.
func runsBelow(out string) ([]run, error) {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var runs []run
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		r, ok := readRun(filepath.Join(out, e.Name()))
		if !ok {
			continue
		}
		if r.bytes, err = size(filepath.Join(out, e.Name())); err != nil {
			return nil, fmt.Errorf("measuring the run %s: %w", e.Name(), err)
		}
		runs = append(runs, r)
	}
	slices.SortFunc(
		runs,
		func(a, b run) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.name, b.name)) },
	)
	return runs, nil
}

// readRun returns the run in a directory, and whether the directory is a run's. It must have a plan of relapse, and its
// verdict, if it has one, must be of the same scenario.
func readRun(dir string) (run, bool) {
	var p plan.Plan
	path := filepath.Join(dir, bundle.PlanFile)
	if !readInto(path, &p) || p.Schema != plan.Schema || p.Scenario == "" {
		return run{}, false
	}
	r := run{name: filepath.Base(dir), scenario: p.Scenario, exit: verdict.ExitInconclusive}
	judged := filepath.Join(dir, judge.VerdictFile)
	if _, err := os.Lstat(judged); errors.Is(err, fs.ErrNotExist) {
		info, err := os.Lstat(path)
		if err != nil {
			return run{}, false
		}
		r.began = info.ModTime()
		return r, true
	}
	var v judge.Verdict
	if !readInto(judged, &v) || v.Schema != judge.Schema || v.Scenario != p.Scenario || v.StartedAt.IsZero() {
		return run{}, false
	}
	r.began, r.exit, r.judged = v.StartedAt, v.ExitCode, true
	return r, true
}

func readInto(path string, to any) bool {
	raw, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(raw, to) == nil
}

// size returns the bytes of all files in a directory.
func size(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	return bytes, err
}
