package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/version"
)

// bundles holds the bundles to judge. They are those of a run, which are compared with its index and its plan, or a
// single bundle.
type bundles struct {
	dirs  []string     // the directories of the bundles, in the order of their ids
	index bundle.Index // of a run; empty for a single bundle
	plan  *plan.Plan   // of a run; nil for a single bundle
	alone *plan.Plan   // of a single bundle
	cut   string       // why there are fewer trials than were planned, "" if there are not
}

// openBundles finds the bundles in a run's directory, or takes dir as a single bundle. It refuses a run without its
// plan or its index, and one that lacks a finished trial or has a trial that the index doesn't list. A run that was
// killed has the trials that were finished by then.
func openBundles(dir string) (bundles, error) {
	if IsTrial(dir) {
		return bundles{dirs: []string{dir}}, nil
	}
	e := bundles{}
	var err error
	e.index, err = bundle.ReadIndex(dir)
	names, none := trialsIn(dir)
	if none != nil && !(errors.Is(none, errNoTrial) && len(e.index.Lost) > 0) {
		return bundles{}, none
	}
	if errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf(
			"its %s is gone, or an older relapse made it: nothing says which trials belong to it; a "+
				"single trial can still be judged",
			bundle.IndexFile,
		)
	} else if err != nil {
		return e, fromOtherVersion(err, "")
	}
	if e.plan, err = planOf(dir, e.index); err != nil {
		return e, err
	}
	if err := checkHistory(dir, e.index); err != nil {
		return e, err
	}
	return e, e.find(dir, names)
}

// errNoTrial says that a directory has no trial. A run whose trials were all lost has none either.
var errNoTrial = errors.New("it holds no trial")

// trialsIn returns the names of the directories of a run's trials.
func trialsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, trialsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", errNoTrial, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing its trials: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			return nil, fmt.Errorf("%s/%s is no trial's directory", trialsDir, e.Name())
		}
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return nil, errNoTrial
	}
	return names, nil
}

