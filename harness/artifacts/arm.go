package artifacts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/internal/sums"
)

// buildArm builds one arm, or takes the executable that the arm's source gives. It does nothing if the arm was already
// built.
func (a *Artifacts) buildArm(ctx context.Context, arm scenario.Arm, subject string,
	constants []scenario.Constant) error {
	key := armKey(arm)
	if _, built := a.arms[key]; built {
		return nil
	}
	before, err := a.buildEarlier(ctx, arm, subject)
	if err != nil {
		return err
	}
	a.building.Lock()
	defer a.building.Unlock()
	b, err := a.get(ctx, arm, subject, constants)
	var failed *exec.ExitError
	var fetch *build.FetchError // the network's fault, not the candidate's
	if arm.Role == scenario.Candidate && !arm.Source.Given() && ctx.Err() == nil && errors.As(err, &failed) && !errors.As(err, &fetch) {
		return &candidate.Error{Given: describe(arm.Source), Err: err, Hint: "mend the source: it doesn't build"}
	}
	refused, lost := (*build.PatchError)(nil), (*build.TreeError)(nil)
	switch {
	case errors.As(err, &refused):
		return &candidate.Error{
			Given: describe(arm.Source),
			Err:   refused,
			Hint:  "relapse explain " + subject + " shows what the subject is built from",
		}
	case arm.Role == scenario.Candidate && errors.As(err, &lost):
		return &candidate.Error{
			Given: describe(arm.Source),
			Err:   lost,
			Hint:  "build the program as you do, and give it: bin:PATH",
		}
	case err != nil:
		return fmt.Errorf("arm %s: %w", arm.Name, err)
	}
	b.Before = before
	for i, one := range b.All()[1:] {
		if was := b.All()[i]; was.Digest == one.Digest {
			return fmt.Errorf(
				"arm %s: its build %d is the same program as its build %d (SHA-256 %.12s), so nothing would "+
					"be replaced",
				arm.Name,
				i+2,
				i+1,
				one.Digest,
			)
		}
	}
	a.arms[key] = b
	return nil
}

// get builds an arm, or takes its executable.
func (a *Artifacts) get(
	ctx context.Context,
	arm scenario.Arm,
	subject string,
	constants []scenario.Constant,
) (environment.Build, error) {
	switch {
	case arm.Source.Given():
		return a.given(ctx, arm, subject, constants)
	case arm.Source.Release != nil:
		return a.takePublished(ctx, arm, constants)
	}
	return a.build(ctx, arm, subject, constants)
}

// buildEarlier builds what an arm runs before its last build. Constants are those of the last build. The earlier builds
// of a candidate are the scenario's.
func (a *Artifacts) buildEarlier(
	ctx context.Context,
	arm scenario.Arm,
	subject string,
) (all []environment.Build, err error) {
	a.building.Lock()
	defer a.building.Unlock()
	sources := arm.Source.Builds()
	for i, src := range sources[:len(sources)-1] {
		one := scenario.Arm{
			Name:   fmt.Sprintf("%s, build %d", arm.Name, i+1),
			Role:   scenario.Fixed,
			Source: src,
		}
		b, err := a.get(ctx, one, subject, nil)
		if err != nil {
			return nil, fmt.Errorf("arm %s: %w", one.Name, err)
		}
		all = append(all, b)
	}
	return all, nil
}

