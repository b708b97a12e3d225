package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// Patched is a copy of a published module with a patch upon it.
type Patched struct {
	Dir     string // the copy, in the cache
	Version string
	Files   []PatchedFile
	Said    []string // what git said about hunks that it found elsewhere than the patch says
}

// PatchedFile is a file that a patch changes, by its path in the module's repository.
type PatchedFile struct {
	Path           string
	Added, Removed int // lines
}

// String returns the file with the number of lines, as git shows it.
func (f PatchedFile) String() string { return fmt.Sprintf("%s (+%d -%d)", f.Path, f.Added, f.Removed) }

// PatchError says why a patch can't be put upon a module.
type PatchError struct {
	Err   error
	Hunks []string // what doesn't apply, as the patch has it
}

// Error returns the reason, with the hunks below.
func (e *PatchError) Error() string {
	return strings.TrimSpace(e.Err.Error() + "\n" + strings.Join(e.Hunks, "\n"))
}

// Unwrap returns the reason.
func (e *PatchError) Unwrap() error { return e.Err }

// stagingDir is where Kubernetes' repository has the modules that are published by themselves.
const stagingDir = "staging/src"

// Patch puts a patch upon a published module: a diff, or what git format-patch writes. Paths are those of the module's
// repository, so that in Kubernetes' a path below staging/src changes the module of that name, in the version that
// belongs to the release. What doesn't apply is a *PatchError, as is a patch that changes no package of the program pkg.
func (b *Builder) Patch(ctx context.Context, module, version, pkg string, patch []byte) (Patched, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return Patched{}, errors.New("a patch is applied by git, which is not on PATH (as root on Debian: apt-get install -y git)")
	}
	files, err := filesOf(ctx, b.Cache.Dir(), patch)
	if err != nil {
		return Patched{}, err
	}
	src := Source{Module: module, Version: version, Packages: []string{pkg}}
	root, err := b.locate(ctx, src)
	if err != nil {
		return Patched{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "1 %s@%s\n%s", module, version, patch))
	out := Patched{Version: version, Files: files}
	const said = ".relapse-patch" // in no module
	dir, _, err := b.Cache.Do(ctx, "patched", hex.EncodeToString(sum[:16]), func(ctx context.Context, dir string) error {
		if err := copyTree(ctx, root, dir, true); err != nil {
			return fmt.Errorf("copying %s@%s: %w", module, version, err)
		}
		if err := b.copyStaging(ctx, src, root, dir, files); err != nil {
			return err
		}
		answer, err := apply(ctx, dir, patch)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, said), []byte(answer), 0o644)
	})
	if err != nil {
		return out, err
	}
	out.Dir = dir
	text, err := os.ReadFile(filepath.Join(dir, said))
	if err != nil {
		return out, fmt.Errorf("reading how the patch was applied: %w", err)
	}
	out.Said = offsets(string(text))
	return out, b.mustTouch(dir, src, files)
}

// filesOf returns the files that a patch changes.
func filesOf(ctx context.Context, dir string, patch []byte) ([]PatchedFile, error) {
	out, err := gitApply(ctx, dir, patch, "--numstat", "-z")
	if err != nil {
		return nil, &PatchError{Err: fmt.Errorf("git can't read it as a patch: %w", err)}
	}
	var files []PatchedFile
	for _, line := range strings.Split(strings.TrimSuffix(out, "\x00"), "\x00") {
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			continue
		}
		added, _ := strconv.Atoi(f[0]) // "-" for a binary file
		removed, _ := strconv.Atoi(f[1])
		files = append(files, PatchedFile{f[2], added, removed})
	}
	if len(files) == 0 {
		return nil, &PatchError{Err: errors.New("it changes no file")}
	}
	for _, f := range files {
		if strings.HasPrefix(f.Path, "vendor/") {
			return nil, &PatchError{Err: fmt.Errorf("it changes %s, and a published module has no vendor folder: give a whole tree, src:DIR",
				f.Path)}
		}
	}
	return files, nil
}

