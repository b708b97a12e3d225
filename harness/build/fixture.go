package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/internal/sums"
)

// fixtureFlags are flags for a small static program that contains nothing specific to this machine.
var fixtureFlags = []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"}

// Fixture builds the program in fixtures/<name> of the module at root, static and without cgo. Its cache key covers the
// contents of every local package in it and the versions of published ones.
func (b *Builder) Fixture(ctx context.Context, root, name string) (Binary, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return Binary{}, fmt.Errorf("fixture name %q is not one plain path element", name)
	}
	dir, err := filepath.Abs(filepath.Join(root, "fixtures", name))
	if err != nil {
		return Binary{}, fmt.Errorf("resolving fixture %s in %s: %w", name, root, err)
	}
	tc, err := b.Toolchain(ctx)
	if err != nil {
		return Binary{}, err
	}
	key, pkg, err := fixtureKey(tc, dir)
	if err != nil {
		return Binary{}, fmt.Errorf("reading fixture %s: %w", name, err)
	}
	bin, err := b.fixture(ctx, dir, name, key, pkg)
	if errors.Is(err, errChanged) {
		b.report("%v: building it again", err)
		if err := b.Cache.Remove("fixture", key); err != nil {
			return Binary{}, err
		}
		bin, err = b.fixture(ctx, dir, name, key, pkg)
	}
	if err != nil {
		return Binary{}, fmt.Errorf("building fixture %s: %w", name, err)
	}
	return bin, nil
}

func (b *Builder) fixture(ctx context.Context, src, name, key, pkg string) (Binary, error) {
	dir, _, err := b.make(ctx, "fixture", key, func(ctx context.Context, dir string) error {
		began, out := b.begin(dir), filepath.Join(dir, name)
		args := slices.Concat([]string{"build", "-mod=readonly"}, fixtureFlags, []string{"-o", out, "."})
		if _, err := b.run(ctx, command{dir: src, args: args, began: began, stage: "compiling fixture " + name}); err != nil {
			return err
		}
		sum, err := sums.File(out)
		if err != nil {
			return fmt.Errorf("looking for the program of fixture %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, cache.NoteFile), []byte("fixture "+name+"\n"), 0o644); err != nil {
			return fmt.Errorf("writing the note: %w", err)
		}
		if err := writeJSON(filepath.Join(dir, resultFile), Binary{Path: name, SHA256: sum, Package: pkg}); err != nil {
			return err
		}
		b.record("fixture "+name, "", began)
		return nil
	})
	if err != nil {
		return Binary{}, err
	}
	var bin Binary
	if err := readJSON(filepath.Join(dir, resultFile), &bin); err != nil {
		return Binary{}, fmt.Errorf("%w: %w", errChanged, err)
	}
	bin.Path = filepath.Join(dir, bin.Path)
	if sum, err := sums.File(bin.Path); err != nil || sum != bin.SHA256 {
		return Binary{}, fmt.Errorf(
			"%w: %s has SHA-256 %q, built was %s",
			errChanged,
			bin.Path,
			sum,
			bin.SHA256,
		)
	}
	return bin, nil
}

// fixtureKey hashes everything that goes into the main package in dir, and returns the package's import path, too. It
// asks neither Go nor the network: go.mod and go.sum say everything about published modules.
func fixtureKey(tc Toolchain, dir string) (key, pkg string, err error) {
	root, mod, err := moduleOf(dir)
	if err != nil {
		return "", "", err
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return "", "", err
	}
	here := mutate.Module{Path: mod.Module.Mod.Path, FS: os.DirFS(root)}
	pkg = path.Join(here.Path, filepath.ToSlash(rel))
	if name, err := packageName(here.FS, filepath.ToSlash(rel)); err != nil || name != "main" {
		return "", "", cmp.Or(err, fmt.Errorf("there is no program in %s", dir))
	}
	packages, err := reachable(here, pkg)
	if err != nil {
		return "", "", err
	}
	graph, err := tree{root: root}.graph()
	if err != nil {
		return "", "", err
	}
	local := []string{}
	for p := range packages {
		at, _ := packageDir(here.Path, p)
		local = append(local, filepath.Join(root, at))
	}
	for _, r := range mod.Replace {
		switch {
		case r.New.Version != "":
		case filepath.IsAbs(r.New.Path):
			local = append(local, r.New.Path)
		default:
			local = append(local, filepath.Join(root, r.New.Path))
		}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q %s\n", recipe, tc, fixtureFlags, graph)
	for _, at := range slices.Sorted(slices.Values(local)) {
		sum, err := placeSum(at)
		if err != nil {
			return "", "", err
		}
		fmt.Fprintln(h, sum)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), pkg, nil
}

// moduleOf returns the folder of the module that a folder is in, and the module's go.mod.
func moduleOf(dir string) (root string, mod *modfile.File, err error) {
	for root = dir; ; root = filepath.Dir(root) {
		mod, err := readMod(filepath.Join(root, "go.mod"))
		switch {
		case err == nil && mod.Module != nil:
			return root, mod, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", nil, err
		case root == filepath.Dir(root):
			return "", nil, fmt.Errorf("%s is in no Go module", dir)
		}
	}
}
