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
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// State describes a source tree, by what version control knows about it.
type State struct {
	Commit  string // "" if the tree is in no repository
	Version string // of the nearest tag, vX.Y.Z…; "" if there is none
	dirty   bool   // it differs from Commit
	Diff    []byte // the differences, as git prints them, with files that are neither known nor ignored
	files   int    // number of files that differ
	added   int    // number of lines
	removed int
}

// maxUnknown is the maximum number of untracked files that a diff includes. More of them probably come from a build.
const maxUnknown = 500

// LookAt asks git for the state of a tree. It writes nothing, not even git's index. A tree outside any repository has
// an empty state, which is not an error.
func LookAt(ctx context.Context, dir string) (State, error) {
	var s State
	if _, err := git(ctx, dir, "ls-files", "--error-unmatch", "go.mod"); err != nil {
		var exit *exec.ExitError
		around := errors.As(err, &exit) && exit.ExitCode() == 1 // the tree only lies inside another repository
		if around || strings.Contains(err.Error(), "not a git repository") {
			return s, nil
		}
		return s, fmt.Errorf("asking git about %s: %w", dir, err)
	}
	out, err := git(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return s, fmt.Errorf("asking for the commit of %s: %w", dir, err)
	}
	s.Commit = strings.TrimSpace(string(out))
	if out, err := git(ctx, dir, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*.[0-9]*.[0-9]*",
		"HEAD"); err == nil { // there may be no tags
		s.Version = strings.TrimSpace(string(out))
	}
	if s.Diff, err = git(ctx, dir, "diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD", "--",
		"."); err != nil {
		return s, fmt.Errorf("asking how %s differs from its commit: %w", dir, err)
	}
	unknown, err := git(ctx, dir, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return s, fmt.Errorf("asking for files of %s that git doesn't know: %w", dir, err)
	}
	names := strings.Split(strings.TrimSuffix(string(unknown), "\x00"), "\x00")
	if len(names) > maxUnknown {
		return s, fmt.Errorf(
			"git knows nothing of %d files in %s and doesn't ignore them: want at most %d, so that "+
				"the diff says what was built",
			len(names),
			dir,
			maxUnknown,
		)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		// git diff exits with 1 if there is a difference, and here there always is one.
		out, err := git(ctx, dir, "diff", "--no-ext-diff", "--no-textconv", "--binary", "--no-index", "--", os.DevNull,
			name)
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
			return s, fmt.Errorf("reading %s of %s: %w", name, dir, err)
		}
		s.Diff = append(s.Diff, out...)
	}
	s.count()
	return s, nil
}

// count counts the diff's files by their headers, and its lines as `git diff --stat` does.
func (s *State) count() {
	s.dirty = len(s.Diff) > 0
	inHunk := 0 // lines of the hunk still to come, of both sides
	for line := range bytes.Lines(s.Diff) {
		switch {
		case inHunk > 0 && line[0] == '+':
			s.added++
			inHunk--
		case inHunk > 0 && line[0] == '-':
			s.removed++
			inHunk--
		case inHunk > 0 && (line[0] == ' ' || line[0] == '\n'):
			inHunk -= 2
		case bytes.HasPrefix(line, []byte("diff --git ")):
			s.files++
		case bytes.HasPrefix(line, []byte("@@ -")):
			inHunk = hunk(line)
		}
	}
}

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// hunk returns how many lines a hunk has, of both sides together.
func hunk(line []byte) int {
	n := 0
	m := hunkHeader.FindSubmatch(line)
	if m == nil {
		return 0
	}
	for _, side := range m[1:] {
		length := 1
		if len(side) > 0 {
			length, _ = strconv.Atoi(string(side)) // always digits, because the expression matched
		}
		n += length
	}
	return n
}

// Sentence describes the tree in one sentence.
func (s State) Sentence() string {
	switch {
	case s.Commit == "":
		return "the tree is in no git repository: what it was made from is not known"
	case !s.dirty:
		return "commit " + s.Commit + ", nothing changed"
	}
	sum := sha256.Sum256(s.Diff)
	return fmt.Sprintf(
		"commit %s with uncommitted changes: %d files, +%d -%d lines, SHA-256 of the diff %s",
		s.Commit,
		s.files,
		s.added,
		s.removed,
		hex.EncodeToString(sum[:]),
	)
}

// git runs git in a directory, without git's optional writes.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-C", dir}, args...)...)
	cmd.Env = append(outsideRepository(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		said := strings.TrimSpace(stderr.String())
		if full := noRoom(said); full != nil {
			err = full
		}
		return stdout.Bytes(), fmt.Errorf(
			"running git %s: %w: %s",
			strings.Join(args, " "),
			err,
			said,
		)
	}
	return stdout.Bytes(), nil
}

// outsideRepository returns the environment without what tells git which repository to use. A hook, or git bisect run in a
// linked worktree, sets these, and git would act on that repository in place of the one in a folder.
func outsideRepository() []string {
	own := []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
		"GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX",
		"GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE"} // git rev-parse --local-env-vars lists them
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(own, name)
	})
}

var listedRelease = regexp.MustCompile(`(?m)^- \[(v[0-9]+\.[0-9]+\.[0-9]+)\]`)

// VersionOfTree returns the version of a tree without a tag. It is the version in the name of the tree's folder in a
// module cache, and exact is then true. Otherwise it is the newest release in Kubernetes' change log, which is one
// patch behind at a release. It is "" if there is neither.
func VersionOfTree(dir string) (version string, exact bool) {
	if abs, err := filepath.Abs(dir); err == nil {
		if _, v, ok := strings.Cut(filepath.Base(abs), "@"); ok && printedVersion.FindString(v) == v {
			return v, true
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "CHANGELOG", "CHANGELOG-*.*.md"))
	if err != nil || len(logs) != 1 {
		return "", false // a branch under development lists many
	}
	text, err := os.ReadFile(logs[0])
	if m := listedRelease.FindSubmatch(text); err == nil && m != nil {
		return string(m[1]), false
	}
	return "", false
}

// Resolve returns the version of a module that a query (a version, a branch, latest) means. It asks the go command, and
// fetches no source.
func Resolve(ctx context.Context, module, query string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=mod", "-m", "-f", "{{.Version}}", module+"@"+query)
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GO111MODULE=on")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		return "", fetching(
			ctx,
			"go",
			said,
			fmt.Errorf("looking for %s@%s: %w: %s", module, query, err, said),
		)
	}
	return strings.TrimSpace(stdout.String()), nil
}