// given takes an existing executable. Its constants can't be read.
func (a *Artifacts) given(ctx context.Context, arm scenario.Arm, subject string,
	_ []scenario.Constant) (b environment.Build, err error) {
	src := arm.Source
	b.Constants, b.Path = map[string]int64{}, src.Binary
	var from string
	switch {
	case src.Image != "":
		x, err := image.Extract(ctx, a.cache, a.engine, src.Image, subject)
		if err != nil {
			return b, err
		}
		b.Path, from = x.Path, fmt.Sprintf(
			"%s of image %s (%s), %s; it runs where the other arms do, and nothing "+
				"else of the image",
			x.At,
			src.Image,
			x.ID,
			x.How,
		)
	case src.NodeImage != "":
		x, err := image.Extract(
			ctx,
			a.cache,
			a.engine,
			src.NodeImage,
			subject,
			image.KubeletPlace,
		)
		if err != nil {
			return b, err
		}
		// Only the subject may differ between arms, so the image's container runtime is not used.
		b.Path, from = x.Path,
			fmt.Sprintf(
				"%s of node image %s (%s), %s; it runs in the node image of the other arms, and nothing else of "+
					"its own image is used",
				x.At,
				src.NodeImage,
				x.ID,
				x.How,
			)
	default:
		from = "an executable that was given: " + filepath.Base(src.Binary)
	}
	p, err := build.Inspect(ctx, b.Path, subject)
	if err != nil {
		return b, err
	}
	if b.Digest, err = sums.File(b.Path); err != nil {
		return b, err
	}
	b.GoVersion = p.Go
	b.Changes = append(b.Changes, from, aboutProgram(p))
	a.events.Say(event.Note, fmt.Sprintf("arm %s: %s, sha256 %.12s", arm.Name, from, b.Digest))
	return b, nil
}

// aboutProgram describes what an executable reports about its build.
func aboutProgram(p build.Program) string {
	about := []string{"how it was built is known only as far as it says so itself"}
	switch {
	case p.Version != "":
		about = append(about, "version "+p.Version)
	case p.Doubt != "":
		about = append(about, "its version is unknown: "+p.Doubt)
	}
	if p.Go != "" {
		about = append(about, strings.TrimSpace("by "+p.Go+" from "+p.Main))
	}
	if p.Loader != "" {
		about = append(
			about,
			"linked dynamically by "+p.Loader+" of the node image, where the other arms are static",
		)
	}
	return strings.Join(about, "; ")
}

// build builds an arm from source.
func (a *Artifacts) build(ctx context.Context, arm scenario.Arm, _ string,
	constants []scenario.Constant) (b environment.Build, err error) {
	from, err := a.resolve(arm.Source)
	if err != nil {
		return b, err
	}
	src := sourceOf(arm, from)
	b.Constants = map[string]int64{}
	if scenario.OwnFixture(from.Fixture) {
		sum, err := sums.Tree(from.Dir)
		if err != nil {
			return b, err
		}
		if sum != from.Tree {
			return b, fmt.Errorf(
				"the files in %s are others than when the run was planned",
				from.Dir,
			)
		}
		b.Changes = append(
			b.Changes,
			fmt.Sprintf(
				"built from %s in the scenario's folder, files with SHA-256 %s",
				from.Fixture,
				sum,
			),
		)
	}
	switch {
	case from.Patch != "":
		var p build.Patched
		if p, b.Changes, b.Diff, err = a.patchOf(ctx, from); err != nil {
			return b, err
		}
		src.Dir, src.Touches = p.Dir, p.Packages
	case isTree(arm, from):
		b.Changes, b.Local = stateOf(ctx, from.Dir)
	}
	for _, mu := range src.Mutations {
		if mu.Compresses() {
			b.Modelled = append(b.Modelled, mu.Label())
		}
	}
	refs := references(constants)
	if arm.Role != scenario.Candidate { // a candidate may lack one
		src.Constants = refs
	}
	began := time.Now()
	r, err := a.builder.Build(ctx, src)
	if err != nil {
		return b, err
	}
	if len(r.Binaries) != 1 {
		return b, fmt.Errorf(
			"building %s gave %d programs, want 1",
			from.Package,
			len(r.Binaries),
		)
	}
	b.Graph, b.GoVersion, b.Flags = r.GraphSum, r.GoVersion, r.Flags
	if isTree(arm, from) {
		a.trees[armKey(arm)] = r.Key
	}
	b.Changes = append(b.Changes, r.Changes...)
	if a.programs.From == plan.Built {
		b.Changes = append(b.Changes, a.programs.String())
	}
	for _, pkg := range from.Unoptimized {
		b.Modelled = append(
			b.Modelled,
			"for want of the compilers of the incident's time, the package "+pkg+" is compiled without "+
				"optimization, so that what its functions refer to stays reachable as it did then",
		)
	}
	for _, s := range r.Sites {
		b.Diff = append(b.Diff, s.Diff()...)
	}
	for _, bin := range r.Binaries {
		b.Path, b.Digest = bin.Path, bin.SHA256
	}
	for name, c := range r.Constants {
		b.Constants[name] = c.Int
	}
	if arm.Role == scenario.Candidate {
		if err := a.readConstants(ctx, src, refs, &b); err != nil {
			return b, err
		}
	}
	a.events.Say(
		event.Note,
		fmt.Sprintf("arm %s: %s of %s, sha256 %.12s, %s", arm.Name, filepath.Base(from.Package),
			describe(from), b.Digest, howLong(r.Cached, began)),
	)
	return b, nil
}