// planOf reads the run's plan. Its SHA-256 must be the one that the index has.
func planOf(dir string, x bundle.Index) (*plan.Plan, error) {
	b, err := os.ReadFile(filepath.Join(dir, bundle.PlanFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf(
			"its %s is gone: nothing says which trials there should be",
			bundle.PlanFile,
		)
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != x.Plan {
		return nil, fmt.Errorf(
			"its %s is not the one that the run was made by: SHA-256 %x, and %s says %.12s",
			bundle.PlanFile,
			sum[:6],
			bundle.IndexFile,
			x.Plan,
		)
	}
	p, err := plan.Read(b)
	if err != nil {
		return nil, fromOtherVersion(
			fmt.Errorf("reading %s: %w", bundle.PlanFile, err),
			x.Relapse,
		)
	}
	return p, nil
}

// find compares the trials on disk with the index and the plan, and sets dirs and cut.
func (e *bundles) find(dir string, names []string) error {
	for _, name := range names {
		at := filepath.Join(dir, trialsDir, name)
		entry := e.index.Trial(name)
		if entry == nil {
			return fmt.Errorf(
				"%s/%s is not listed in %s: %s",
				trialsDir,
				name,
				bundle.IndexFile,
				e.origin(at),
			)
		}
		sum, err := bundle.ManifestSum(at)
		if err != nil {
			return err
		}
		if sum == "" && entry.Manifest == "" && !e.index.Complete {
			continue // this trial was under way when the run was killed: it is no evidence
		}
		e.dirs = append(e.dirs, at)
	}
	for _, t := range e.index.Trials {
		if t.Manifest != "" && !slices.Contains(names, t.ID) {
			return fmt.Errorf(
				"trial %s is gone: %s lists it, sealed with the manifest %.12s",
				t.ID,
				bundle.IndexFile,
				t.Manifest,
			)
		}
	}
	if len(e.dirs) == 0 && len(e.index.Lost) == 0 {
		return errors.New("no trial of it was sealed before it was cut short")
	}
	if e.index.Complete {
		return e.complete(names)
	}
	e.cut = fmt.Sprintf(
		"the run was cut short, or isn't over: %d of %d trials were sealed",
		len(e.dirs),
		len(e.plan.Trials),
	)
	if e.plan.Until != nil {
		e.cut = fmt.Sprintf(
			"the run was cut short, or isn't over: %d trials were sealed",
			len(e.dirs),
		)
	}
	return nil
}

// complete returns an error if a planned trial has no bundle.
func (e *bundles) complete(names []string) error {
	for _, t := range e.plan.Trials {
		lost := slices.ContainsFunc(
			e.index.Lost,
			func(l bundle.LostTrial) bool { return l.ID == t.ID },
		)
		if !slices.Contains(names, t.ID) && !lost {
			return fmt.Errorf("its plan has a trial %s and there is no bundle of it", t.ID)
		}
	}
	return nil
}

// origin says, as far as can be told, where a trial comes from that the index doesn't list.
func (e *bundles) origin(dir string) string {
	b, err := bundle.Open(dir)
	if err != nil {
		return err.Error()
	}
	if d := e.differs(b.World()); d != "" {
		return "it is no trial of this run: " + d
	}
	return "the run made no such trial"
}

// bind returns an error if a bundle doesn't belong to the run.
func (e *bundles) bind(name string, b *bundle.Sealed, p plan.Plan) error {
	if e.plan == nil {
		return nil
	}
	if d := e.differs(b.World()); d != "" {
		return fmt.Errorf("it is no trial of this run: %s", d)
	}
	if id := p.Trials[0].ID; id != name {
		return fmt.Errorf("it is trial %s in the place of trial %s", id, name)
	}
	if err := e.follows(name, p); err != nil {
		return err
	}
	entry := e.index.Trial(name)
	if entry.Manifest == "" { // the run was killed between the sealing of the trial and its entry
		entry.Manifest = b.ManifestSum()
	}
	if entry.Manifest != b.ManifestSum() {
		return fmt.Errorf(
			"it is not the trial that was sealed: its manifest has SHA-256 %.12s, and %s says %.12s%s",
			b.ManifestSum(),
			bundle.IndexFile,
			entry.Manifest,
			otherArms(*entry, b.World()),
		)
	}
	return nil
}

// differs says in what the run, plan and scenario of a trial differ from those of this run, "" if they are the same.
func (e *bundles) differs(w bundle.World) string {
	var out []string
	for _, d := range []struct{ what, its, ours string }{
		{"run", w.Run, e.index.Run}, {"plan", w.Plan, e.index.Plan}, {"scenario", w.Scenario, e.index.Scenario},
	} {
		if d.its != d.ours {
			out = append(
				out,
				fmt.Sprintf("its %s is %.20q, and this run's %.20q", d.what, d.its, d.ours),
			)
		}
	}
	return strings.Join(out, "; ")
}

// otherArms names the arms of a trial whose binary is not the one that the run's index lists.
func otherArms(entry bundle.IndexedTrial, w bundle.World) string {
	var out string
	for _, c := range w.Arms {
		differs := func(name, digest string) {
			if want := entry.Arms[name]; want != digest {
				out += fmt.Sprintf(
					"; its arm %s is the binary %.12s, and was %.12s",
					name,
					digest,
					want,
				)
			}
		}
		differs(c.Arm, c.Digest)
		for i, b := range c.Before {
			differs(bundle.EarlierName(c.Arm, i), b.Digest)
		}
	}
	return out
}

// checkHistory returns an error if a run lacks a trial that the history lists. The history is the ledger in the folder
// in which the run's directory lies; a run that was copied elsewhere has none there.
func checkHistory(dir string, x bundle.Index) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(real), history.File)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	entries, _, err := history.Read(path)
	if err != nil {
		return err
	}
	for _, was := range entries {
		if was.Run != filepath.Base(real) || was.Manifest == "" {
			continue
		}
		if is := x.Trial(was.Trial); is == nil || is.Manifest != was.Manifest {
			return fmt.Errorf(
				"the ledger %s has a trial %s of this run, sealed with the manifest %.12s, and %s "+
					"doesn't",
				history.File,
				was.Trial,
				was.Manifest,
				bundle.IndexFile,
			)
		}
	}
	return nil
}

// fromOtherVersion adds to a decoding error which version wrote the file. The program may be too old for the file, and
// an older program must not ignore what it doesn't know.
func fromOtherVersion(err error, maker string) error {
	if maker == "" {
		maker = "of an unknown version"
	}
	return fmt.Errorf(
		"%w; it was written by relapse %s, and this is relapse %s, which may be older",
		err,
		maker,
		version.Relapse(),
	)
}
