package match

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// ShippedFile has, in the repository, what Run asks of each scenario of relapse's own.
const ShippedFile = "harness/match/shipped.json"

//go:embed shipped.json
var shippedRules []byte

// Rules are what Run asks of a scenario. Reading them takes a hundredth of the time that the whole scenario takes.
type Rules struct {
	Scenario   string          `json:"scenario"`
	Digest     string          `json:"digest"`           // of the files that they were read from
	Beside     []string        `json:"beside,omitempty"` // those of them that stand beside the scenario's own
	Title      string          `json:"title"`
	Subject    string          `json:"subject"`
	References []string        `json:"references,omitempty"`
	Module     string          `json:"module,omitempty"` // of the first pair whose arms are modules
	Match      *scenario.Match `json:"match,omitempty"`
}

// RulesOf returns what Run asks of a scenario that was read from a file.
func RulesOf(s *scenario.Scenario) Rules {
	return Rules{
		Scenario:   s.Metadata.Name,
		Digest:     s.Origin.Digest,
		Beside:     s.Origin.Beside(),
		Title:      s.Spec.Title,
		Subject:    s.Spec.Subject,
		References: s.Spec.References,
		Module:     pairModule(s),
		Match:      s.Spec.Match,
	}
}

// scenario returns a scenario that has nothing but the rules.
func (r Rules) scenario() *scenario.Scenario {
	s := &scenario.Scenario{
		Metadata: scenario.ScenarioMetadata{Metadata: scenario.Metadata{Name: r.Scenario}},
	}
	s.Spec.Title, s.Spec.Subject, s.Spec.References, s.Spec.Match = r.Title, r.Subject, r.References, r.Match
	if r.Module != "" {
		s.Spec.Pairs = []scenario.Pair{
			{Arms: []scenario.Arm{{Source: scenario.Source{Module: r.Module}}}},
		}
	}
	return s
}

// Shipped returns the scenario in a file with nothing but what Run asks of it, if the file and those that it refers to
// are as this program ships them. It returns nil for any other scenario, which has to be read and checked whole.
func Shipped(file string) (*scenario.Scenario, error) {
	all, err := shipped()
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	r, ok := all[filepath.Base(filepath.Dir(abs))]
	if !ok {
		return nil, nil
	}
	if digest, err := scenario.Digest(file, r.Beside); err != nil || digest != r.Digest {
		return nil, nil // whoever reads it whole says what is wrong
	}
	s := r.scenario()
	return s, s.TakeSurvey(file) // a survey may be newer than the program, and is no part of the digest
}

// shipped are the rules of relapse's own scenarios by their names.
var shipped = sync.OnceValues(func() (map[string]Rules, error) {
	var list []Rules
	if err := json.Unmarshal(shippedRules, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", ShippedFile, err)
	}
	all := map[string]Rules{}
	for _, r := range list {
		all[r.Scenario] = r
	}
	return all, nil
})
