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

// This file makes old sources buildable by a current Go. Each treatment depends on what the source has or lacks, not on
// its version, and adds a sentence to Result.Changes. None depends on mutations, so both arms of a version are treated
// alike. A change in this file needs a new recipe.
//
// The linker's checks stay on: with Go 1.26, v1.22.2 and v1.23.17 link without -checklinkname=0.

type floor struct{ module, version, why string }

// floors lists the oldest versions of modules with which programs run on a current Go. The report lists each change
// with its reason.
var floors = []floor{
	{"github.com/modern-go/reflect2", "v1.0.2", "before it, walking a map crashes on Go 1.18 and later"},
	{"github.com/json-iterator/go", "v1.1.12",
		"the release that requires that reflect2, and else changes its extra packages only"},
}

// raise raises the requirements and replacements of a go.mod to the floors, and describes what it raised. It doesn't
// add modules that the file doesn't name: since Go 1.17 a go.mod names everything that its programs need, and
// Kubernetes' did before.
func raise(mod *modfile.File) []string {
	from := map[string]string{} // the version before; a replacement wins
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
			out = append(
				out,
				fmt.Sprintf("%s raised from %s to %s: %s", f.module, v, f.version, f.why),
			)
		}
	}
	return out
}

// moved maps modules whose own address no longer exists, so that nothing serves them any more, to the place where the
// same commits are published now. That place was checked by the hash that Kubernetes' go.sum has for the module of the
// old path.
var moved = map[string]string{
	"vbom.ml/util": "github.com/fvbommel/util", // h1:MksmcCZQWAQJCTA5T0jgI/0sJ51AVm4Z41MrmfczEoc= for db5cfe13f5cc
}

// redirect takes moved modules from their new place, at the version that the go.mod replaces them by, and describes
// what it redirected. Up to v1.19 Kubernetes' go.mod pins each of its modules by a replacement; since then it has had
// none of the moved modules.
func redirect(mod *modfile.File) (out []string) {
	for _, r := range mod.Replace {
		if to := moved[r.New.Path]; to != "" {
			out = append(
				out,
				fmt.Sprintf(
					"%s %s taken from %s, the same commit: its own address is gone",
					r.New.Path,
					r.New.Version,
					to,
				),
			)
			r.New.Path = to
		}
	}
	return out
}

// openapiFile is a file that Kubernetes' make generates up to v1.23 and that the published module lacks. kube-apiserver
// doesn't compile without it; programs that don't import its package don't need it.
const openapiFile = "pkg/generated/openapi/zz_generated.openapi.go"

// openapiGen is the generator of openapiFile. The source's module graph determines its version.
const (
	openapiModule = "k8s.io/kube-openapi"
	openapiGen    = openapiModule + "/cmd/openapi-gen"
)

// untagged lists modules whose types upstream's make leaves out of openapiFile (build/root/Makefile.generated_files).
var untagged = []string{"k8s.io/code-generator", "k8s.io/sample-apiserver"}

// openapi generates openapiFile in a copied Kubernetes source that lacks it. Like upstream's make, it uses all packages
// of the repository that are tagged for that. It returns a sentence for Result.Changes, or "" if it did nothing.
// Generating takes minutes, so it is left out for programs that don't import the file's package.
func (b *Builder) openapi(
	ctx context.Context,
	src Source,
	work string,
	gen generated,
) (string, error) {
	file := filepath.Join(work, "src", openapiFile)
	if _, err := os.Stat(filepath.Dir(file)); src.Module != kubernetes || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	imported, err := b.resolve(ctx, src, work, src.Packages)
	if err != nil || !slices.Contains(imported, path.Dir(path.Join(src.Module, openapiFile))) {
		return "", err
	}
	packages, err := b.tagged(ctx, src, work, gen.own)
	if err != nil {
		return "", err
	}
	if len(packages) == 0 {
		return "", fmt.Errorf(
			"generating %s: no package of %s@%s is tagged for it",
			openapiFile,
			src.Module,
			src.Version,
		)
	}
	// The generator asks the go command for packages and doesn't complete go.sum. So everything is resolved first.
	if _, err := b.resolve(ctx, src, work, append(slices.Clone(packages), openapiGen)); err != nil {
		return "", err
	}
	version, err := b.run(
		ctx,
		command{dir: work, args: []string{"list", "-mod=readonly", "-m", "-f",
			"{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", openapiModule}},
	)
	if err != nil {
		return "", err
	}
	out, header := filepath.Join(work, "openapi"), filepath.Join(work, "openapi.header")
	if err := os.WriteFile(header, nil, 0o644); err != nil {
		return "", fmt.Errorf("writing the header of %s: %w", openapiFile, err)
	}
	target := path.Join(src.Module, openapiFile)
	// -trimpath is off, because the generator must know where Go is.
	args := []string{
		"run",
		"-mod=readonly",
		"-trimpath=false",
		openapiGen,
		"--input-dirs",
		strings.Join(packages, ","),
		"--output-base",
		out,
		"--output-package",
		path.Dir(target),
		"--output-file-base",
		strings.TrimSuffix(path.Base(target), ".go"),
		"--go-header-file", header, "--report-filename", filepath.Join(work, "openapi.violations")}
	if _, err := b.run(ctx, command{dir: work, args: args,
		stage: fmt.Sprintf("generating %s of %s@%s", openapiFile, src.Module, src.Version)}); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(out, target), file); err != nil {
		return "", fmt.Errorf("looking for what %s generated: %w", openapiGen, err)
	}
	return fmt.Sprintf(
		"%s, which the published module lacks, generated by %s %s from %d packages tagged "+
			"+k8s:openapi-gen",
		openapiFile,
		openapiGen,
		strings.TrimSpace(string(version)),
		len(packages),
	), nil
}

// tag matches the comment that marks a file whose types belong in openapiFile.
var tag = regexp.MustCompile(`(?m)^// *\+k8s:openapi-gen=`)

// tagged returns the packages of a repository that have a file with the tag. The repository consists of the module and
// the modules published from its staging directory.
func (b *Builder) tagged(
	ctx context.Context,
	src Source,
	work string,
	own []string,
) ([]string, error) {
	args := []string{
		"list",
		"-mod=mod",
		"-e",
		"-find",
		"-json=ImportPath,Dir,GoFiles",
		src.Module + "/...",
	}
	for _, m := range own {
		if !slices.Contains(untagged, m) {
			args = append(args, m+"/...")
		}
	}
	list, err := b.run(ctx, command{dir: work, args: args,
		stage: fmt.Sprintf("listing the packages of %s@%s", src.Module, src.Version)})
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
