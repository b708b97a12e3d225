package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// Checkout is the source tree of a commit.
type Checkout struct {
	Dir    string // in the cache
	Commit string // its hash, hex
	Tag    string // a tag of the commit that is a version, "" if it has none
}

// Checkout fetches one commit of a repository by the name of a branch, a tag, another reference or its hash. url is
// what git takes, also the path of a repository on this host. Only that commit's files are fetched, none of its history.
func (b *Builder) Checkout(ctx context.Context, url, ref string) (Checkout, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return Checkout{}, errors.New("git is not on PATH (as root on Debian: apt-get install -y git)")
	}
	if info, err := os.Stat(url); err == nil && info.IsDir() { // git would take a relative path from another folder
		if url, err = filepath.Abs(url); err != nil {
			return Checkout{}, err
		}
	}
	commit, tag, err := b.lookUp(ctx, url, ref)
	if err != nil {
		return Checkout{}, err
	}
	fetch := func(ctx context.Context, dir string) error {
		for _, args := range [][]string{
			{"init", "--quiet"},
			{"fetch", "--quiet", "--depth", "1", "--no-tags", "--", url, commit},
			{"-c", "advice.detachedHead=false", "checkout", "--quiet", commit},
		} {
			if _, err := git(ctx, dir, args...); err != nil {
				return err
			}
		}
		return nil
	}
	for range 2 {
		dir, _, err := b.Cache.Do(ctx, "commit", commit, fetch)
		if err != nil {
			return Checkout{}, fmt.Errorf("fetching commit %s of %s: %w", commit, url, err)
		}
		s, err := LookAt(ctx, dir)
		if err == nil && s.Commit == commit && !s.dirty {
			return Checkout{Dir: dir, Commit: commit, Tag: tag}, nil
		}
		b.report("the tree of commit %s in the cache was changed: fetching it again", commit)
		if err := b.Cache.Remove("commit", commit); err != nil {
			return Checkout{}, err
		}
	}
	return Checkout{}, fmt.Errorf(
		"the tree of commit %s isn't clean as it was fetched: it has no go.mod, or git changes its files "+
			"when it checks them out",
		commit,
	)
}

var (
	wholeHash  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	versionTag = regexp.MustCompile(`^refs/tags/(v\d+\.\d+\.\d+[^^]*)(\^\{\})?$`)
)

// lookUp returns the commit that a reference stands for, and the version that a tag gives it.
func (b *Builder) lookUp(ctx context.Context, url, ref string) (commit, tag string, err error) {
	out, err := git(ctx, b.Cache.Dir(), "ls-remote", "--", url)
	if err != nil {
		return "", "", fmt.Errorf("asking %s for its branches and tags: %w", url, err)
	}
	at := map[string]string{} // the commit of each reference; that of an annotated tag stands behind it with ^{}
	var names []string
	for line := range strings.Lines(string(out)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		at[strings.TrimSuffix(name, "^{}")] = hash
		names = append(names, name)
	}
	if wholeHash.MatchString(ref) {
		commit = ref
	}
	branch, tagged := at["refs/heads/"+ref], at["refs/tags/"+ref]
	if commit == "" && branch != "" && tagged != "" && branch != tagged {
		return "", "", fmt.Errorf(
			"%s in %s is a branch and a tag, of different commits: want refs/heads/%[1]s or refs/tags/%[1]s",
			ref,
			url,
		)
	}
	commit = cmp.Or(commit, at[ref], branch, tagged, at["refs/"+ref])
	if commit == "" {
		return "", "", fmt.Errorf(
			"%s has no branch, tag or other reference %q (of %d), and it is no whole hash of a commit",
			url,
			ref,
			len(names),
		)
	}
	for _, name := range names {
		if m := versionTag.FindStringSubmatch(name); m != nil && at["refs/tags/"+m[1]] == commit && (tag == "" || semver.Compare(m[1], tag) > 0) {
			tag = m[1]
		}
	}
	return commit, tag, nil
}
