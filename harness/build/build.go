// Package build turns an arm's source into binaries.
//
// A source is a Go module at a version, the main packages to build from it, and the arm's mutations. Every arm is built
// in the same way: the module is copied, the copy is mutated or left unchanged, and a generated main module replaces
// the module by the copy. With one toolchain, one set of flags and one module graph, two arms of the same version
// differ in their mutations only. For the second arm, Go's build cache has every package that the mutation did not
// touch.
//
// If a current Go can't build a source as it was published, the build adds what is missing; Result.Changes names each
// change.
//
// Binaries are kept in a cache.Store under the hash of everything that went into them. Once Go's module cache has the
// modules, a build doesn't need the network. The user's own proxy, checksum database and GOFLAGS are never overridden.
package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/internal/sums"
)

// recipe changes whenever this package builds the same source differently, so that binaries of an older recipe are not
// used.
const recipe = "2"

// Binary is one program that was built.
type Binary struct {
	Path    string `json:"path"`   // absolute
	SHA256  string `json:"sha256"` // hex
	Package string `json:"package"`
}

// Result describes what a build made.
type Result struct {
	Key       string              `json:"key"`      // hash of everything that went into it
	Binaries  map[string]Binary   `json:"binaries"` // by base name, as `go install` would name them
	Constants map[string]Constant `json:"constants,omitempty"`
	Sites     []mutate.Site       `json:"sites"`     // what the mutations changed
	Changes   []string            `json:"changes"`   // each difference from the published module, one sentence
	GoVersion string              `json:"goVersion"` // go1.26.8
	Flags     []string            `json:"flags"`     // of go build, and the relevant settings of its environment
	GraphSum  string              `json:"graphSum"`  // SHA-256 over the go.mod and go.sum it was built with
	Cached    bool                `json:"cached"`    // it came from the cache, without a build
}

// Builder builds sources. Cache is required.
type Builder struct {
	Cache    *cache.Store
	Progress func(string) // called at each stage and every few seconds with its progress; may be nil
	Go       string       // the go command; "" is the one in PATH
	MaxDisk  int64        // the bytes that the cache's folder may take up once a build is done; 0 for no bound

	imported *Toolchain                 // builds nothing, and looks for what this Go built; nil for the Go command
	reached  map[string]map[string]bool // what programs import of their modules, for Examine
}

// resultFile is the file next to the binaries that holds their Result. Its paths are relative.
const resultFile = "result.json"

// Build returns the source's binaries and constants, from the cache if it has them. The binaries stay in place until
// the cache is closed. Build hashes cached binaries again; if one has changed, it rebuilds the entry. Callers should
// build the arms of a pair one after the other, so that packages which both need are compiled once.
func (b *Builder) Build(ctx context.Context, src Source) (Result, error) {
	if err := src.validate(); err != nil {
		return Result{}, err
	}
	if compiler := cmp.Or(os.Getenv("CC"), "gcc"); src.Race {
		if _, err := exec.LookPath(compiler); err != nil {
			return Result{}, fmt.Errorf(
				"building %s: the race detector needs a C compiler, and %s is not on PATH: as "+
					"root on Debian: apt-get install -y gcc libc6-dev",
				src,
				compiler,
			)
		}
	}
	tc, err := b.Toolchain(ctx)
	if err != nil {
		return Result{}, err
	}
	r, err := b.build(ctx, src, tc)
	if err != nil {
		return Result{}, fmt.Errorf("building %s: %w", src, err)
	}
	if r.Constants, err = b.Constants(ctx, src); err != nil {
		return Result{}, err
	}
	return r, nil
}

// build builds a copy of the source in a generated module, or a source tree in place.
func (b *Builder) build(ctx context.Context, src Source, tc Toolchain) (Result, error) {
	var copied string
	if src.InPlace {
		t, why, err := b.openTree(ctx, src)
		if err != nil {
			return Result{}, err
		}
		if why == "" {
			return b.buildTree(ctx, src, t)
		}
		if err := t.keepsWorkspace(); err != nil {
			return Result{}, err
		}
		copied = "not built in place: " + why
	}
	key, err := src.copyKey(tc)
	if err != nil {
		return Result{}, err
	}
	r, err := b.entry(ctx, key,
		func(ctx context.Context, dir string) error { return b.compile(ctx, src, tc, key, dir) })
	if copied != "" {
		r.Changes = append([]string{copied}, r.Changes...)
	}
	return r, err
}

// keyOf returns the key that Build finds a source by, and the toolchain that builds it.
func (b *Builder) keyOf(ctx context.Context, src Source) (tc Toolchain, key string, err error) {
	if src.InPlace {
		t, why, err := b.openTree(ctx, src)
		if err != nil {
			return tc, "", err
		}
		if why == "" {
			if tc, err = b.toolchainIn(ctx, command{dir: t.root, env: t.env()}); err != nil {
				return tc, "", err
			}
			key, _, err = b.treeKey(ctx, src, t, tc)
			return tc, key, err
		}
	}
	if tc, err = b.Toolchain(ctx); err != nil {
		return tc, "", err
	}
	key, err = src.copyKey(tc)
	return tc, key, err
}

