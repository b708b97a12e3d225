package build

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
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// This file has what an old source needs before a current Go builds it. Each treatment looks at what the source has or lacks, not at
// which version it is, and says in a sentence of Result.Changes what it did and why. None depends on mutations, so both arms of a
// version are treated alike; a change of what is done here needs a new recipe.
//
// Checks of the linker are left on: with Go 1.26, v1.22.2 and v1.23.17 link without -checklinkname=0.

// floors are the oldest versions of modules with which programs run on a current Go. The changes they stand for are listed for people, so
// each says why.
var floors = []struct{ module, version, why string }{
	{"github.com/modern-go/reflect2", "v1.0.2", "before it, walking a map crashes on Go 1.18 and later"},
	{"github.com/json-iterator/go", "v1.1.12", "the release that requires that reflect2, and else changes its extra packages only"},
}

// raise lifts what a go.mod requires, or replaces a module by, to the floors, and tells in sentences what it lifted. A module that the
// file doesn't name is left alone: since Go 1.17 a go.mod names all that its programs need, and Kubernetes did so before.
func raise(mod *modfile.File) []string {
	from := map[string]string{} // what the graph would have had: a replacement wins
	for _, f := range floors {
		for _, r := range mod.Require {
			if r.Mod.Path == f.module && semver.Compare(r.Mod.Version, f.version) < 0 {
				from[f.module], r.Mod.Version = r.Mod.Version, f.version
			}
		}
		for _, r := range mod.Replace {
			if r.New.Path == f.module && semver.IsValid(r.New.Version) && semver.Compare(r.New.Version, f.version) < 0 {
				from[f.module], r.New.Version = r.New.Version, f.version
			}
		}
	}
	var out []string
	for _, f := range floors {
		if v := from[f.module]; v != "" {
			out = append(out, fmt.Sprintf("%s raised from %s to %s: %s", f.module, v, f.version, f.why))
		}
	}
	return out
}

// openapiFile is written by Kubernetes' own make up to v1.23, and not in the module: without it kube-apiserver doesn't compile.
const openapiFile = "pkg/generated/openapi/zz_generated.openapi.go"

// openapiGen makes openapiFile. Its module's version is that of the source's graph.
const (
	openapiModule = "k8s.io/kube-openapi"
	openapiGen    = openapiModule + "/cmd/openapi-gen"
)

// untagged are modules whose types upstream's make leaves out of openapiFile (build/root/Makefile.generated_files).
var untagged = []string{"k8s.io/code-generator", "k8s.io/sample-apiserver"}

// openapi generates openapiFile in the copied source if that is Kubernetes' and lacks it, as upstream's make does: over all packages of
// its own repository that are tagged for it. It returns a sentence that says so, or "" if nothing was done.
func (b *Builder) openapi(ctx context.Context, src Source, work string, gen generated) (string, error) {
	file := filepath.Join(work, "src", openapiFile)
	if _, err := os.Stat(filepath.Dir(file)); src.Module != kubernetes || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	packages, err := b.tagged(ctx, src, work, gen.own)
	if err != nil {
		return "", err
	}
	if len(packages) == 0 {
		return "", fmt.Errorf("generating %s: no package of %s@%s is tagged for it", openapiFile, src.Module, src.Version)
	}
	// The generator asks the go command for packages and doesn't complete go.sum: all that it comes across is resolved before.
	if _, err := b.resolve(ctx, src, work, append(slices.Clone(packages), openapiGen)); err != nil {
		return "", err
	}
	version, err := b.run(ctx, command{dir: work, args: []string{"list", "-mod=readonly", "-m", "-f",
		"{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", openapiModule}})
	if err != nil {
		return "", err
	}
	out, header := filepath.Join(work, "openapi"), filepath.Join(work, "openapi.header")
	if err := os.WriteFile(header, nil, 0o644); err != nil {
		return "", fmt.Errorf("writing the header of %s: %w", openapiFile, err)
	}
	target := path.Join(src.Module, openapiFile)
	// Without -trimpath, as the generator must know by itself where Go is.
	args := []string{"run", "-mod=readonly", "-trimpath=false", openapiGen, "--input-dirs", strings.Join(packages, ","),
		"--output-base", out, "--output-package", path.Dir(target), "--output-file-base", strings.TrimSuffix(path.Base(target), ".go"),
		"--go-header-file", header, "--report-filename", filepath.Join(work, "openapi.violations")}
	if _, err := b.run(ctx, command{dir: work, args: args, stage: fmt.Sprintf("generating %s of %s@%s", openapiFile, src.Module, src.Version)}); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(out, target), file); err != nil {
		return "", fmt.Errorf("looking for what %s generated: %w", openapiGen, err)
	}
	return fmt.Sprintf("%s, which the published module lacks, generated by %s %s from %d packages tagged +k8s:openapi-gen",
		openapiFile, openapiGen, strings.TrimSpace(string(version)), len(packages)), nil
}

// tag is what a file says that wants its types in openapiFile.
var tag = regexp.MustCompile(`(?m)^// *\+k8s:openapi-gen=`)

// tagged lists the packages of a repository, its module and those published from its staging directory, that have a file with the tag.
func (b *Builder) tagged(ctx context.Context, src Source, work string, own []string) ([]string, error) {
	args := []string{"list", "-mod=mod", "-e", "-find", "-json=ImportPath,Dir,GoFiles", src.Module + "/..."}
	for _, m := range own {
		if !slices.Contains(untagged, m) {
			args = append(args, m+"/...")
		}
	}
	list, err := b.run(ctx, command{dir: work, args: args, stage: fmt.Sprintf("listing the packages of %s@%s", src.Module, src.Version)})
	if err != nil {
		return nil, err
	}
	var out []string
	for dec := json.NewDecoder(bytes.NewReader(list)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading go list: %w", err)
		}
		wants := false
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				return nil, fmt.Errorf("looking for tags in package %s: %w", p.ImportPath, err)
			}
			wants = wants || tag.Match(text)
		}
		if wants {
			out = append(out, p.ImportPath)
		}
	}
	slices.Sort(out)
	return out, nil
}
