// Package candidate reads and inspects a build that the user gave. It refuses what can't work before anything is built.
package candidate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Error says why a candidate was refused, before anything was built or created for it.
type Error struct {
	Given string
	Err   error
	Hint  string // what to do next
}

// Error returns the reason, with the candidate as the user gave it.
func (e *Error) Error() string { return fmt.Sprintf("candidate %s: %v", e.Given, e.Err) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// forms lists the ways in which a user can give a candidate.
var forms = []struct {
	name, want string
	read       func(ctx context.Context, a asked) (*scenario.Source, error)
}{
	{"bin", "bin:PATH, an executable", binary},
	{"src", "src:DIR, a source tree", sourceTree},
	{"patch", "patch:FILE@VERSION, a patch upon a published version", patched},
	{"git", "git:URL@REF, a branch, tag or commit of a repository", commit},
	{"pr", "pr:NUMBER, a pull request", pullRequest},
	{"release", "release:VERSION, the program as its project published it", released},
	{"mod", "mod:PATH@VERSION, a published module", published},
	{"image", "image:REF, an image or an archive of one", programOfImage},
	{"nodeimage", "nodeimage:REF, a node image or an archive of one", kubeletOfImage},
}

// Forms returns the forms in which a candidate can be given, each with its colon, a tab and what follows it.
func Forms() (out []string) {
	for _, f := range forms {
		out = append(out, f.name+":\t"+strings.TrimPrefix(f.want, f.name+":"))
	}
	return out
}

// asked is a candidate that is being read.
type asked struct {
	rest     string // the text after the form's name and colon
	scenario *scenario.Scenario
	like     scenario.Source // a fixed arm of the scenario, of the default pair if it has one
	cacheDir string          // "" for the user's default cache
	engine   image.Engine    // nil if there is none
}

func (a asked) subject() string { return a.scenario.Spec.Subject }

// Read reads and inspects a candidate that the user gave for a scenario. If it can't work, the error is an *Error. The
// forms are those of `relapse run --candidate`. Without a form, a version is a published module's, a folder is a source
// tree, and a file is an executable. Programs are extracted from images into the cache at cacheDir, "" for the user's
// default cache. engine opens images that are no archives; nil if there is none.
func Read(ctx context.Context, s *scenario.Scenario, given, cacheDir string,
	engine image.Engine) (*scenario.Source, error) {
	a := newAsked(s, given)
	a.cacheDir, a.engine = cacheDir, engine
	read, err := formOf(&a)
	var src *scenario.Source
	if err == nil {
		src, err = read(ctx, a)
	}
	if err == nil {
		return src, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	refused := &Error{Given: given, Err: err}
	var h hinted
	if errors.As(err, &h) {
		refused.Err, refused.Hint = h.error, h.hint
	}
	if errors.As(refused.Err, new(*cache.FullError)) { // this host's fault, not the candidate's
		return nil, fmt.Errorf("candidate %s: %w", given, refused.Err)
	}
	return nil, refused
}

// Exactly returns the source of a candidate that was given as an exact version of the subject's own module, nil for any
// other. It asks nobody whether there is such a version: what the version alone rules out can be refused before.
func Exactly(s *scenario.Scenario, given string) *scenario.Source {
	a := newAsked(s, given)
	version := strings.TrimPrefix(given, "mod:"+a.like.Module+"@")
	if a.like.Module == "" || a.like.Fixture != "" || !wholeVersion.MatchString(version) {
		return nil
	}
	return &scenario.Source{Module: a.like.Module, Version: version}
}

// newAsked returns a candidate as it was given, with the arm that it stands beside.
func newAsked(s *scenario.Scenario, given string) asked {
	a := asked{rest: given, scenario: s}
	for _, p := range s.Spec.Pairs {
		for _, arm := range p.Arms {
			if arm.Role == scenario.Fixed && (a.like.Package == "" || p.Default) {
				a.like = arm.Source
			}
		}
	}
	return a
}

// hinted is an error that also says what to do next.
type hinted struct {
	error
	hint string
}

var wholeVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// formOf splits off the form, or works out the form of text that has none. It returns the function that reads it.
func formOf(a *asked) (func(context.Context, asked) (*scenario.Source, error), error) {
	name, rest, ok := strings.Cut(a.rest, ":")
	for _, f := range forms {
		if ok && f.name == name {
			if rest == "" {
				return nil, hinted{errors.New("nothing follows its form"), "want " + f.want}
			}
			a.rest = rest
			return f.read, nil
		}
	}
	if wholeVersion.MatchString(a.rest) && a.like.Fixture == "" {
		a.rest = a.like.Module + "@" + a.rest
		return published, nil
	}
	info, err := os.Stat(a.rest)
	switch {
	case err != nil && wholeVersion.MatchString("v"+a.rest):
		return nil, hinted{
			fmt.Errorf("versions begin with v; did you mean v%s?", a.rest),
			"--candidate v" + a.rest,
		}
	case errors.Is(err, fs.ErrNotExist):
		var want []string
		for _, f := range forms {
			want = append(want, f.want)
		}
		return nil, hinted{
			errors.New("there is no such file or folder, and it has no form that is known"),
			"want " + strings.Join(want, "; ") + "; or a version such as v1.34.7",
		}
	case err != nil:
		return nil, err
	case info.IsDir():
		return sourceTree, nil
	}
	return binary, nil
}

// binary returns the source for an executable of the user.
func binary(ctx context.Context, a asked) (*scenario.Source, error) {
	file, err := filepath.Abs(a.rest)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, hinted{err, "give the path of an executable"}
	case info.IsDir():
		return nil, hinted{errors.New("it is a folder"),
			"src:" + a.rest + " for a source tree, or the path of an executable"}
	case info.Mode()&0o111 == 0:
		return nil, hinted{errors.New("it is not executable"), "chmod +x " + a.rest}
	}
	p, err := build.Inspect(ctx, file, a.subject())
	if err != nil {
		return nil, hinted{
			err,
			"build one with CGO_ENABLED=0 GOOS=linux, or give its source tree: src:DIR",
		}
	}
	return &scenario.Source{Binary: file, Version: p.Version}, nil
}

// programOfImage returns the source for the subject's program in an image.
func programOfImage(ctx context.Context, a asked) (*scenario.Source, error) {
	p, err := a.extract(ctx)
	if err != nil {
		return nil, hinted{
			err,
			"docker images lists what the engine has; docker save -o FILE REF makes an archive",
		}
	}
	return &scenario.Source{Image: a.imageName(), Version: p.Version}, nil
}

// kubeletOfImage returns the source for the kubelet in a node image.
func kubeletOfImage(ctx context.Context, a asked) (*scenario.Source, error) {
	if row, _ := component.Of(a.subject()); row.Runs != component.AsService {
		return nil, hinted{
			fmt.Errorf(
				"the subject is %s, and of a node image only the kubelet is taken",
				a.subject(),
			),
			"image:REF takes a program out of its own image",
		}
	}
	p, err := a.extract(ctx, image.KubeletPlace)
	if err != nil {
		return nil, hinted{
			err,
			"docker images lists what the engine has; docker save -o FILE REF makes an archive",
		}
	}
	return &scenario.Source{NodeImage: a.imageName(), Version: p.Version}, nil
}

// imageName returns the image's reference, or the absolute path of its archive.
func (a asked) imageName() string {
	if info, err := os.Stat(a.rest); err == nil && info.Mode().IsRegular() {
		if abs, err := filepath.Abs(a.rest); err == nil {
			return abs
		}
	}
	return a.rest
}

// extract takes the subject's program out of an image and inspects it.
func (a asked) extract(ctx context.Context, places ...string) (p build.Program, err error) {
	dir := a.cacheDir
	if dir == "" {
		if dir, err = cache.DefaultDir(); err != nil {
			return p, err
		}
	}
	store, err := cache.Open(dir)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	out, err := image.Extract(ctx, store, a.engine, a.imageName(), a.subject(), places...)
	if err != nil {
		return p, err
	}
	if p, err = build.Inspect(ctx, out.Path, a.subject()); err != nil {
		return p, fmt.Errorf("%s in it: %w", out.At, err)
	}
	return p, nil
}

// published returns the source for a version of a module that the Go proxy has: the subject's own module, or a fork
// that replaces it.
func published(ctx context.Context, a asked) (*scenario.Source, error) {
	if a.like.Fixture != "" || a.like.Module == "" {
		return nil, hinted{
			fmt.Errorf("the subject %s is no published module", a.subject()),
			"src:DIR or bin:PATH",
		}
	}
	module, query, ok := strings.Cut(a.rest, "@")
	if !ok || module == "" || query == "" {
		return nil, hinted{errors.New("it has no module and version"),
			"want mod:PATH@VERSION, for example mod:" + a.like.Module + "@" + a.like.Version}
	}
	version, err := build.Resolve(ctx, module, query)
	if fetch := (*build.FetchError)(nil); errors.As(err, &fetch) {
		return nil, hinted{
			err,
			"relapse doctor shows the proxy and what it answers; without a network, give src:DIR or bin:PATH",
		}
	}
	if err != nil {
		return nil, hinted{err, "go list -m -versions " + module + " lists what there is"}
	}
	if module == a.like.Module {
		return &scenario.Source{Module: module, Version: version}, nil
	}
	return &scenario.Source{
		Module:  a.like.Module,
		Version: release(version),
		Fork:    module + "@" + version,
	}, nil
}

// released returns the source for the program that the subject's project published at a version. A run gets it.
func released(_ context.Context, a asked) (*scenario.Source, error) {
	src := &scenario.Source{
		Module:  a.like.Module,
		Version: a.rest,
		Package: a.like.Package,
		Release: &scenario.Release{},
	}
	if a.like.Fixture == "" && semver.Canonical(a.rest) != a.rest {
		return nil, hinted{
			errors.New("it is no version"),
			"want release:VERSION, for example release:" + a.exampleVersion(),
		}
	}
	if why := plan.Unpublished(a.subject(), *src); why != "" {
		return nil, hinted{fmt.Errorf("the subject %s", why), "src:DIR or bin:PATH"}
	}
	return src, nil
}

// release returns the number of the release that a fork's version is based on: v1.34.4 for v1.34.4-acme.2. It returns
// "" for a pseudo-version without a base.
func release(version string) string {
	base := strings.TrimSuffix(
		strings.TrimSuffix(semver.Canonical(version), semver.Build(version)),
		semver.Prerelease(version),
	)
	if strings.HasPrefix(base, "v0.0.0") {
		return ""
	}
	return base
}
