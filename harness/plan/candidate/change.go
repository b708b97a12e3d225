package candidate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// This file reads candidates as people have them: a change, not a tree that is laid out on this host.

// patched returns the source for a patch upon a published version: FILE@VERSION.
func patched(ctx context.Context, a asked) (*scenario.Source, error) {
	at := strings.LastIndexByte(a.rest, '@')
	if at <= 0 || !wholeVersion.MatchString(a.rest[at+1:]) {
		return nil, hinted{errors.New("it doesn't say which version the patch is for"),
			"want patch:FILE@VERSION, for example patch:" + a.rest + "@" + a.exampleVersion()}
	}
	name, version := a.rest[:at], a.rest[at+1:]
	if a.like.Fixture != "" || a.like.Module == "" {
		return nil, hinted{
			fmt.Errorf("the subject %s is no published module", a.subject()),
			"src:DIR, a tree with the patch in it",
		}
	}
	file, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, hinted{err, "give the file of a diff, or of git format-patch"}
	}
	sum := sha256.Sum256(text)
	src := &scenario.Source{
		Module:   a.like.Module,
		Version:  version,
		Patch:    file,
		PatchSum: hex.EncodeToString(sum[:]),
	}
	err = a.withBuilder(func(b *build.Builder) error {
		p, err := b.Patch(ctx, a.like.Module, version, a.like.Package, text)
		src.Dir = p.Dir
		return err
	})
	if refused := (*build.PatchError)(nil); errors.As(err, &refused) {
		return nil, hinted{
			err,
			"make the patch with git diff or git format-patch upon " + version + ", or give the whole tree: src:DIR",
		}
	}
	return src, err
}

// commit returns the source for a commit of a repository: URL@REF.
func commit(ctx context.Context, a asked) (*scenario.Source, error) {
	at := strings.LastIndexByte(a.rest, '@')
	if at <= 0 || at == len(a.rest)-1 {
		return nil, hinted{
			errors.New("it has no repository and reference"),
			"want git:URL@REF, a branch, a tag or a commit, for example git:../kubernetes@my-backport",
		}
	}
	return a.checkedOut(ctx, a.rest[:at], a.rest[at+1:])
}

// pullRequest returns the source for the merge of a pull request: NUMBER, or NUMBER@URL for another repository than the
// module's own.
func pullRequest(ctx context.Context, a asked) (*scenario.Source, error) {
	number, url, own := strings.Cut(a.rest, "@")
	if n, err := strconv.Atoi(number); err != nil || n < 1 {
		return nil, hinted{
			fmt.Errorf("%q is no number of a pull request", number),
			"want pr:NUMBER, or pr:NUMBER@URL for a repository of your own",
		}
	}
	if !own {
		if url = repositoryOf(a.like.Module); url == "" {
			return nil, hinted{
				fmt.Errorf("the repository of %s isn't known", a.like.Module),
				"pr:" + number + "@URL names it",
			}
		}
	}
	src, err := a.checkedOut(ctx, url, "refs/pull/"+number+"/merge")
	if err == nil || ctx.Err() != nil {
		return src, err
	}
	var h hinted
	if errors.As(err, &h) {
		err = h.error
	}
	return nil, hinted{
		err,
		"a pull request that is closed, or has conflicts, has no merge: git:URL@BRANCH takes its branch, and patch:FILE@VERSION its diff",
	}
}

// checkedOut returns the source for a commit that a reference stands for.
func (a asked) checkedOut(ctx context.Context, url, ref string) (*scenario.Source, error) {
	var c build.Checkout
	err := a.withBuilder(func(b *build.Builder) (err error) {
		c, err = b.Checkout(ctx, url, ref)
		return err
	})
	if err != nil {
		return nil, hinted{
			err,
			"git ls-remote " + url + " shows what it has; a tree on this host: src:DIR",
		}
	}
	a.rest = c.Dir
	if c.Tag != "" {
		a.rest += "@" + c.Tag
	}
	src, err := sourceTree(ctx, a)
	if err == nil {
		src.Commit, src.Ref = c.Commit, ref
	}
	return src, err
}

// withBuilder calls do with a builder upon the cache.
func (a asked) withBuilder(do func(*build.Builder) error) error {
	store, err := cache.Open(a.cacheDir)
	if err != nil {
		return err
	}
	return errors.Join(do(&build.Builder{Cache: store}), store.Close())
}

// exampleVersion returns a version that fits the scenario.
func (a asked) exampleVersion() string {
	if a.like.Version != "" {
		return a.like.Version
	}
	return a.scenario.Spec.Version
}

// repositoryOf returns the address of a module's repository on GitHub, "" if it isn't known.
func repositoryOf(module string) string {
	switch parts := strings.Split(module, "/"); {
	case module == "k8s.io/kubernetes":
		return "https://github.com/kubernetes/kubernetes"
	case parts[0] == "github.com" && len(parts) >= 3:
		return "https://" + strings.Join(parts[:3], "/")
	}
	return ""
}