// sourceOf returns what to build for an arm, whose resolved source is from.
func sourceOf(arm scenario.Arm, from scenario.Source) build.Source {
	src := build.Source{Module: from.Module, Version: from.Version, Fork: from.Fork, Dir: from.Dir,
		InPlace:  isTree(arm, from) && len(arm.Source.Mutations)+len(from.Replace) == 0,
		Packages: []string{from.Package}, Replace: from.Replace, Unoptimized: from.Unoptimized, Race: from.Race}
	for _, m := range arm.Source.Mutations {
		src.Mutations = append(src.Mutations, mutate.Mutation(m))
	}
	return src
}

// isTree reports whether an arm is a source tree of the user's.
func isTree(arm scenario.Arm, from scenario.Source) bool {
	return arm.Role == scenario.Candidate && from.Dir != "" && from.Patch == "" &&
		arm.Source.Fixture == ""
}

// describe names the place that an arm is built from.
func describe(s scenario.Source) string {
	switch {
	case s.Patch != "":
		return s.Module + " " + s.Version + " with " + s.Change()
	case s.Commit != "":
		return s.Module + " at " + s.Change()
	case s.Dir != "":
		return s.Dir
	case s.Fork != "":
		return s.Fork
	}
	return s.Module + " " + s.Version
}

func references(constants []scenario.Constant) []build.ConstantRef {
	var out []build.ConstantRef
	for _, c := range constants {
		out = append(out, build.ConstantRef{Name: c.Name, Package: c.Package, Ident: c.Ident})
	}
	return out
}

// readConstants reads a source's constants one by one. A constant that can't be read, as a candidate may no longer have
// it, stays unknown; the others are read.
func (a *Artifacts) readConstants(ctx context.Context, src build.Source, refs []build.ConstantRef,
	b *environment.Build) error {
	for _, ref := range refs {
		src.Constants = []build.ConstantRef{ref}
		got, err := a.builder.Constants(ctx, src)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			b.Changes = append(b.Changes, fmt.Sprintf("its %s is not known: %v", ref.Name, err))
			continue
		}
		b.Constants[ref.Name] = got[ref.Name].Int
	}
	return nil
}

// stateOf returns a sentence about git's state of a tree, and the diff to its commit.
func stateOf(ctx context.Context, dir string) (said []string, diff []byte) {
	s, err := build.LookAt(ctx, dir)
	if err != nil {
		return []string{"what the tree was made from is not known: " + err.Error()}, nil
	}
	return []string{s.Sentence()}, s.Diff
}

func howLong(cached bool, began time.Time) string {
	if cached {
		return "from the cache"
	}
	return "built in " + time.Since(began).Round(time.Second).String()
}

// armKey returns the key of an arm, which covers everything that the arm is built from.
func armKey(a scenario.Arm) string {
	raw, err := json.Marshal(a.Source)
	if err != nil { // a Source is plain data
		panic(err)
	}
	return string(raw)
}
