package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/internal/sums"
)

// armModule is the path of the generated main module. Like all paths in its go.mod, it is the same for every arm.
const armModule = "relapse.invalid/arm"

// kubernetes is the path of Kubernetes' module. Its staging modules are published at v0.Y.Z, and its programs are
// stamped with their version.
const kubernetes = "k8s.io/kubernetes"

// generated describes what was done to the source in order to generate the arm's module.
type generated struct {
	sites   []mutate.Site
	changes []string
	copied  []string // required modules that are replaced by mutated copies
	own     []string // the other modules of the source's repository, sorted
}

// locate returns the directory of the source's module. It downloads the module if Go's module cache lacks it.
func (b *Builder) locate(ctx context.Context, src Source) (string, error) {
	if src.Dir != "" {
		return filepath.Abs(src.Dir)
	}
	at := src.Module + "@" + src.Version
	if src.Fork != "" {
		at = src.Fork
	}
	// The working directory must not be inside another module, whose go.mod would have an effect. The cache's directory
	// is not inside any.
	out, err := b.run(
		ctx,
		command{dir: b.Cache.Dir(), args: []string{"mod", "download", "-json", at},
			stage: "fetching " + at},
	)
	if err != nil {
		// With -json, the reason is in the output that run leaves out. The plain form prints the reason.
		if _, plain := b.run(ctx, command{dir: b.Cache.Dir(), args: []string{"mod", "download", at}}); plain != nil {
			err = plain
		}
		return "", err
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil || m.Dir == "" {
		return "", fmt.Errorf("reading where go put %s from %q: %w", at, out, err)
	}
	return m.Dir, nil
}

// generate writes the arm's module to work: go.mod, go.sum, and the copied and mutated source under src/.
func (b *Builder) generate(ctx context.Context, src Source, work string) (generated, error) {
	root, err := b.locate(ctx, src)
	if err != nil {
		return generated{}, err
	}
	mutations, required, err := partMutations(src, root)
	if err != nil {
		return generated{}, err
	}
	rewritten, err := mutate.Rewrite(
		mutate.Module{Path: src.Module, Version: src.Version, FS: os.DirFS(root)},
		mutations,
	)
	if err != nil {
		return generated{}, err
	}
	to := filepath.Join(work, "src")
	if err := copyTree(ctx, root, to, src.Dir == ""); err != nil {
		return generated{}, fmt.Errorf(
			"copying the source of %s@%s: %w",
			src.Module,
			src.Version,
			err,
		)
	}
	if err := rewritten.WriteTo(to); err != nil {
		return generated{}, err
	}
	mod, own, changes, err := armMod(src, root)
	if err != nil {
		return generated{}, err
	}
	if err := os.WriteFile(filepath.Join(work, "go.mod"), mod, 0o644); err != nil {
		return generated{}, fmt.Errorf("writing the generated go.mod: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a module without requirements has none
		return generated{}, fmt.Errorf(
			"reading go.sum of %s@%s: %w",
			src.Module,
			src.Version,
			err,
		)
	}
	if err := os.WriteFile(filepath.Join(work, "go.sum"), sum, 0o644); err != nil {
		return generated{}, fmt.Errorf("writing the generated go.sum: %w", err)
	}
	sites, said, err := b.mutateRequired(ctx, src, work, required)
	if err != nil {
		return generated{}, err
	}
	sites, changes = append(rewritten.Sites, sites...), append(changes, said...)
	for _, s := range sites {
		changes = append(changes, fmt.Sprintf("%s at %s:%d", s.Kind, s.File, s.Line))
	}
	return generated{
		sites:   sites,
		changes: changes,
		own:     own,
		copied:  slices.Sorted(maps.Keys(required)),
	}, nil
}

// armMod returns the generated main module's go.mod. It has the subject's requirements, Go version, GODEBUG settings
// and replacements, with local directories replaced by published versions. It replaces the subject itself by its copy.
// armMod also returns the modules of the local directories, and what was changed.
func armMod(src Source, root string) (text []byte, own, changed []string, err error) {
	file := filepath.Join(root, "go.mod")
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, nil, fmt.Errorf(
			"reading go.mod of %s@%s: %w",
			src.Module,
			src.Version,
			err,
		)
	}
	from, err := modfile.Parse(file, b, nil)
	if err != nil {
		return nil, nil, nil, fmt.Errorf(
			"parsing go.mod of %s@%s: %w",
			src.Module,
			src.Version,
			err,
		)
	}
	if from.Module == nil || from.Module.Mod.Path != src.Module {
		return nil, nil, nil, fmt.Errorf("%s is not the go.mod of %s", file, src.Module)
	}
	published, err := publishedVersions(src, root, from)
	if err != nil {
		return nil, nil, nil, err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "module %s\n\n", armModule)
	if from.Go != nil {
		fmt.Fprintf(&out, "go %s\n\n", from.Go.Version)
	}
	for _, g := range from.Godebug {
		fmt.Fprintf(&out, "godebug %s=%s\n", g.Key, g.Value)
	}
	fmt.Fprintf(&out, "require %s %s\n", src.Module, src.Version)
	treated := slices.Concat(raise(from), redirect(from))
	for _, r := range from.Require {
		fmt.Fprintf(&out, "require %s %s\n", r.Mod.Path, r.Mod.Version)
	}
	fmt.Fprintf(&out, "replace %s => ./src\n", src.Module)
	replaced, err := replacements(src, from, published)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, r := range from.Replace {
		if src.Replace[r.Old.Path] != "" {
			continue
		}
		target := r.New.Path + " " + r.New.Version
		if p, local := published[r.Old.Path]; local {
			target = p
		}
		fmt.Fprintf(&out, "replace %s %s => %s\n", r.Old.Path, r.Old.Version, target)
	}
	for _, module := range slices.Sorted(maps.Keys(src.Replace)) {
		fmt.Fprintf(&out, "replace %s => %s %s\n", module, module, src.Replace[module])
	}
	mod, err := modfile.Parse("go.mod", []byte(out.String()), nil)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("generating go.mod for %s@%s: %w", src.Module, src.Version, err)
	}
	mod.Cleanup()
	if text, err = mod.Format(); err != nil {
		return nil, nil, nil, fmt.Errorf(
			"generating go.mod for %s@%s: %w",
			src.Module,
			src.Version,
			err,
		)
	}
	return text, slices.Sorted(maps.Keys(published)), slices.Concat(changes(src, published), treated, replaced), nil
}

