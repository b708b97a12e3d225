package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/internal/sums"
)

// This file builds a user's source tree in place, with the tree's own go.mod or go.work, and its vendor directory if it
// has one. It never writes into the tree. Toolchain, flags and stamps are those of every other arm.

// tree is a source tree that is built in place.
type tree struct {
	root string // directory of the subject's module
	work string // its go.work file; "" for none
	mod  string // value of -mod: readonly or vendor
}

// env returns the environment that points the go command at the tree's own workspace.
func (t tree) env() []string {
	if t.work == "" {
		return nil // GOWORK=off, as for every call
	}
	return []string{"GOWORK=" + t.work}
}

// openTree inspects a tree. why says what keeps it from being built in place, "" if nothing does.
func (b *Builder) openTree(ctx context.Context, src Source) (t tree, why string, err error) {
	if t.root, err = filepath.Abs(src.Dir); err != nil {
		return t, "", err
	}
	out, err := b.run(
		ctx,
		command{dir: t.root, args: []string{"env", "GOWORK"}, env: []string{"GOWORK="}},
	)
	if err != nil {
		return t, "", err
	}
	if t.work = strings.TrimSpace(string(out)); t.work == "off" {
		t.work = ""
	}
	mod, err := readMod(filepath.Join(t.root, "go.mod"))
	if err != nil {
		return t, "", err
	}
	if mod.Module == nil || mod.Module.Mod.Path != src.Module {
		return t, "", fmt.Errorf(
			"%s is not the go.mod of %s",
			filepath.Join(t.root, "go.mod"),
			src.Module,
		)
	}
	above := t.root
	if t.work != "" {
		above = filepath.Dir(t.work)
	}
	t.mod = "readonly"
	if _, err := os.Stat(filepath.Join(above, "vendor", "modules.txt")); err == nil {
		t.mod = "vendor"
	}
	why, err = t.lacks(src, mod)
	return t, why, err
}

// lacks says what keeps a current Go from building the tree unchanged, "" if nothing does.
func (t tree) lacks(src Source, mod *modfile.File) (string, error) {
	required := map[string]bool{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = true
	}
	var gone []string
	missing := func(base, dir string) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(base, dir)
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			gone = append(gone, dir)
		}
	}
	for _, r := range mod.Replace {
		if r.New.Version == "" && required[r.Old.Path] {
			missing(t.root, r.New.Path)
		}
	}
	if t.work != "" {
		text, err := os.ReadFile(t.work)
		if err != nil {
			return "", err
		}
		work, err := modfile.ParseWork(t.work, text, nil)
		if err != nil {
			return "", fmt.Errorf("parsing %s: %w", t.work, err)
		}
		for _, u := range work.Use {
			missing(filepath.Dir(t.work), u.Path)
		}
	}
	switch raised := raise(mod); {
	case len(gone) > 0:
		slices.Sort(gone)
		gone = slices.Compact(gone)
		return fmt.Sprintf(
			"what its go.mod or go.work names isn't there, as in a tree from a module cache: %s, and "+
				"%d more like it",
			gone[0],
			len(gone)-1,
		), nil
	case len(raised) > 0:
		return "as it is it doesn't run on a current Go: " + strings.Join(raised, "; "), nil
	}
	if src.Module == kubernetes {
		file := filepath.Join(t.root, openapiFile)
		_, dir := os.Stat(filepath.Dir(file))
		if _, err := os.Stat(file); dir == nil && errors.Is(err, fs.ErrNotExist) {
			return openapiFile + ", which make generates, isn't there", nil
		}
	}
	return "", nil
}

// buildTree builds a tree in place. Its cache key covers the contents of every package that goes into the programs.
func (b *Builder) buildTree(ctx context.Context, src Source, t tree) (Result, error) {
	// The tree may ask for another toolchain than a generated module does.
	tc, err := b.toolchainIn(ctx, command{dir: t.root, env: t.env()})
	if err != nil {
		return Result{}, err
	}
	key, packages, err := b.treeKey(ctx, src, t, tc)
	if err != nil {
		return Result{}, err
	}
	return b.entry(ctx, key, func(ctx context.Context, dir string) error {
		return b.compileTree(ctx, src, t, tc, key, packages, dir)
	})
}

// treeKey hashes everything that goes into the tree's programs, and counts the packages.
func (b *Builder) treeKey(
	ctx context.Context,
	src Source,
	t tree,
	tc Toolchain,
) (key string, packages int, err error) {
	list, err := b.list(
		ctx,
		command{dir: t.root, env: t.env(), stage: "reading the tree " + t.root},
		t.mod,
		src,
	)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	for _, p := range list {
		if p.Module != nil && !p.Standard &&
			strings.HasPrefix(p.Dir,
				filepath.Dir(cmp.Or(t.work, filepath.Join(t.root, "go.mod")))+string(filepath.Separator)) {
			p.Module = &listedModule{Path: p.Module.Path, GoVersion: p.Module.language()} // vendored code is the tree's own, whatever version it names
		}
		if err := p.hash(h); err != nil {
			return "", 0, err
		}
	}
	in := src
	in.Dir = "" // of the tree, only the packages count
	key, err = in.key(tc, "in place", t.mod, t.work != "", hex.EncodeToString(h.Sum(nil)))
	return key, len(list), err
}

