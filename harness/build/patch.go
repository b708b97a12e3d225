package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	gobuild "go/build"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/internal/sums"
)

// Patched is a copy of a published module with a patch upon it.
type Patched struct {
	Dir   string // the copy, in the cache
	Files []PatchedFile
	// Packages are the import paths of what the patch changes; nil if it changes a go.mod, and so any package. Tests are
	// part of none.
	Packages []string
	Said     []string // what git said about hunks that it found elsewhere than the patch says
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
func (b *Builder) Patch(
	ctx context.Context,
	module, version, pkg string,
	patch []byte,
) (Patched, error) {
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
	sum := sha256.Sum256(fmt.Appendf(nil, "2 %s@%s\n%s", module, version, patch))
	note, dir, err := b.patchedCopy(ctx, hex.EncodeToString(sum[:16]), func(ctx context.Context, dir string) (string, error) {
		if err := copyTree(ctx, root, dir, true); err != nil {
			return "", fmt.Errorf("copying %s@%s: %w", module, version, err)
		}
		if err := b.copyStaging(ctx, src, root, dir, files); err != nil {
			return "", err
		}
		return apply(ctx, dir, patch)
	})
	if err != nil {
		return Patched{}, err
	}
	src.Touches = touched(dir, module, files)
	return Patched{Dir: dir, Files: files, Packages: src.Touches, Said: offsets(note.Said)}, b.mustTouch(dir, src, files)
}

// patchNote is kept beside a patched copy.
type patchNote struct {
	Said string `json:"said"` // what git said when it applied the patch
	Tree string `json:"tree"` // sums.Tree of the copy
}

// patchedCopy returns the copy in the cache entry key, and has make fill it if there is none, or if the copy was changed
// since: then it would no longer be what the patch makes of its release.
func (b *Builder) patchedCopy(
	ctx context.Context,
	key string,
	make func(ctx context.Context, dir string) (said string, err error),
) (note patchNote, dir string, err error) {
	const tree, file = "tree", "patch.json"
	for range 2 {
		entry, _, err := b.Cache.Do(ctx, "patched", key, func(ctx context.Context, entry string) error {
			dir := filepath.Join(entry, tree)
			said, err := make(ctx, dir)
			if err != nil {
				return err
			}
			sum, err := sums.Tree(dir)
			if err != nil {
				return err
			}
			return writeJSON(filepath.Join(entry, file), patchNote{said, sum})
		})
		if err != nil {
			return note, "", err
		}
		dir = filepath.Join(entry, tree)
		err = readJSON(filepath.Join(entry, file), &note)
		if sum, unread := sums.Tree(dir); err == nil && unread == nil && sum == note.Tree {
			return note, dir, nil
		}
		b.report("the patched copy in %s was changed: making it again", dir)
		if err := b.Cache.Remove("patched", key); err != nil {
			return note, "", err
		}
	}
	return note, "", fmt.Errorf("the patched copy in %s was changed as soon as it was made", dir)
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
			return nil, &PatchError{
				Err: fmt.Errorf(
					"it changes %s, and a published module has no vendor folder: give a whole tree, src:DIR",
					f.Path,
				),
			}
		}
	}
	return files, nil
}

// copyStaging copies those modules of the source's repository that files are in to where the repository has them.
func (b *Builder) copyStaging(
	ctx context.Context,
	src Source,
	root, dir string,
	files []PatchedFile,
) error {
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
		module, version := "", ""
		for own, where := range published {
			if strings.HasPrefix(rest, own+"/") {
				module = own
				_, version, _ = strings.Cut(where, " ")
			}
		}
		if module == "" {
			return &PatchError{
				Err: fmt.Errorf(
					"it changes %s, and %s has no module of that name",
					f.Path,
					src.Module,
				),
			}
		}
		to := filepath.Join(dir, stagingDir, filepath.FromSlash(module))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		from, err := b.locate(ctx, Source{Module: module, Version: version})
		if err != nil {
			return err
		}
		if err := copyTree(ctx, from, to, true); err != nil {
			return fmt.Errorf("copying %s %s: %w", module, version, err)
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
	if err == nil || ctx.Err() != nil || cache.NoRoom(err) {
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
			in = strings.HasSuffix(strings.TrimSpace(text[4:]), file)
		case header && in && (strings.HasPrefix(text, "@@ -"+line+",") || strings.HasPrefix(text, "@@ -"+line+" ")):
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
	other := func(p string) bool { return p != src.Module && !strings.HasPrefix(p, src.Module+"/") }
	if src.Touches == nil || slices.ContainsFunc(src.Touches, other) {
		return nil
	}
	reached := map[string]bool{}
	for _, pkg := range src.Packages {
		if err := b.reach(dir, mutate.Module{Path: src.Module, Version: src.Version, FS: os.DirFS(dir)}, pkg, reached); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(src.Touches, func(p string) bool { return reached[p] }) {
		return nil
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	return &PatchError{
		Err: fmt.Errorf(
			"it touches no package of %s, so that the program would be the same without it; it changes %s",
			programName(src.Packages[0]),
			strings.Join(names, ", "),
		),
	}
}

// touched returns the Packages of a patch that changed files in a tree. Only what is compiled for the nodes is part of a
// package: no tests, no documents, no other system's files.
func touched(tree, module string, files []PatchedFile) []string {
	nodes := gobuild.Default
	nodes.GOOS, nodes.CgoEnabled = "linux", false
	out := []string{}
	for _, f := range files {
		dir, name := path.Split(f.Path)
		rest, staged := strings.CutPrefix(dir, stagingDir+"/")
		pkg := path.Join(module, dir)
		if staged {
			pkg = path.Clean(rest)
		}
		if name == "go.mod" {
			return nil
		}
		in, err := nodes.MatchFile(filepath.Join(tree, filepath.FromSlash(dir)), name)
		gone := errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, ".go") // what it would have been isn't known
		if (in || gone) && !strings.HasSuffix(name, "_test.go") && !slices.Contains(out, pkg) {
			out = append(out, pkg)
		}
	}
	return out
}

// gitApply runs git apply in a folder that it takes for no part of a repository, and returns what it prints.
func gitApply(ctx context.Context, dir string, patch []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"apply"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(patch)
	cmd.Env = append(
		outsideRepository(),
		"LC_ALL=C",
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
	)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		said := strings.TrimSpace(stderr.String())
		if full := noRoom(said); full != nil {
			return "", fmt.Errorf("running git apply: %w: %s", full, said)
		}
		return "", errors.New(said)
	}
	return stdout.String() + stderr.String(), nil
}
