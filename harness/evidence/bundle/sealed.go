package bundle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/stored"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Sealed is the View of a bundle whose manifest was verified.
type Sealed struct {
	dir       string
	artifacts []Artifact
	events    []event.Event
	world     World
	plan      []byte
	sum       string // of the manifest
	memory    memory
}

// Open verifies a sealed bundle and returns its view. The error is a *DamageError with all problems if a byte was
// changed, the manifest doesn't list a file, there is a link, a path leaves the directory, or the manifest is broken or
// missing. A listed artifact whose file is gone is marked Missing. A timeline or world whose file is gone is empty. The
// bundle may have been copied from elsewhere.
func Open(dir string) (*Sealed, error) {
	real, err := filepath.EvalSymlinks(dir) // runs/latest is a link; links within the bundle are refused
	if err != nil {
		return nil, fmt.Errorf("opening bundle: %w", err)
	}
	dir = real
	m, problem := readManifest(dir)
	if problem != "" {
		return nil, &DamageError{dir, []string{problem}}
	}
	s := &Sealed{dir: dir, artifacts: m.Artifacts}
	if _, s.sum, err = hashFile(filepath.Join(dir, ManifestFile)); err != nil {
		return nil, fmt.Errorf("opening bundle: %w", err)
	}
	here, problems := walk(dir)
	listed := map[string]bool{ManifestFile: true}
	verify := func(path string, size int64, sum string) (there bool) {
		if !filepath.IsLocal(filepath.FromSlash(path)) || filepath.ToSlash(filepath.Clean(path)) != path ||
			listed[path] {
			problems = append(
				problems,
				fmt.Sprintf(
					"%s lists the path %q, which is outside, unclean or listed twice",
					ManifestFile,
					path,
				),
			)
			return true
		}
		listed[path] = true
		if !here[path] {
			return false
		}
		haveSize, haveSum, err := hashFile(filepath.Join(dir, filepath.FromSlash(path)))
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case haveSize != size || haveSum != sum:
			problems = append(
				problems,
				fmt.Sprintf("%s was changed: SHA-256 %.12s… and %d bytes, want %.12s… and %d",
					path, haveSum, haveSize, sum, size),
			)
		}
		return true
	}
	for _, f := range m.Files {
		verify(f.Path, f.Size, f.SHA256)
	}
	for i, a := range s.artifacts {
		if a.Path != "" {
			s.artifacts[i].Missing = !verify(a.Path, a.Size, a.SHA256)
		}
	}
	for path := range here {
		if !listed[path] {
			problems = append(problems, path+" is not listed in "+ManifestFile)
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, &DamageError{dir, problems}
	}
	return s, s.load()
}

// walk returns the regular files below dir. Anything that is neither a file nor a directory is a problem.
func walk(dir string) (map[string]bool, []string) {
	here := map[string]bool{}
	var problems []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir():
		case d.Type().IsRegular():
			here[rel] = true
		case rel != ".":
			problems = append(problems, rel+" is a link or a special file")
		}
		return nil
	})
	if err != nil {
		problems = append(problems, err.Error())
	}
	return here, problems
}

// load reads the verified timeline, world and plan.
func (s *Sealed) load() error {
	b, err := readOptional(s.dir, TimelineFile)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, len(b)+1)
	for n := 1; lines.Scan(); n++ {
		var e event.Event
		line, err := stored.Convert(stored.Event, lines.Bytes())
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return &DamageError{
				s.dir,
				[]string{fmt.Sprintf("%s line %d: %v", TimelineFile, n, err)},
			}
		}
		s.events = append(s.events, e)
	}
	if b, err = readOptional(s.dir, WorldFile); err != nil {
		return err
	}
	if b != nil {
		if b, err = stored.Convert(stored.World, b); err != nil {
			return err
		}
		if err := kinds.DecodeStrictly(b, &s.world); err != nil { // verified bytes: this program doesn't know them all
			return fmt.Errorf("reading %s, which a newer relapse may have written: %w", WorldFile, err)
		}
	}
	s.plan, err = readOptional(s.dir, PlanFile)
	return err
}

func readOptional(dir, name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return b, nil
}

// PlanJSON returns the plan that the trial followed, as it was recorded; nil if its file is gone.
func (s *Sealed) PlanJSON() []byte { return bytes.Clone(s.plan) }

// ManifestSum returns the SHA-256 of the bundle's manifest, which identifies everything in the bundle.
func (s *Sealed) ManifestSum() string { return s.sum }

// Artifacts returns the artifacts that match, in order of time.
func (s *Sealed) Artifacts(q Query) []Artifact { return choose(s.artifacts, q) }

// Open opens an artifact for reading.
func (s *Sealed) Open(a Artifact) (io.ReadCloser, error) { return openArtifact(s.dir, a, 0, false) }

// Remember returns the result of grow, which is called once for each artifact and name.
func (s *Sealed) Remember(
	a Artifact,
	as string,
	grow func(any, io.Reader) (any, error),
) (any, error) {
	return s.memory.remember(s.dir, a, false, as, grow)
}

// Forget drops what Remember keeps. A later Remember computes it again.
func (s *Sealed) Forget() { s.memory.forget() }

// Phase returns when an arm's phase was seen to begin and end. A phase without an end, because the trial broke off,
// ends with the last event, so that a sealed bundle always gives the same answer.
func (s *Sealed) Phase(arm, phase string) (Window, bool) {
	w, ok := phaseOf(s.events, arm, phase)
	if ok {
		w.End = w.Until(s.events)
	}
	return w, ok
}

// Timeline returns the events.
func (s *Sealed) Timeline() []event.Event { return slices.Clone(s.events) }

// Constant returns a number of the arm's subject; false if the number isn't known.
func (s *Sealed) Constant(arm, name string) (int64, bool) { return constantOf(s.world, arm, name) }

// World returns the facts that were resolved at run time.
func (s *Sealed) World() World { return s.world }
