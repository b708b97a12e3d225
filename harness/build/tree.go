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
	"strconv"
	"strings"
)

// State is what version control knows about a source tree.
type State struct {
	Commit  string // "" where the tree is in no repository
	Version string // of the nearest tag, vX.Y.Z…; "" if there is none
	Dirty   bool   // it differs from Commit
	Diff    []byte // how, as git prints it, with the files that git doesn't know of and doesn't ignore
	Files   int    // that differ
	Added   int    // lines
	Removed int
}

// maxUnknown is the most untracked files that a diff includes; more of them are left over from a build.
const maxUnknown = 500

// LookAt asks git about a tree and writes nothing, not even git's index. A tree without a repository has no state,
// which is no error.
func LookAt(ctx context.Context, dir string) (State, error) {
	var s State
	if _, err := git(ctx, dir, "ls-files", "--error-unmatch", "go.mod"); err != nil {
		var exit *exec.ExitError
		around := errors.As(err, &exit) && exit.ExitCode() == 1 // the repository only happens to lie around it
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
		"HEAD"); err == nil { // it may have no tags
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
		return s, fmt.Errorf("git knows nothing of %d files in %s and doesn't ignore them: want at most %d, so that "+
			"the diff says what was built", len(names), dir, maxUnknown)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		// It exits with 1 for a difference, which there always is.
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

// count counts what the diff says: files by their headers, lines as `git diff --stat` does.
func (s *State) count() {
	s.Dirty = len(s.Diff) > 0
	inHunk := 0 // lines of the hunk that are still to come, on either side
	for line := range bytes.Lines(s.Diff) {
		switch {
		case inHunk > 0 && line[0] == '+':
			s.Added++
			inHunk--
		case inHunk > 0 && line[0] == '-':
			s.Removed++
			inHunk--
		case inHunk > 0 && (line[0] == ' ' || line[0] == '\n'):
			inHunk -= 2
		case bytes.HasPrefix(line, []byte("diff --git ")):
			s.Files++
		case bytes.HasPrefix(line, []byte("@@ -")):
			inHunk = hunk(line)
		}
	}
}

var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// hunk is how many lines of both sides a hunk has.
func hunk(line []byte) int {
	n := 0
	m := hunkHeader.FindSubmatch(line)
	if m == nil {
		return 0
	}
	for _, side := range m[1:] {
		length := 1
		if len(side) > 0 {
			length, _ = strconv.Atoi(string(side)) // digits, by the expression
		}
		n += length
	}
	return n
}

// Sentence says in short what the tree is.
func (s State) Sentence() string {
	switch {
	case s.Commit == "":
		return "the tree is in no git repository: what it was made from is not known"
	case !s.Dirty:
		return "commit " + s.Commit + ", nothing changed"
	}
	sum := sha256.Sum256(s.Diff)
	return fmt.Sprintf("commit %s with uncommitted changes: %d files, +%d -%d lines, SHA-256 of the diff %s", s.Commit,
		s.Files, s.Added, s.Removed,
		hex.EncodeToString(sum[:]))
}

// git runs git in a directory, without its optional writes.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return stdout.Bytes(), fmt.Errorf("running git %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

var listedRelease = regexp.MustCompile(`(?m)^- \[(v[0-9]+\.[0-9]+\.[0-9]+)\]`)

// VersionOfTree is the version of a tree without a tag: that of its folder's name in a module cache, or the newest
// release in Kubernetes' change log, which is one patch behind at a release; "" if there is neither. exact says that
// it is the first.
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

// Resolve asks the go command which version of a module a query (a version, a branch, latest) means. It fetches no
// source.
func Resolve(ctx context.Context, module, query string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=mod", "-m", "-f", "{{.Version}}", module+"@"+query)
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GO111MODULE=on")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("looking for %s@%s: %w: %s", module, query, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
