package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// Source says what to build.
type Source struct {
	Module    string            `json:"module"`         // k8s.io/kubernetes
	Version   string            `json:"version"`        // v1.34.4
	Fork      string            `json:"fork,omitempty"` // PATH@VERSION: a published fork's source in place of the module's own
	Dir       string            `json:"dir,omitempty"`  // the module's root on this machine, instead of what Version resolves to
	InPlace   bool              `json:"-"`              // Dir is built where it lies, as it is, if a current Go can
	Packages  []string          `json:"packages"`       // import paths of main packages
	Mutations []mutate.Mutation `json:"mutations"`      // applied in order
	LDFlags   []string          `json:"ldflags"`        // beside those that every arm gets
	// Replace has the versions of required modules, by path, that are built instead of those that go.mod requires.
	Replace map[string]string `json:"replace,omitempty"`
	// Unoptimized are import paths that are compiled with -N: what a function's source refers to then stays reachable
	// while it runs, as with compilers before Go 1.17.
	Unoptimized []string `json:"unoptimized,omitempty"`
	// Race builds with Go's race detector: with cgo and a C compiler, and linked statically all the same.
	Race      bool          `json:"race,omitempty"`
	Constants []ConstantRef `json:"-"` // numbers to read from the arm's own source
}

// String names a source for people: its module, version, programs and mutations.
func (s Source) String() string {
	names := make([]string, 0, len(s.Packages))
	for _, p := range s.Packages {
		names = append(names, programName(p))
	}
	out := fmt.Sprintf("%s@%s (%s)", s.Module, s.Version, strings.Join(names, ", "))
	switch {
	case s.Dir != "":
		out += " from " + s.Dir
	case s.Fork != "":
		out += " from " + s.Fork
	}
	for i, m := range s.Mutations {
		out += []string{" with ", " and "}[min(i, 1)] + m.Kind
	}
	for _, m := range slices.Sorted(maps.Keys(s.Replace)) {
		out += ", " + m + " " + s.Replace[m]
	}
	if s.Race {
		out += " with the race detector"
	}
	return out
}

func (s Source) validate() error {
	if s.Module == "" || s.Version == "" {
		return fmt.Errorf("source %q@%q: needs a module and a version", s.Module, s.Version)
	}
	if len(s.Packages) == 0 {
		return fmt.Errorf("source %s@%s: no packages to build", s.Module, s.Version)
	}
	seen := map[string]string{}
	for _, p := range s.Packages {
		if p != s.Module && !strings.HasPrefix(p, s.Module+"/") {
			return fmt.Errorf("source %s@%s: package %s is not in the module", s.Module, s.Version, p)
		}
		name := programName(p)
		if other, dup := seen[name]; dup {
			return fmt.Errorf("source %s@%s: %s and %s are both named %s", s.Module, s.Version, other, p, name)
		}
		seen[name] = p
	}
	if s.InPlace && (s.Dir == "" || len(s.Mutations)+len(s.Replace) > 0) {
		return fmt.Errorf("source %s@%s: only a directory without mutations and replaced modules is built in place", s.Module, s.Version)
	}
	for _, m := range s.Mutations {
		if _, err := m.Shape(); err != nil {
			return fmt.Errorf("source %s@%s: %w", s.Module, s.Version, err)
		}
	}
	return nil
}

// key is the hash of all that goes into a build.
func (s Source) key(tc toolchain, more ...any) (string, error) {
	in := struct {
		Recipe    string
		Toolchain toolchain
		Source    Source
		Tree      string
		More      []any
	}{Recipe: recipe, Toolchain: tc, Source: s, More: more}
	if s.Dir != "" {
		var err error
		if in.Tree, err = treeSum(s.Dir); err != nil {
			return "", err
		}
		in.Source.Dir = "" // the same tree elsewhere is the same tree: paths are trimmed
	}
	b, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("hashing source %s: %w", s, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}