// copyStaging copies those modules of the source's repository that files are in to where the repository has them.
func (b *Builder) copyStaging(ctx context.Context, src Source, root, dir string, files []PatchedFile) error {
	mod, err := readMod(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	published, err := publishedVersions(src, root, mod)
	if err != nil {
		return err
	}
	for _, f := range files {
		rest, staged := strings.CutPrefix(f.Path, stagingDir+"/")
		if !staged {
			continue
		}
		module, at := "", ""
		for own, where := range published {
			if strings.HasPrefix(rest, own+"/") {
				module, at = own, strings.ReplaceAll(where, " ", "@")
			}
		}
		if module == "" {
			return &PatchError{Err: fmt.Errorf("it changes %s, and %s has no module of that name", f.Path, src.Module)}
		}
		to := filepath.Join(dir, stagingDir, filepath.FromSlash(module))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		_, version, _ := strings.Cut(at, "@")
		from, err := b.locate(ctx, Source{Module: module, Version: version})
		if err != nil {
			return err
		}
		if err := copyTree(ctx, from, to, true); err != nil {
			return fmt.Errorf("copying %s: %w", at, err)
		}
	}
	return nil
}

// What git says of a patch that doesn't apply.
var (
	gitError   = regexp.MustCompile(`(?m)^error: (.+)$`)
	failedHunk = regexp.MustCompile(`(?m)^error: patch failed: (.+):(\d+)$`)
)

// apply applies a patch to the tree in dir and returns what git says about it.
func apply(ctx context.Context, dir string, patch []byte) (string, error) {
	said, err := gitApply(ctx, dir, patch, "--verbose", "--whitespace=nowarn")
	if err == nil || ctx.Err() != nil {
		return said, err
	}
	refused := &PatchError{Err: errors.New("it doesn't apply")}
	var lines []string
	for _, m := range gitError.FindAllStringSubmatch(err.Error(), -1) {
		if m[1] != "while searching for:" { // the hunk follows, which is shown whole
			lines = append(lines, m[1])
		}
	}
	if len(lines) > 0 {
		refused.Err = fmt.Errorf("it doesn't apply: %s", strings.Join(lines, "; "))
	}
	for _, m := range failedHunk.FindAllStringSubmatch(err.Error(), -1) {
		if h := hunkAt(patch, m[1], m[2]); h != "" {
			refused.Hunks = append(refused.Hunks, m[1]+"\n"+h)
		}
	}
	return "", refused
}

// hunkAt returns the hunk of a patch that begins at a line of a file, "" if there is none.
func hunkAt(patch []byte, file, line string) string {
	in, hunk := false, []string(nil)
	for text := range strings.Lines(string(patch)) {
		text = strings.TrimRight(text, "\r\n")
		header := strings.HasPrefix(text, "@@ -")
		switch {
		case strings.HasPrefix(text, "diff --git ") || header && hunk != nil:
			if hunk != nil {
				return strings.Join(hunk, "\n")
			}
		case strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "+++ "):
			in = strings.HasSuffix(strings.Fields(text)[1], file)
		case header && in && strings.HasPrefix(text, "@@ -"+line) && strings.ContainsAny(text[4+len(line):5+len(line)], ", "):
			hunk = []string{text}
		case hunk != nil:
			hunk = append(hunk, text)
		}
	}
	return strings.Join(hunk, "\n")
}

// offsets returns git's remarks about hunks that it found at other lines than the patch says.
func offsets(said string) (out []string) {
	file := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if f, ok := strings.CutPrefix(line, "Checking patch "); ok {
			file = strings.TrimSuffix(f, "...")
		} else if strings.HasPrefix(line, "Hunk #") {
			out = append(out, file+": "+line)
		}
	}
	return slices.Compact(out)
}

// mustTouch refuses a patch of the module's own files none of which goes into the program. Whether a package of another
// module goes into it is only known when its build lists what it needs.
func (b *Builder) mustTouch(dir string, src Source, files []PatchedFile) error {
	touched := Touched(src.Module, files)
	if slices.ContainsFunc(touched, func(p string) bool { return p != src.Module && !strings.HasPrefix(p, src.Module+"/") }) {
		return nil
	}
	reached := map[string]bool{}
	for _, pkg := range src.Packages {
		if err := b.reach(dir, mutate.Module{Path: src.Module, Version: src.Version, FS: os.DirFS(dir)}, pkg, reached); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(touched, func(p string) bool { return reached[p] }) {
		return nil
	}
	return untouched(src, files)
}

func untouched(src Source, files []PatchedFile) error {
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	return &PatchError{Err: fmt.Errorf("it touches no package of %s, so that the program would be the same without it; it changes %s",
		programName(src.Packages[0]), strings.Join(names, ", "))}
}

// Touched returns the import paths of packages that files of a module's repository are part of. Tests are part of none.
func Touched(module string, files []PatchedFile) (out []string) {
	for _, f := range files {
		if strings.HasSuffix(f.Path, "_test.go") {
			continue
		}
		pkg := path.Dir(f.Path)
		if rest, staged := strings.CutPrefix(pkg, stagingDir+"/"); staged {
			pkg = rest
		} else {
			pkg = path.Join(module, pkg)
		}
		if !slices.Contains(out, pkg) {
			out = append(out, pkg)
		}
	}
	return out
}

// gitApply runs git apply in a folder that it takes for no part of a repository, and returns what it prints.
func gitApply(ctx context.Context, dir string, patch []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"apply"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	cmd.Env = slices.DeleteFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "GIT_DIR=") || strings.HasPrefix(e, "GIT_WORK_TREE=") })
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", errors.New(strings.TrimSpace(stderr.String()))
	}
	return stdout.String() + stderr.String(), nil
}
