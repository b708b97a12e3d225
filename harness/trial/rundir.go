package trial

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/version"
)

// RunDir is a run's directory: its plan, its trials' bundles and the index that lists them. Parallel trials may share
// it.
type RunDir struct {
	dir string

	mu    sync.Mutex
	index bundle.Index
}

// CreateRunDir creates a run's directory, with its plan and an empty index. run is the name that the trials give the
// run.
func CreateRunDir(dir, run string, p *plan.Plan) (*RunDir, error) {
	raw, err := plan.Encode(p)
	if err != nil {
		return nil, err
	}
	sum, err := plan.Sum(p)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := renameio.WriteFile(filepath.Join(dir, bundle.PlanFile), raw, 0o644); err != nil {
		return nil, err
	}
	d := &RunDir{
		dir: dir,
		index: bundle.Index{Run: run, Plan: sum, Scenario: p.Digest, Relapse: version.Relapse(),
			Trials: []bundle.IndexedTrial{}},
	}
	return d, d.index.Write(dir)
}

// OpenRunDir opens a run's directory that CreateRunDir created, so that its run goes on.
func OpenRunDir(dir string) (*RunDir, error) {
	x, err := bundle.ReadIndex(dir)
	return &RunDir{dir: dir, index: x}, err
}

// Has reports whether the run has the sealed bundle of a trial.
func (d *RunDir) Has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.index.Trial(id)
	return t != nil && t.Manifest != ""
}

// Lost reports whether the run has noted down that a trial left no bundle.
func (d *RunDir) Lost(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.index.Lost, func(t bundle.LostTrial) bool { return t.ID == id })
}

// Settled returns the ids of the trials of which nothing more is awaited: those with a sealed bundle, and those that are
// lost.
func (d *RunDir) Settled() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]bool{}
	for _, t := range d.index.Trials {
		if t.Manifest != "" {
			out[t.ID] = true
		}
	}
	for _, t := range d.index.Lost {
		out[t.ID] = true
	}
	return out
}

// Adopt takes the sealed bundle of a trial that was made elsewhere into the run. The bundle lies at from, on the same
// disk, and is verified. A bundle of another run or plan is refused, and so is a second one of the same trial.
func (d *RunDir) Adopt(id, pair, from string) error {
	b, err := bundle.Open(from)
	if err != nil {
		return err
	}
	w := b.World()
	if mine := d.bind(w); w.Run != mine.Run || w.Plan != mine.Plan {
		return fmt.Errorf(
			"the bundle is of trial %s of the run %s with the plan %.12s, and this is the run %s with the plan %.12s",
			id,
			w.Run,
			w.Plan,
			mine.Run,
			mine.Plan,
		)
	}
	if d.Has(id) {
		return fmt.Errorf("the run has a bundle of trial %s already", id)
	}
	if err := os.MkdirAll(filepath.Dir(d.Trial(id)), 0o755); err != nil {
		return err
	}
	if err := d.begin(bundle.IndexedTrial{ID: id, Pair: pair, Arms: w.ArmDigests()}); err != nil {
		return err
	}
	if err := os.Rename(from, d.Trial(id)); err != nil {
		return err
	}
	return d.sealed(id)
}

// Lose records that a trial left no bundle, and why.
func (d *RunDir) Lose(t bundle.LostTrial) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index.Lost = append(d.index.Lost, t)
	slices.SortFunc(
		d.index.Lost,
		func(a, b bundle.LostTrial) int { return cmp.Compare(a.ID, b.ID) },
	)
	return d.index.Write(d.dir)
}

// LeaveOut records a trial that the rule of an open-ended run no longer asked for.
func (d *RunDir) LeaveOut(t bundle.BeyondTrial) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index.Beyond = append(slices.DeleteFunc(d.index.Beyond, func(had bundle.BeyondTrial) bool { return had.ID == t.ID }), t)
	slices.SortFunc(d.index.Beyond, func(a, b bundle.BeyondTrial) int { return cmp.Compare(a.ID, b.ID) })
	return d.index.Write(d.dir)
}

// Path returns the path of the directory.
func (d *RunDir) Path() string { return d.dir }

// Trial returns the path of a trial's bundle.
func (d *RunDir) Trial(id string) string { return filepath.Join(d.dir, "trials", id) }

// begin adds a trial to the index before anything of the trial is recorded.
func (d *RunDir) begin(t bundle.IndexedTrial) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index.Trials = slices.DeleteFunc(
		d.index.Trials,
		func(had bundle.IndexedTrial) bool { return had.ID == t.ID && had.Manifest == "" },
	)
	d.index.Trials = append(d.index.Trials, t)
	slices.SortFunc(
		d.index.Trials,
		func(a, b bundle.IndexedTrial) int { return cmp.Compare(a.ID, b.ID) },
	)
	return d.index.Write(d.dir)
}

// sealed adds the checksum of a finished trial's manifest to the index. A trial that broke off has none.
func (d *RunDir) sealed(id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.index.Trial(id)
	if t == nil {
		return errors.New("trial " + id + " ended and never began")
	}
	var err error
	if t.Manifest, err = bundle.ManifestSum(d.Trial(id)); err != nil {
		return err
	}
	return d.index.Write(d.dir)
}

// Complete records that no further trial follows.
func (d *RunDir) Complete() error {
	d.index.Complete = true
	return d.index.Write(d.dir)
}

// bind adds the run's name, plan and scenario to the facts that a trial records.
func (d *RunDir) bind(w bundle.World) bundle.World {
	w.Run, w.Plan, w.Scenario = d.index.Run, d.index.Plan, d.index.Scenario
	return w
}
