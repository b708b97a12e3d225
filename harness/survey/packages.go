package survey

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Packages are import paths.
type Packages struct {
	Paths []string
	From  map[string]string // where the scenario has each
	// Unresolved are names of packages that stand for no known import path, with where the scenario has them.
	Unresolved []string
}

// functionFields are the fields of checks that name functions.
var functionFields = []string{"frames", "func", "heapFunc", "own", "sides", "under"}

// PackagesOf derives the packages that decide a bug from its scenario: those that the pairs' mutations change, and those of
// the functions that exposure and signature name. A function may be written with the last element of its import path
// alone. Its package is then the one of that name which a mutation, a constant or another function has in full.
func PackagesOf(s *scenario.Scenario) Packages {
	out := Packages{From: map[string]string{}}
	add := func(pkg, from string) {
		if first, _, _ := strings.Cut(pkg, "/"); !strings.Contains(first, ".") {
			return // of Go itself
		}
		if out.From[pkg] == "" {
			out.Paths = append(out.Paths, pkg)
			out.From[pkg] = from
		}
	}
	known := []string{} // full import paths that short ones may stand for
	for _, pair := range s.Spec.Pairs {
		for _, arm := range pair.Arms {
			for _, m := range arm.Source.Mutations {
				if pkg := mutated(m); pkg != "" {
					known = append(known, pkg)
					add(pkg, "what pair "+pair.Name+" mutates")
				}
			}
		}
	}
	for _, c := range s.Spec.Constants {
		known = append(known, c.Package)
	}
	named := slices.Concat(
		functions(s.Spec.Signature, "signature"),
		functions(s.Spec.Exposure, "exposure"),
	)
	for _, f := range named {
		if strings.Contains(f.pkg, "/") {
			known = append(known, f.pkg)
		}
	}
	for _, f := range named {
		if strings.Contains(f.pkg, "/") {
			add(f.pkg, f.from)
			continue
		}
		found := false
		for _, pkg := range known {
			if lastElement(pkg) == f.pkg {
				found = true
				add(pkg, f.from)
			}
		}
		if text := f.pkg + " (" + f.from + ")"; !found && !slices.Contains(out.Unresolved, text) {
			out.Unresolved = append(out.Unresolved, text)
		}
	}
	return out
}

// Describe says which packages there are, and where each was found.
func (p Packages) Describe() string {
	var said []string
	for _, pkg := range p.Paths {
		if from := p.From[pkg]; from != "" {
			pkg += " (" + from + ")"
		}
		said = append(said, pkg)
	}
	text := strings.Join(said, ", ")
	if len(p.Unresolved) > 0 {
		text += "; it is not known what packages these are: " + strings.Join(p.Unresolved, ", ")
	}
	return text
}

func mutated(m scenario.Mutation) string {
	spec := struct {
		Package string `json:"package"`
	}{}
	if json.Unmarshal(m.Spec, &spec) != nil { // can't happen: the scenario was validated
		return ""
	}
	return spec.Package
}

// function is the package of a function that a check names: its import path, or the last element of that.
type function struct{ pkg, from string }

// functions returns the packages of the functions that checks name.
func functions(checks []scenario.Check, list string) (out []function) {
	for _, c := range checks {
		out = append(out, functions(c.AnyOf, list)...)
		var spec map[string]any
		if json.Unmarshal(c.Spec, &spec) != nil { // a group has none
			continue
		}
		for _, field := range functionFields {
			for _, f := range texts(spec[field]) {
				if pkg := packageOf(f); pkg != "" {
					out = append(
						out,
						function{
							pkg,
							fmt.Sprintf("%s of the check %s of the %s", field, c.Name, list),
						},
					)
				}
			}
		}
	}
	return out
}

// texts returns the strings of a value, which may be a list of lists.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			out = append(out, texts(one)...)
		}
	}
	return out
}

// packageOf returns the package of a function as a stack names it: k8s.io/a/b of k8s.io/a/b.(*T).f, b of b.(*T).f. It
// is "" for a name without a package.
func packageOf(f string) string {
	dir, base := path.Split(f)
	pkg, _, has := strings.Cut(base, ".")
	if !has {
		return ""
	}
	return dir + pkg
}

// majorVersion matches the last element of a module's path that no package is named after.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// lastElement returns the element of an import path by which stacks name a package.
func lastElement(pkg string) string {
	if base := path.Base(pkg); !majorVersion.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(pkg))
}
