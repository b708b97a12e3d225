package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// fixtureFlags are flags for a small static program that contains nothing specific to this machine.
var fixtureFlags = []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"}

// listed is what `go list` reports about one package.
type listed struct {
	ImportPath, Dir                     string
	Standard                            bool
	GoFiles, SFiles, HFiles, EmbedFiles []string
	Module                              *listedModule
}

type listedModule struct {
	Path, Version, Sum string
	Replace            *listedModule
}

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
	tc, err := b.toolchain(ctx)
	if err != nil {
		return Binary{}, err
	}
	key, pkg, err := b.fixtureKey(ctx, tc, dir)
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
		sum, err := FileSum(out)
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
	if sum, err := FileSum(bin.Path); err != nil || sum != bin.SHA256 {
		return Binary{}, fmt.Errorf("%w: %s has SHA-256 %q, built was %s", errChanged, bin.Path, sum, bin.SHA256)
	}
	return bin, nil
}

// fixtureKey hashes everything that goes into the main package in dir, and returns the package's import path, too.
func (b *Builder) fixtureKey(ctx context.Context, tc toolchain, dir string) (key, pkg string, err error) {
	out, err := b.run(ctx, command{dir: dir, args: []string{"list", "-mod=readonly", "-deps",
		"-json=ImportPath,Dir,Standard,GoFiles,SFiles,HFiles,EmbedFiles,Module", "."}})
	if err != nil {
		return "", "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q\n", recipe, tc, fixtureFlags)
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", "", fmt.Errorf("reading go list: %w", err)
		}
		if err := p.hash(h); err != nil {
			return "", "", err
		}
		pkg = p.ImportPath // dependencies come first, the program itself last
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), pkg, nil
}

// hash writes what identifies a package: nothing for the standard library, which the Go version identifies; the version
// for a package of a published module; the contents for a local package.
func (p listed) hash(w io.Writer) error {
	if p.Standard || p.Module == nil {
		return nil
	}
	m := p.Module
	if m.Replace != nil {
		m = m.Replace
	}
	fmt.Fprintf(w, "%q %q %q %q\n", p.ImportPath, m.Path, m.Version, m.Sum)
	if m.Version != "" {
		return nil
	}
	for _, f := range slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.EmbedFiles) {
		sum, err := FileSum(filepath.Join(p.Dir, f))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%q %s\n", f, sum)
	}
	return nil
}