func (b *Builder) compileTree(
	ctx context.Context,
	src Source,
	t tree,
	tc Toolchain,
	key string,
	packages int,
	dir string,
) error {
	began := b.begin(dir)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return fmt.Errorf("making room for binaries: %w", err)
	}
	flags := buildFlags(src)
	compiled := 0
	args := slices.Concat([]string{"build", "-mod=" + t.mod, "-v"}, flags,
		[]string{"-o", bin + string(filepath.Separator)}, src.Packages)
	_, err := b.run(ctx, command{
		dir:    t.root,
		env:    append(t.env(), src.cgo()),
		args:   args,
		began:  began,
		stage:  fmt.Sprintf("compiling %s", src),
		line:   func(string) { compiled++ },
		detail: func() string { return fmt.Sprintf("%d packages compiled, at most %d to compile", compiled, packages) },
	})
	if err != nil {
		return err
	}
	again, _, err := b.treeKey(ctx, src, t, tc)
	if err != nil {
		return err
	}
	if again != key {
		return fmt.Errorf(
			"the tree %s was changed while it was built: what was built is neither of the two",
			t.root,
		)
	}
	graph, err := t.graph()
	if err != nil {
		return err
	}
	r := Result{Key: key, Binaries: map[string]Binary{}, Changes: t.changes(src), GoVersion: tc.GOVERSION,
		Flags: append(flags, tc.settings(src)...), GraphSum: graph}
	if err := r.take(src, dir); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, resultFile), r); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, cache.NoteFile), []byte(src.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the note: %w", err)
	}
	b.record(src.programs(), src.tree(tc), began)
	b.report("built %s in %s", src, time.Since(began.at).Round(time.Second))
	return nil
}

// graph returns the SHA-256 over the files that decide the tree's module graph.
func (t tree) graph() (string, error) {
	files := []string{filepath.Join(t.root, "go.mod"), filepath.Join(t.root, "go.sum")}
	above := t.root
	if t.work != "" {
		above = filepath.Dir(t.work)
		files = append(files, t.work, t.work+".sum")
	}
	if t.mod == "vendor" {
		files = append(files, filepath.Join(above, "vendor", "modules.txt"))
	}
	h := sha256.New()
	for _, f := range files {
		sum, err := sums.File(f)
		if errors.Is(err, fs.ErrNotExist) { // a module without requirements has no go.sum
			continue
		}
		if err != nil {
			return "", fmt.Errorf("hashing the module graph: %w", err)
		}
		fmt.Fprintln(h, filepath.Base(f), sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// changes describes how the build differs from those of the other arms and of the tree's publisher.
func (t tree) changes(src Source) []string {
	with := "its own go.mod"
	if t.work != "" {
		with = "its own go.work"
	}
	if t.mod == "vendor" {
		with += " and vendor directory"
	}
	out := []string{
		fmt.Sprintf(
			"built in place with %s (-mod=%s), where the other arms are built from a copy in a "+
				"generated module; -trimpath, %s, symbols kept and DWARF left out, as they are",
			with,
			t.mod,
			src.linking(),
		),
	}
	if len(stamps(src)) > 0 {
		out = append(out, fmt.Sprintf("stamped with version %s by linker flags", src.Version))
	}
	for _, pkg := range src.Unoptimized {
		out = append(out, pkg+" compiled without optimization (-N), as in the other arms")
	}
	return out
}

// listed is what `go list` reports about one package.
type listed struct {
	ImportPath, Dir        string
	Standard               bool
	GoFiles, CgoFiles      []string
	CFiles, SFiles, HFiles []string
	SysoFiles, EmbedFiles  []string
	DefaultGODEBUG         string // of a main package: what its go.mod, its go.work and its files set
	Module                 *listedModule
}

type listedModule struct {
	Path, Version, Sum string
	GoVersion          string // of the language that its packages are compiled in, by its go.mod
	Replace            *listedModule
}

// language returns the version of Go that the module's packages are compiled in: loops mean another thing since 1.22.
func (m *listedModule) language() string {
	if m.Replace != nil && m.Replace.GoVersion != "" {
		return m.Replace.GoVersion
	}
	return m.GoVersion
}

// files returns the names of the package's files that go into a program.
func (p listed) files() []string {
	return slices.Concat(
		p.GoFiles,
		p.CgoFiles,
		p.CFiles,
		p.SFiles,
		p.HFiles,
		p.SysoFiles,
		p.EmbedFiles,
	)
}

// hash writes what identifies a package: nothing for the standard library, which the Go version identifies; the version
// for a package of a published module; for a local package the contents, and what its go.mod says of the language.
func (p listed) hash(w io.Writer) error {
	if p.Standard || p.Module == nil {
		return nil
	}
	m := p.Module
	if m.Replace != nil {
		m = m.Replace
	}
	fmt.Fprintf(w, "%q %q %q %q %q %q\n", p.ImportPath, m.Path, m.Version, m.Sum, p.Module.language(), p.DefaultGODEBUG)
	if m.Version != "" {
		return nil
	}
	for _, f := range p.files() {
		sum, err := sums.File(filepath.Join(p.Dir, f))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%q %s\n", f, sum)
	}
	return nil
}
