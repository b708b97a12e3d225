package scenario

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
	"golang.org/x/mod/module"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func (r *rules) version(path, v string) {
	if v == "" {
		return
	}
	if _, err := semver.Parse(strings.TrimPrefix(v, "v")); err != nil {
		r.add(
			path,
			"%q is not a semantic version: %s (want a version such as v1.34.4)",
			v,
			lower(err),
		)
	}
}

func (r *rules) source(path string, s Source) {
	if s.Version != r.s.Spec.Version { // which has been checked
		r.version(path+".version", s.Version)
	}
	_, invalid := semver.Parse(strings.TrimPrefix(s.Version, "v"))
	if _, major, ok := module.SplitPathVersion(s.Module); ok && invalid == nil && s.Dir == "" &&
		module.CheckPathMajor(s.Version, major) != nil {
		r.add(path+".version", "%s is no version of %s (want one of %s)", s.Version, s.Module, majors(major))
	}
	if s.Tree != "" {
		r.add(path+".tree", "is for plans (want the fixture alone)")
	}
	for _, f := range []struct{ name, value string }{{"patch", s.Patch}, {"patchSum", s.PatchSum}, {"commit", s.Commit}, {"ref", s.Ref}} {
		if f.value != "" {
			r.add(
				path+"."+f.name,
				"is for a candidate that is given on the command line (want mutations, or the files of a fixture)",
			)
		}
	}
	if s.Release != nil {
		r.add(
			path+".release",
			"is for plans (want the version alone: relapse run takes it as published if it can)",
		)
	}
	switch {
	case s.Fixture != "" && (s.Module != "" || s.Dir != "" || s.Binary != ""):
		r.add(path, "has a fixture and something else to build from (want one of them)")
	case OwnFixture(s.Fixture) && !filepath.IsLocal(s.Fixture):
		r.add(path+".fixture", "%q is not below the scenario's folder", s.Fixture)
	case s.Fixture != "":
	case s.Binary != "" && (s.Module != "" || s.Dir != "" || len(s.Mutations)+len(s.Replace) > 0):
		r.add(path, "has a binary and something to build (want one of them)")
	case s.Binary != "":
	case s.Module == "" || s.Package == "" || (s.Version == "" && s.Dir == ""):
		r.add(
			path,
			"is incomplete (want module, version and package; or module, dir and package; or binary)",
		)
	default:
		r.program(path+".package", s)
	}
	r.mutations(path+".mutations", s.Mutations, s.Version)
}

// majors says which versions a module has whose path ends in a major version, or in none.
func majors(suffix string) string {
	if suffix == "" {
		return "v0 or v1"
	}
	return strings.TrimLeft(suffix, "/.")
}

// mutations checks the mutations of a source with the given version.
func (r *rules) mutations(path string, list []Mutation, version string) {
	for i, m := range list {
		at := fmt.Sprintf("%s.%d", path, i)
		r.spec(kinds.Mutation, m.Kind, m.Spec, at)
		var where struct{ Package string }
		if json.Unmarshal(m.Spec, &where) == nil {
			r.foreign(at+".spec.package", where.Package)
		}
		if m.Versions == "" {
			continue
		}
		in, err := semver.ParseRange(m.Versions)
		if err != nil {
			r.add(
				at+".versions",
				"%q is not a range of versions: %s (want for example >=1.14.0 <1.36.0)",
				m.Versions,
				lower(err),
			)
		} else if v, err := semver.Parse(strings.TrimPrefix(version, "v")); err == nil && !in(v) {
			r.add(at+".versions", "%q leaves out the arm's own version %s", m.Versions, version)
		}
	}
}
