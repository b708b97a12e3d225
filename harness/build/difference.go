package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mostDifference is how many bytes of a difference are kept: a tree of another branch differs in far more than anyone
// reads.
const mostDifference = 1 << 20

// differenceFile is the file of a cache entry that has a difference.
const differenceFile = "source.diff"

// Difference returns how the files that go into a source's program differ from those of another source, as git prints it,
// below a comment that says what is compared. Paths are those of imports, so that a folder of a repository is compared
// with the module that is published from it, and vendored code with the module's own. Mutations and the standard library
// are left out. Of a difference of more than 1 MiB the end is cut off, and a comment says so. built is the Key of the
// Result that the source was built to; a tree that has changed since is refused.
func (b *Builder) Difference(
	ctx context.Context,
	src, base Source,
	built string,
) ([]byte, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("the sources are compared by git, which is not on PATH")
	}
	tc, own, err := b.keyOf(ctx, src)
	if err != nil {
		return nil, err
	}
	if own != built {
		return nil, fmt.Errorf("the tree %s was changed after it was built", src.Dir)
	}
	key, err := base.key(tc, "difference with settings", own)
	if err != nil {
		return nil, err
	}
	dir, _, err := b.Cache.Do(ctx, "difference", key, func(ctx context.Context, dir string) error {
		out, err := b.compare(ctx, src, base, dir)
		if err != nil {
			return err
		}
		if _, now, err := b.keyOf(ctx, src); err != nil {
			return err
		} else if now != own {
			return fmt.Errorf("the tree %s was changed while it was compared", src.Dir)
		}
		return os.WriteFile(filepath.Join(dir, differenceFile), out, 0o644)
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, differenceFile))
}

// compare lays down the files that differ in two trees below dir, has git compare these, and removes them.
func (b *Builder) compare(
	ctx context.Context,
	src, base Source,
	dir string,
) (out []byte, err error) {
	sides, set, mutations := [2]map[string]string{}, [2]map[string]string{}, base.Mutations
	base.Mutations, src.Mutations = nil, nil // which have a record of their own
	for i, s := range []Source{base, src} {
		work := filepath.Join(dir, fmt.Sprintf("work%d", i))
		if sides[i], set[i], err = b.inputs(ctx, s, work); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	all := maps.Clone(sides[0])
	maps.Copy(all, sides[1])
	differ := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var texts [2][]byte
		for i, side := range sides {
			if texts[i], err = readIn(side, name); err != nil {
				return nil, err
			}
		}
		_, was := sides[0][name]
		_, is := sides[1][name]
		if was == is && bytes.Equal(texts[0], texts[1]) {
			continue
		}
		differ++
		for i, there := range []bool{was, is} {
			if there {
				if err := lay(filepath.Join(dir, []string{"a", "b"}[i], filepath.FromSlash(name)), texts[i]); err != nil {
					return nil, err
				}
			}
		}
	}
	from := base.Module + " " + base.Version
	if base.Dir != "" {
		from = "the source in " + filepath.Base(base.Dir)
	}
	if len(mutations) > 0 {
		from += " before its mutations"
	}
	out = fmt.Appendf(
		nil,
		"# What goes into %s: %s (-) and the source that was built (+). Of %d files, %d differ.\n",
		programName(src.Packages[0]),
		from,
		len(all),
		differ,
	)
	for _, what := range slices.Sorted(maps.Keys(set[0])) {
		if is, both := set[1][what]; both && is != set[0][what] {
			out = fmt.Appendf(out, "# %s: %q (-), and %q (+)\n", what, set[0][what], is)
		}
	}
	if differ == 0 {
		return out, nil
	}
	diff, err := gitDifference(ctx, dir)
	return append(out, cutOff(diff)...), err
}

// inputs maps the files that go into a source's program to where they are, by the import path of their package and their
// name, and what go.mod and go.work set for the compiler and the program. What has to be generated to find them out is
// written to work.
func (b *Builder) inputs(
	ctx context.Context,
	src Source,
	work string,
) (files, set map[string]string, err error) {
	c := command{dir: work, stage: fmt.Sprintf("listing what goes into %s", src)}
	mod := "mod"
	if src.InPlace {
		t, why, err := b.openTree(ctx, src)
		if err != nil {
			return nil, nil, err
		}
		if why == "" {
			c.dir, c.env, mod = t.root, t.env(), t.mod
		}
	}
	if c.dir == work {
		if _, err := b.generate(ctx, src, work); err != nil {
			return nil, nil, err
		}
	}
	files, set = map[string]string{}, map[string]string{}
	list, err := b.list(ctx, c, mod, src)
	for _, p := range list {
		if p.Standard {
			continue
		}
		if p.Module != nil && p.Module.Path == src.Module {
			set["the version of Go in which "+src.Module+" is compiled"] = p.Module.language()
		}
		if slices.Contains(src.Packages, p.ImportPath) {
			set["the GODEBUG settings of "+programName(p.ImportPath)] = p.DefaultGODEBUG
		}
		for _, f := range p.files() {
			if name := path.Join(p.ImportPath, filepath.ToSlash(f)); name != path.Join(kubernetes, openapiFile) { // make generates it of the others
				files[name] = filepath.Join(p.Dir, f)
			}
		}
	}
	return files, set, err
}

// list lists the packages that go into a source's programs, each with the files that a build chooses.
func (b *Builder) list(
	ctx context.Context,
	c command,
	mod string,
	src Source,
) (all []listed, err error) {
	c.env = append(slices.Clone(c.env), src.cgo())
	c.args = slices.Concat([]string{
		"list",
		"-mod=" + mod,
		"-deps",
		"-json=ImportPath,Dir,Standard,GoFiles,CgoFiles,CFiles,SFiles,HFiles,SysoFiles,EmbedFiles,DefaultGODEBUG,Module",
	},
		src.choosing(), src.Packages)
	out, err := b.run(ctx, c)
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading go list: %w", err)
		}
		all = append(all, p)
	}
}

// readIn reads the file of that name; nil if the side has none.
func readIn(side map[string]string, name string) ([]byte, error) {
	file, ok := side[name]
	if !ok {
		return nil, nil
	}
	return os.ReadFile(file)
}

func lay(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// gitDifference returns what git says of the trees a and b in a folder, whatever the user's own git is set to, and
// removes them.
func gitDifference(ctx context.Context, dir string) (diff []byte, err error) {
	for _, side := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, side), 0o755); err != nil { // if all files are the other one's
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(filepath.Join(dir, side))) }()
	}
	cmd := exec.CommandContext(ctx, "git", "--no-pager", "diff", "--no-index", "--no-color", "--no-ext-diff", "--no-textconv",
		"--no-prefix", "--find-renames", "--", "a", "b")
	cmd.Dir = dir
	cmd.Env = append(
		outsideRepository(),
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
	)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 { // they differ
		return stdout.Bytes(), nil
	}
	if err == nil {
		err = errors.New("git finds no difference between files that differ")
	}
	return nil, fmt.Errorf(
		"comparing the sources: %w: %s",
		err,
		strings.TrimSpace(stderr.String()),
	)
}

// cutOff keeps the first lines of a difference that is too long.
func cutOff(diff []byte) []byte {
	if len(diff) <= mostDifference {
		return diff
	}
	kept := diff[:bytes.LastIndexByte(diff[:mostDifference], '\n')+1]
	return fmt.Appendf(
		slices.Clone(kept),
		"# Cut off here: the whole difference has %d bytes, with SHA-256 %x.\n",
		len(diff),
		sha256.Sum256(diff),
	)
}
