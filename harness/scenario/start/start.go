// Package start has what a new scenario begins with.
package start

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/scenario"
)

//go:embed files
var files embed.FS

// Scenario says what a new scenario is about: versions of a component of Kubernetes with and without the bug.
type Scenario struct{ Name, Subject, Vulnerable, Fixed string }

// scenarioName matches the name of a scenario.
var scenarioName = regexp.MustCompile(scenario.NamePattern)

// fullVersion matches a released version, without anything behind it.
var fullVersion = regexp.MustCompile(scenario.VersionPattern + `$`)

// Files returns the files of a new scenario's folder, by their paths within it. The scenario is valid, and says where
// the incident's own belongs.
func (s Scenario) Files() (map[string][]byte, error) {
	row, err := s.row()
	if err != nil {
		return nil, err
	}
	in := map[string]string{
		"Name":       s.Name,
		"Subject":    s.Subject,
		"Vulnerable": s.Vulnerable,
		"Fixed":      s.Fixed,
		"Gets":       "each arm gets a worker node of one cluster",
		"Providers":  providers.Kind,
	}
	if component.ControlPlane(row) {
		in["Gets"] = "each arm gets a cluster of its own version"
		in["Providers"] = strings.Join([]string{providers.Processes, providers.Kind}, ", ")
	}
	out := map[string][]byte{}
	for from, to := range map[string]string{
		"scenario.yaml": scenario.FileName, "README.md": "README.md", "candidate.yaml": path.Join(scenario.CandidatesDir, "still-there.yaml"),
	} {
		t, err := template.ParseFS(files, path.Join("files", from))
		if err != nil {
			return nil, fmt.Errorf("reading the start of a scenario: %w", err)
		}
		var b bytes.Buffer
		if err := t.Execute(&b, in); err != nil {
			return nil, fmt.Errorf("writing %s of scenario %s: %w", from, s.Name, err)
		}
		out[to] = b.Bytes()
	}
	return out, nil
}

// row returns the subject's row in the component table. The error says which of the choices can't be started from.
func (s Scenario) row() (component.Component, error) {
	built := component.Names(func(c component.Component) bool { return c.Kubernetes })
	if !scenarioName.MatchString(s.Name) {
		return component.Component{}, fmt.Errorf(
			"%q is no scenario's name (want lower-case letters, digits and dashes)",
			s.Name,
		)
	}
	if !slices.Contains(built, s.Subject) {
		return component.Component{}, fmt.Errorf(
			"the subject %q is no component that is built from Kubernetes' source %s",
			s.Subject,
			scenario.OneOf(s.Subject, built),
		)
	}
	for _, arm := range [][2]string{{scenario.Vulnerable, s.Vulnerable}, {scenario.Fixed, s.Fixed}} {
		if !fullVersion.MatchString(arm[1]) {
			return component.Component{}, fmt.Errorf(
				"the %s arm's version is %q (want a released one, for example v1.36.1)",
				arm[0],
				arm[1],
			)
		}
	}
	if s.Vulnerable == s.Fixed {
		return component.Component{}, fmt.Errorf(
			"both arms are %s: two arms that don't differ prove nothing",
			s.Fixed,
		)
	}
	row, _ := component.Of(s.Subject)
	return row, nil
}
