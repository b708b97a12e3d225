package match

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/stored"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// maxOurs bounds the bytes that are unpacked to copy bundles of relapse's own out of archives.
const maxOurs = 4 << 30

// ours opens the bundles of relapse's own that were found, and drops what was read of their files as foreign evidence.
// A bundle in an archive is copied to a temporary folder first: its manifest covers files as they are, and each of them
// is looked up.
func (e *evidence) ours(ctx context.Context, paths []string) error {
	if len(e.bundles) == 0 {
		return nil
	}
	e.sources = slices.DeleteFunc(e.sources, func(s *source) bool { return e.inside(s.path) })
	e.objects = slices.DeleteFunc(e.objects, func(o object) bool { return e.inside(o.path) })
	e.warnings = slices.DeleteFunc(e.warnings, func(w Warning) bool { return e.inside(w.Path) })
	e.restarts = slices.DeleteFunc(e.restarts, func(r Restart) bool { return e.inside(r.Path) })
	e.inputs = slices.DeleteFunc(e.inputs, func(i Input) bool { return e.inside(i.Path) })
	e.problems = slices.DeleteFunc(
		e.problems,
		func(p archive.Problem) bool { return e.inside(p.Path) },
	)
	packed := slices.DeleteFunc(slices.Clone(e.bundles), onDisk)
	tmp := ""
	if len(packed) > 0 {
		var err error
		if tmp, err = e.unpack(ctx, packed, paths); err != nil {
			return err
		}
	}
	for _, dir := range e.bundles {
		if strings.HasPrefix(dir, "stdin/") {
			e.problems = append(e.problems, archive.Problem{
				Path:    dir,
				Message: "a bundle of relapse's own can't be read from standard input: name its file",
			})
			continue
		}
		at := dir
		if slices.Contains(packed, dir) {
			at = filepath.Join(tmp, fmt.Sprint(slices.Index(packed, dir)))
		}
		if err := e.trial(at, dir); err != nil {
			e.problems = append(
				e.problems,
				archive.Problem{Path: dir, Message: strings.ReplaceAll(err.Error(), at, dir)},
			)
		}
	}
	return nil
}

// inside reports whether a file belongs to a bundle that was found, or is the plan or a report of its run. Those tell
// the same as the bundle.
func (e *evidence) inside(p string) bool {
	return slices.ContainsFunc(e.bundles, func(dir string) bool {
		trials := path.Dir(dir)
		return strings.HasPrefix(p, dir+"/") ||
			path.Base(trials) == "trials" && path.Dir(p) == path.Dir(trials)
	})
}

// onDiskBelow finds bundles in a folder before any of it is read, because a manifest comes after the files that it
// lists.
func onDiskBelow(dir string) (out []string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error { // the walk that reads reports errors
		if err == nil && d.Name() == bundle.ManifestFile && d.Type().IsRegular() {
			if b, err := os.ReadFile(p); err == nil && bytes.Contains(b[:min(len(b), 4<<10)], []byte(bundle.ManifestSchema)) {
				out = append(out, path.Dir(filepath.ToSlash(p)))
			}
		}
		return nil
	})
	return out
}

func onDisk(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, bundle.ManifestFile))
	return err == nil
}

// unpack copies bundles out of archives to a temporary folder, each to a subfolder named by its index.
func (e *evidence) unpack(ctx context.Context, bundles, paths []string) (string, error) {
	tmp, err := os.MkdirTemp("", "relapse-match-*")
	if err != nil {
		return "", err
	}
	e.close = func() { os.RemoveAll(tmp) }
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return "", err
	}
	defer root.Close()
	paths = slices.DeleteFunc(
		slices.Clone(paths),
		func(p string) bool { return p == archive.Stdin },
	)
	of := func(p string) int {
		return slices.IndexFunc(
			bundles,
			func(dir string) bool { return strings.HasPrefix(p, dir+"/") },
		)
	}
	o := archive.Options{Limits: archive.Default, AsIs: func(p string) bool { return of(p) >= 0 }}
	o.Limits.Total = maxOurs
	_, err = archive.Walk(ctx, paths, o, func(f archive.Entry) error { // the first walk reported its problems
		i := of(f.Path)
		if i < 0 {
			return nil
		}
		to := path.Join(fmt.Sprint(i), strings.TrimPrefix(f.Path, bundles[i]+"/"))
		if err := root.MkdirAll(path.Dir(to), 0o700); err != nil {
			return err
		}
		out, err := root.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, f)
		return errors.Join(err, out.Close())
	})
	return tmp, err
}

// trial makes a subject of each arm of a bundle of relapse's own.
func (e *evidence) trial(dir, place string) error {
	b, err := bundle.Open(dir)
	if err != nil {
		return err
	}
	var plan struct {
		Scenario string `json:"scenario"`
		Trials   []struct {
			Subject string         `json:"subject"`
			Arms    []scenario.Arm `json:"arms"`
		} `json:"trials"`
	}
	raw, err := stored.Convert(stored.Plan, b.PlanJSON())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &plan); err != nil || len(plan.Trials) != 1 {
		return errors.New("its plan isn't there, so that it isn't known what its arms are")
	}
	t := &Trial{Dir: dir, Place: place, Scenario: plan.Scenario, Subject: plan.Trials[0].Subject}
	for _, c := range plan.Trials[0].Arms {
		s := &subject{
			component: t.Subject,
			owner:     owner{t.Subject, "the trial's plan"},
			place:     place + ", arm " + c.Name,
			versions: union(
				nil,
				c.Source.Version,
			),
			arm:  c.Name,
			view: bundleArm{View: b, arm: c.Name},
		}
		switch src := c.Source; {
		case len(src.Mutations) > 0:
			s.changed = "mutated " + src.Mutations[0].Kind
		case len(src.Before) > 0:
			s.changed = "upgraded in mid-trial"
		case !src.Published():
			s.changed, s.fixture = "not a published source", c.Source.Fixture != ""
		}
		e.trials, t.arms = append(e.trials, s), append(t.arms, s)
	}
	e.bundled = append(e.bundled, t)
	e.inputs = append(
		e.inputs,
		Input{place, fmt.Sprintf("relapse bundle with %d arms", len(plan.Trials[0].Arms)), ""},
	)
	return nil
}