// entry returns a result from the cache. It calls compile to make the result if it is missing or has changed.
func (b *Builder) entry(ctx context.Context, key string,
	compile func(ctx context.Context, dir string) error) (Result, error) {
	r, err := b.obtain(ctx, key, compile)
	if errors.Is(err, errChanged) {
		b.report("%v: building it again", err)
		if err := b.Cache.Remove("build", key); err != nil {
			return Result{}, err
		}
		r, err = b.obtain(ctx, key, compile)
	}
	return r, err
}

// errChanged means that a cached binary has changed.
var errChanged = errors.New("a cached binary was changed")

func (b *Builder) obtain(ctx context.Context, key string,
	compile func(ctx context.Context, dir string) error) (Result, error) {
	dir, cached, err := b.make(ctx, "build", key, compile)
	if err != nil {
		return Result{}, err
	}
	var r Result
	if err := readJSON(filepath.Join(dir, resultFile), &r); err != nil {
		return Result{}, fmt.Errorf("%w: %w", errChanged, err)
	}
	r.Cached = cached
	for name, bin := range r.Binaries {
		bin.Path = filepath.Join(dir, bin.Path)
		sum, err := sums.File(bin.Path)
		if err != nil || sum != bin.SHA256 {
			return Result{}, fmt.Errorf(
				"%w: %s has SHA-256 %q, built was %s",
				errChanged,
				bin.Path,
				sum,
				bin.SHA256,
			)
		}
		r.Binaries[name] = bin
	}
	return r, nil
}

// compile fills a cache entry with bin/, the module files that determine the graph, and the result.
func (b *Builder) compile(ctx context.Context, src Source, tc Toolchain, key, dir string) error {
	began := b.begin(dir)
	work := filepath.Join(dir, "work")
	gen, err := b.generate(ctx, src, work)
	if err != nil {
		return err
	}
	said, err := b.openapi(ctx, src, work, gen)
	if err != nil {
		return err
	}
	if said != "" {
		gen.changes = append(gen.changes, said)
	}
	packages, err := b.resolve(ctx, src, work, src.Packages)
	if err != nil {
		return err
	}
	if len(src.Touches) > 0 && !slices.ContainsFunc(packages, func(p string) bool { return slices.Contains(src.Touches, p) }) {
		return &PatchError{Err: fmt.Errorf("it touches no package of %s, so that the program would be the same without it; it changes the packages %s",
			src.programs(), strings.Join(src.Touches, ", "))}
	}
	if err := b.keepsVendored(ctx, src, work); err != nil {
		return err
	}
	graph, err := graphSum(work)
	if err != nil {
		return err
	}
	if err := standIn(work, gen.copied); err != nil {
		return err
	}
	flags := buildFlags(src)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return fmt.Errorf("making room for binaries: %w", err)
	}
	args := slices.Concat([]string{"build", "-mod=readonly", "-v"}, flags,
		[]string{"-o", bin + string(filepath.Separator)}, src.Packages)
	compiled := 0
	_, err = b.run(ctx, command{
		dir: work, args: args, env: []string{src.cgo()}, began: began,
		stage: fmt.Sprintf("compiling %s", src),
		line:  func(string) { compiled++ },
		detail: func() string {
			return fmt.Sprintf(
				"%d packages compiled, at most %d to compile",
				compiled,
				len(packages),
			)
		},
	})
	if err != nil {
		return err
	}
	r := Result{Key: key, Binaries: map[string]Binary{}, Sites: gen.sites, Changes: gen.changes,
		GoVersion: tc.GOVERSION,
		Flags:     append(flags, tc.settings(src)...), GraphSum: graph}
	if err := r.take(src, dir); err != nil {
		return err
	}
	b.record(src.programs(), src.tree(tc), began) // while the copied source is there, which needs room, too
	if err := keep(dir, work, src, r); err != nil {
		return err
	}
	b.report("built %s in %s", src, time.Since(began.at).Round(time.Second))
	return nil
}

// take renames the built programs in the entry's bin/, and checks and lists them.
func (r *Result) take(src Source, dir string) error {
	for _, pkg := range src.Packages {
		name := programName(pkg)
		if err := os.Rename(filepath.Join(dir, "bin", defaultName(pkg)), filepath.Join(dir, "bin", name)); err != nil {
			return fmt.Errorf("naming the program of %s: %w", pkg, err)
		}
		sum, err := sums.File(filepath.Join(dir, "bin", name))
		if err != nil {
			return fmt.Errorf("looking for the program of %s: %w", pkg, err)
		}
		if err := checkStamp(src, filepath.Join(dir, "bin", name)); err != nil {
			return err
		}
		r.Binaries[name] = Binary{Path: filepath.Join("bin", name), SHA256: sum, Package: pkg}
	}
	return nil
}

// keep writes a result into its entry and removes files that were only needed for building.
func keep(dir, work string, src Source, r Result) error {
	for _, f := range []string{"go.mod", "go.sum"} {
		if err := os.Rename(filepath.Join(work, f), filepath.Join(dir, f)); err != nil {
			return fmt.Errorf("keeping %s: %w", f, err)
		}
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing the copied source: %w", err)
	}
	if err := writeJSON(filepath.Join(dir, resultFile), r); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, cache.NoteFile), []byte(src.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the note: %w", err)
	}
	return nil
}

func (b *Builder) report(format string, args ...any) {
	if b.Progress != nil {
		b.Progress(fmt.Sprintf(format, args...))
	}
}