// replacements says which versions the source is built with in place of which others. A module that the go.mod doesn't
// require is an error, because nothing would be replaced. published holds what the modules of its own repository are
// replaced by otherwise.
func replacements(
	src Source,
	mod *modfile.File,
	published map[string]string,
) (said []string, err error) {
	for _, module := range slices.Sorted(maps.Keys(src.Replace)) {
		i := slices.IndexFunc(
			mod.Require,
			func(r *modfile.Require) bool { return r.Mod.Path == module },
		)
		if i < 0 {
			return nil, fmt.Errorf(
				"the go.mod of %s doesn't require %s, which is to be replaced by %s",
				src.Module,
				module,
				src.Replace[module],
			)
		}
		instead := mod.Require[i].Mod.Version
		if _, version, ok := strings.Cut(published[module], " "); ok {
			instead = version
		}
		said = append(said, fmt.Sprintf("%s %s in place of %s", module, src.Replace[module], instead))
	}
	return said, nil
}

// publishedVersions returns what replaces each module that the subject takes from a directory of its own repository.
func publishedVersions(src Source, root string, mod *modfile.File) (map[string]string, error) {
	required := map[string]string{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	out := map[string]string{}
	for _, r := range mod.Replace {
		if r.New.Version != "" {
			continue
		}
		dir := under(root, r.New.Path)
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && src.Dir != "" {
			if !addressed(root, dir) { // otherwise a change in it would go unnoticed
				return nil, &TreeError{
					fmt.Errorf(
						"%s replaces %s by %s, which is not in its tree, and it can't be built in "+
							"place: move that module into the tree",
						filepath.Join(root, "go.mod"),
						r.Old.Path,
						r.New.Path,
					),
				}
			}
			out[r.Old.Path] = modfile.AutoQuote(dir) // a whole checkout has the directory itself
			continue
		}
		version := required[r.Old.Path]
		if version == "" || strings.HasPrefix(version, "v0.0.0") {
			if version == "" && src.Module != kubernetes {
				// Nothing may need the module: etcd forbids modules by replacing them by a directory that doesn't
				// exist. This directory doesn't exist either.
				out[r.Old.Path] = "./src/" + strings.TrimPrefix(r.New.Path, "./")
				continue
			}
			if src.Module != kubernetes {
				return nil, fmt.Errorf(
					"%s@%s replaces %s by the directory %s: its published version is not known",
					src.Module,
					src.Version,
					r.Old.Path,
					r.New.Path,
				)
			}
			v, err := semver.ParseTolerant(src.Version)
			if err != nil {
				return nil, fmt.Errorf(
					"parsing version %q of %s: %w",
					src.Version,
					src.Module,
					err,
				)
			}
			v.Major, v.Build = 0, nil
			version = "v" + v.String()
		}
		out[r.Old.Path] = r.Old.Path + " " + version
	}
	return out, nil
}

// addressed reports whether sums.Tree covers a directory's contents: the directory lies in the tree, not only by a link,
// and isn't left out.
func addressed(root, dir string) bool {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	rel, err := filepath.Rel(root, dir)
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return err == nil && filepath.IsLocal(rel) && !sums.LeftOut(first)
}

// changes describes how any build of the source differs from its publisher's, one sentence each. published holds what
// replaces the modules of the source's own repository.
func changes(src Source, published map[string]string) []string {
	what := "a copy of the module"
	if src.Fork != "" {
		what = fmt.Sprintf("a copy of %s, in place of %s %s", src.Fork, src.Module, src.Version)
	}
	out := []string{"built from " + what + ", with -trimpath, " + src.linking() + ", symbols kept and DWARF left out"}
	byVersion := map[string]int{}
	for module, target := range published {
		if _, version, ok := strings.Cut(target, " "); ok && src.Replace[module] == "" {
			byVersion[version]++
		}
	}
	for _, v := range slices.Sorted(maps.Keys(byVersion)) {
		out = append(
			out,
			fmt.Sprintf("%d modules of its own repository come from their published version %s",
				byVersion[v], v),
		)
	}
	if s := stamps(src); len(s) > 0 {
		out = append(out, fmt.Sprintf("stamped with version %s by linker flags", src.Version))
	}
	for _, pkg := range src.Unoptimized {
		out = append(
			out,
			pkg+" compiled without optimization (-N), so that what its functions refer to stays reachable as long as "+
				"they run",
		)
	}
	return out
}

// resolve lists every package that the given ones need. That downloads missing modules and completes go.sum.
func (b *Builder) resolve(
	ctx context.Context,
	src Source,
	work string,
	packages []string,
) ([]string, error) {
	fetched := 0
	args := append([]string{"list", "-mod=mod", "-deps", "-f", "{{.ImportPath}}"}, packages...)
	out, err := b.run(ctx, command{
		dir: work, args: args,
		stage: fmt.Sprintf("resolving the modules of %s@%s", src.Module, src.Version),
		line: func(l string) {
			if strings.HasPrefix(l, "go: downloading ") {
				fetched++
			}
		},
		detail: func() string { return fmt.Sprintf("%d modules fetched", fetched) },
	})
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}
