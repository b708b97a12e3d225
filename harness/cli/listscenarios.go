package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/campaign/track"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// listedScenario is a scenario in `relapse list -o json`.
type listedScenario struct {
	Name       string       `json:"name"`
	Title      string       `json:"title"`
	Component  string       `json:"component"`
	Failure    string       `json:"failure"`
	Placement  string       `json:"placement"`
	Providers  []string     `json:"providers"`  // the preferred one first
	Kubernetes string       `json:"kubernetes"` // of clusters whose version no arm decides
	References []string     `json:"references,omitempty"`
	File       string       `json:"file"`
	Budget     string       `json:"budget,omitempty"` // 1h30m0s
	Pairs      []listedPair `json:"pairs"`
}

type listedPair struct {
	Name       string       `json:"name"`
	Default    bool         `json:"default"`
	Vulnerable string       `json:"vulnerable"`       // the arm's version, or the fixture that it is
	Fixed      string       `json:"fixed"`            // the same as vulnerable where the arms differ in a mutation
	Trials     []listedTime `json:"trials,omitempty"` // none where no trial's time is recorded
}

// listedTime is how long the recorded trials of a pair took on a provider.
type listedTime struct {
	Provider        string  `json:"provider"`
	Trials          int     `json:"trials"`
	ShortestSeconds float64 `json:"shortestSeconds"`
	LongestSeconds  float64 `json:"longestSeconds"`
}

func newListed(s *scenario.Scenario) (listedScenario, error) {
	l := listedScenario{
		Name:       s.Metadata.Name,
		Title:      s.Spec.Title,
		Component:  s.Spec.Subject,
		Failure:    s.Metadata.Failure,
		Placement:  s.Spec.Placement,
		Providers:  s.Spec.RunsOn(),
		Kubernetes: s.Spec.Version,
		References: s.Spec.References,
		File:       s.Origin.File,
		Pairs:      []listedPair{},
	}
	if b := s.Spec.Budget; b != nil {
		l.Budget = b.Duration.String()
	}
	record, err := track.Load(s)
	if err != nil {
		return l, err
	}
	for _, p := range s.Spec.Pairs {
		pair := listedPair{Name: p.Name, Default: p.Default || len(s.Spec.Pairs) == 1}
		for _, a := range p.Arms {
			if a.Role == scenario.Vulnerable {
				pair.Vulnerable = versionOf(a.Source)
			} else {
				pair.Fixed = versionOf(a.Source)
			}
		}
		for _, t := range record.Took(p.Name, s.Spec.RunsOn()) {
			pair.Trials = append(
				pair.Trials,
				listedTime{t.Provider, t.Trials, t.Shortest.Seconds(), t.Longest.Seconds()},
			)
		}
		l.Pairs = append(l.Pairs, pair)
	}
	return l, nil
}

// versionOf returns the version that an arm is built from, or the fixture that it is.
func versionOf(s scenario.Source) string {
	if s.Version != "" {
		return s.Version
	}
	return s.Fixture
}

// defaultPair returns the pair that a run takes unless it is asked for another.
func (l listedScenario) defaultPair() listedPair {
	if i := slices.IndexFunc(l.Pairs, func(p listedPair) bool { return p.Default }); i >= 0 {
		return l.Pairs[i]
	}
	return listedPair{}
}

// versions returns the versions of a pair's arms, once if they are the same.
func (p listedPair) versions() string {
	if p.Vulnerable == p.Fixed {
		return p.Fixed
	}
	return p.Vulnerable + ", " + p.Fixed
}

// took returns how long trials of the pair took on the first provider with any.
func (p listedPair) took() string {
	if len(p.Trials) == 0 {
		return "not measured"
	}
	whole := func(seconds float64) string {
		return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	}
	least, most := whole(p.Trials[0].ShortestSeconds), whole(p.Trials[0].LongestSeconds)
	if least == most {
		return least
	}
	return least + " to " + most
}

// listScenarios prints the chosen scenarios. An invalid scenario is listed as such unless scenarios are chosen, and left
// out of the JSON, and the command fails.
func listScenarios(cmd *cobra.Command, choose chooseFlags, output printing.Format) error {
	files, err := scenarioFiles(cmd)
	if err != nil {
		return err
	}
	var all []*scenario.Scenario
	var broken []string
	for _, f := range files {
		if s, err := scenario.Load(f); err != nil {
			broken = append(broken, f)
		} else {
			all = append(all, s)
		}
	}
	chosen, err := choose.of(all)
	if err != nil {
		return err
	}
	listed := []listedScenario{}
	for _, s := range chosen {
		l, err := newListed(s)
		if err != nil {
			return err
		}
		listed = append(listed, l)
	}
	if output == printing.JSON {
		err = printing.WriteJSONLine(cmd.OutOrStdout(), listed)
	} else {
		shown := broken
		if choose.given() {
			shown = nil
		}
		_, err = io.WriteString(
			cmd.OutOrStdout(),
			scenarioTable(listed, shown).Fit(width(cmd.OutOrStdout())),
		)
	}
	if err != nil {
		return fmt.Errorf("printing the scenarios: %w", err)
	}
	if len(broken) > 0 {
		return usage(fmt.Errorf("not valid: %s", strings.Join(broken, ", ")),
			"relapse validate "+strings.Join(broken, " "))
	}
	return nil
}

// scenarioTable has a row for each scenario, also for the files of those that aren't valid, by name.
func scenarioTable(listed []listedScenario, broken []string) printing.Table {
	t := printing.Table{Header: []string{"scenario", "component", "failure", "trial", "providers", "versions", "what happens"}, Empty: "-"}
	for _, l := range listed {
		p := l.defaultPair()
		t.Add(
			l.Name,
			l.Component,
			l.Failure,
			p.took(),
			strings.Join(l.Providers, ", "),
			p.versions(),
			l.Title,
		)
	}
	for _, f := range broken {
		t.Add(scenarioName(f), "", "", "", "", "", "(not valid)")
	}
	slices.SortStableFunc(t.Rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return t
}
