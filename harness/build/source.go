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
	"github.com/kube-relapse/relapse/internal/sums"
)

// Source says what to build.
type Source struct {
	Module    string            `json:"module"`         // k8s.io/kubernetes
	Version   string            `json:"version"`        // v1.34.4
	Fork      string            `json:"fork,omitempty"` // PATH@VERSION of a published fork whose source is built
	Dir       string            `json:"dir,omitempty"`  // the module's root on this machine, instead of Version
	InPlace   bool              `json:"-"`              // build Dir in place and unchanged, if a current Go can
	Packages  []string          `json:"packages"`       // import paths of main packages
	Mutations []mutate.Mutation `json:"mutations"`      // applied in order
	LDFlags   []string          `json:"ldflags"`        // in addition to those of every arm
	// Replace maps required modules to the versions that are built instead of those in go.mod.
	Replace map[string]string `json:"replace,omitempty"`
	// Unoptimized lists import paths that are compiled with -N. Everything that a function's source refers to then
	// stays reachable while the function runs, as with compilers before Go 1.17.
	Unoptimized []string `json:"unoptimized,omitempty"`
	// Race builds with Go's race detector: with cgo and a C compiler, but still linked statically.
	Race      bool          `json:"race,omitempty"`
	Constants []ConstantRef `json:"-"` // numbers to read from the arm's own source
	Touches   []string      `json:"-"` // packages one of which the programs must have, or nothing is built
}

// String describes a source for people: its module, version, programs and mutations.
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
			return fmt.Errorf(
				"source %s@%s: package %s is not in the module",
				s.Module,
				s.Version,
				p,
			)
		}
		name := programName(p)
		if other, dup := seen[name]; dup {
			return fmt.Errorf(
				"source %s@%s: %s and %s are both named %s",
				s.Module,
				s.Version,
				other,
				p,
				name,
			)
		}
		seen[name] = p
	}
	if s.InPlace && (s.Dir == "" || len(s.Mutations)+len(s.Replace) > 0) {
		return fmt.Errorf(
			"source %s@%s: only a directory without mutations and replaced modules is built in place",
			s.Module,
			s.Version,
		)
	}
	for _, m := range s.Mutations {
		if _, err := m.Shape(); err != nil {
			return fmt.Errorf("source %s@%s: %w", s.Module, s.Version, err)
		}
	}
	return nil
}

// key returns the hash of everything that goes into a build.
func (s Source) key(tc Toolchain, more ...any) (string, error) {
	in := struct {
		Recipe    string
		Toolchain Toolchain
		Source    Source
		Tree      string
		More      []any
	}{Recipe: recipe, Toolchain: tc, Source: s, More: more}
	if s.Dir != "" {
		var err error
		if in.Tree, err = sums.Tree(s.Dir); err != nil {
			return "", err
		}
		in.Source.Dir = "" // paths are trimmed, so the tree's place doesn't matter
	}
	b, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("hashing source %s: %w", s, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}
