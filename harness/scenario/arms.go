package scenario

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// Pair is a vulnerable and a fixed arm. A run uses the default pair unless it names another.
type Pair struct {
	Name     string   `json:"name"`
	Doc      string   `json:"doc,omitempty"`
	Default  bool     `json:"default,omitempty"`
	Modelled []string `json:"modelled,omitempty" jsonschema:"what this pair only imitates, in one sentence each; the verdict lists the sentences"`
	// Args are for versions that need a flag which others refuse. Such a pair takes no candidates, which may be of
	// other versions.
	Args map[string]map[string]string `json:"args,omitempty" jsonschema:"flags that both arms of this pair get in addition to spec.args, in the same form; a pair with args takes no candidates"`
	// Set is, for example, for arms that are slower than those of other pairs.
	Set map[string]Scalar `json:"set,omitempty" jsonschema:"settings of this pair's trials, as --set takes them: name -> value; --set takes precedence"`
	// ClusterVersion is for releases of which another component can't be had, and lets one control plane serve both arms.
	ClusterVersion string `json:"clusterVersion,omitempty" jsonschema:"with placement cluster, the Kubernetes version of the clusters of all arms that may run in it by the version skew policy, vX.Y.Z, so that the arms differ in the subject alone; the default is each arm's own version"`
	Arms           []Arm  `json:"arms"`
}

// The roles of arms.
const (
	Vulnerable = "vulnerable"
	Fixed      = "fixed"
	Candidate  = "candidate"
)

// GivenPrefix begins the names of the arms of several builds that a user gave, where they share a trial.
const GivenPrefix = Candidate + "-"

// IsGiven reports whether an arm of this name is a build that a user gave. No scenario's own arm or candidate may have
// such a name.
func IsGiven(arm string) bool { return arm == Candidate || strings.HasPrefix(arm, GivenPrefix) }

// Arm is one build of the subject.
type Arm struct {
	Name   string `json:"name"`
	Role   string `json:"role" jsonschema:"vulnerable or fixed; each pair has exactly one arm of each role"`
	Source Source `json:"source"`
}

// Source says what an arm is built from. Binary is the user's executable and is used unchanged.
type Source struct {
	// Fixture is the source of a subject that is part of this repository.
	Fixture   string     `json:"fixture,omitempty" jsonschema:"the name of one of relapse's fixtures that has its own go.mod, or ./FOLDER for a Go module in the scenario's own folder"`
	Module    string     `json:"module,omitempty"`
	Version   string     `json:"version,omitempty"`
	Package   string     `json:"package,omitempty"`
	Mutations []Mutation `json:"mutations,omitempty"`
	// Replace is for pairs whose arms differ in the version of a module that the program requires.
	Replace map[string]string `json:"replace,omitempty" jsonschema:"module -> the version to build in place of the version that the arm's go.mod requires"`
	// Unoptimized is for incidents that depend on memory staying reachable which a current compiler would free.
	Unoptimized []string `json:"unoptimized,omitempty" jsonschema:"import paths of packages that are compiled without optimization"`
	// Race is for arms whose race detector is to name both sides of a race. Such arms are several times slower.
	Race   bool   `json:"race,omitempty" jsonschema:"built with Go's race detector, which needs a C compiler"`
	Dir    string `json:"dir,omitempty" jsonschema:"a folder on this machine with the module's source, to build in place of the published version"`
	Binary string `json:"binary,omitempty" jsonschema:"the path of an executable on this machine"`
	// Tree is set by the plan, for a fixture in the scenario's own folder.
	Tree string `json:"tree,omitempty" jsonschema:"SHA-256 over the files of dir, by which a run knows that they are those of its plan"`
	// Release is set by the run, which decides whether its programs are taken as published.
	Release *Release `json:"release,omitempty" jsonschema:"the program that the module's project published at version, which a run takes in place of a build"`
	// Before is for incidents of an upgrade. The arm is told by this source, its last build.
	Before []Earlier `json:"before,omitempty" jsonschema:"builds that the arm runs before this one, in order; it starts with the first, and the fault process with the action replace puts the next in its place"`
	// The remaining fields are for candidates only. With Binary, Image and NodeImage, Version is the version that the
	// executable reports, "" if it reports none.
	Patch     string `json:"patch,omitempty" jsonschema:"a patch that dir has upon version, for the record"`
	PatchSum  string `json:"patchSum,omitempty" jsonschema:"SHA-256 of the patch's file, for the record"`
	Commit    string `json:"commit,omitempty" jsonschema:"the hash of the commit that dir has, for the record"`
	Ref       string `json:"ref,omitempty" jsonschema:"the branch, tag or other reference that stood for commit"`
	Fork      string `json:"fork,omitempty" jsonschema:"PATH@VERSION of a published fork that replaces the module"`
	Image     string `json:"image,omitempty" jsonschema:"an image that contains the executable: a reference that the container engine knows, or an archive"`
	NodeImage string `json:"nodeImage,omitempty" jsonschema:"a node image that contains the kubelet to use: a reference or an archive"`
}

// Release is a program as its project published it. It is empty until the program was got.
type Release struct {
	From   string `json:"from,omitempty" jsonschema:"the file's URL, or the image with its digest"`
	SHA256 string `json:"sha256,omitempty" jsonschema:"of the program"`
	Go     string `json:"go,omitempty" jsonschema:"the Go version that built it"`
}

// OwnFixture reports whether a fixture's name stands for a folder next to the scenario's file.
func OwnFixture(name string) bool { return strings.HasPrefix(name, "./") }

// Earlier is a build that an arm runs before its last one. A file may leave out what is as in the arm's source.
type Earlier struct {
	Fixture     string            `json:"fixture,omitempty" jsonschema:"the name of one of relapse's fixtures that has its own go.mod, or ./FOLDER for a Go module in the scenario's own folder"`
	Module      string            `json:"module,omitempty"`
	Version     string            `json:"version,omitempty"`
	Package     string            `json:"package,omitempty"`
	Mutations   []Mutation        `json:"mutations,omitempty"`
	Replace     map[string]string `json:"replace,omitempty" jsonschema:"module -> the version to build in place of the version that go.mod requires"`
	Unoptimized []string          `json:"unoptimized,omitempty" jsonschema:"import paths of packages that are compiled without optimization"`
	Race        bool              `json:"race,omitempty" jsonschema:"built with Go's race detector, which needs a C compiler"`
	Dir         string            `json:"dir,omitempty" jsonschema:"a folder on this machine with the module's source, to build in place of the published version"`
	Binary      string            `json:"binary,omitempty" jsonschema:"the path of an executable on this machine"`
	Tree        string            `json:"tree,omitempty" jsonschema:"SHA-256 over the files of dir, by which a run knows that they are those of its plan"`
}

// Source returns the build as the source of an arm.
func (e Earlier) Source() Source {
	return Source{
		Fixture:     e.Fixture,
		Module:      e.Module,
		Version:     e.Version,
		Package:     e.Package,
		Mutations:   e.Mutations,
		Replace:     e.Replace,
		Unoptimized: e.Unoptimized,
		Race:        e.Race,
		Dir:         e.Dir,
		Binary:      e.Binary,
		Tree:        e.Tree,
	}
}

// Builds returns the sources of all builds that an arm runs, in order. The last one is s itself.
func (s Source) Builds() []Source {
	var out []Source
	for _, e := range s.Before {
		out = append(out, e.Source())
	}
	s.Before = nil
	return append(out, s)
}

// Given reports whether the source is an existing executable, in whatever way it was built.
func (s Source) Given() bool { return s.Binary != "" || s.Image != "" || s.NodeImage != "" }

// Change names the patch or the commit that a candidate's source has, with the first 12 digits of its hash: "the patch
// fix.patch (SHA-256 0123456789ab)", "commit 0123456789ab (my-backport)". It is "" for a source that has neither.
func (s Source) Change() string {
	switch {
	case s.Patch != "" && s.PatchSum == "":
		return "the patch " + filepath.Base(s.Patch) + " (its SHA-256 was not recorded)"
	case s.Patch != "":
		return fmt.Sprintf("the patch %s (SHA-256 %.12s)", filepath.Base(s.Patch), s.PatchSum)
	case s.Commit != "" && s.Ref != "" && s.Ref != s.Commit:
		return fmt.Sprintf("commit %.12s (%s)", s.Commit, s.Ref)
	case s.Commit != "":
		return fmt.Sprintf("commit %.12s", s.Commit)
	}
	return ""
}

// Published reports whether the source is Module as it was published at Version.
func (s Source) Published() bool {
	return s.Module != "" && s.Version != "" && s.Dir == "" && s.Fork == "" && s.Fixture == "" &&
		!s.Given()
}

// Mutation is a semantic rewrite of the source. It must change exactly Sites places, or the build fails.
type Mutation struct {
	Kind     string          `json:"kind"`
	Sites    int             `json:"sites" jsonschema:"how many places the mutation must change, at least 1; any other number fails the build; the default is 1"`
	Versions string          `json:"versions,omitempty" jsonschema:"semver range of the versions that the mutation applies to, which must contain the arm's version: >=1.14.0 <1.36.0; the default is every version"`
	Spec     json.RawMessage `json:"spec"`
}
