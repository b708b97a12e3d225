package survey

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// published is what is kept next to a scenario: the answers, without anything of the machine and the time of the runs.
// Package scenario reads a part of it.
type published struct {
	Schema   string   `json:"schema"`
	Scenario string   `json:"scenario"`
	Subject  string   `json:"subject"`
	Module   string   `json:"module"`
	Pair     string   `json:"pair"`
	Provider string   `json:"provider"`
	Versions string   `json:"versions"`
	Packages []string `json:"packages"`
	Seed     int64    `json:"seed"`
	Tried    Tried    `json:"tried"`
	Relapse  string   `json:"relapse"`
	Branches []Row    `json:"branches"`
}

// ErrNoAnswer says that nothing is known of any release.
var ErrNoAnswer = errors.New("no release has an answer")

// Publish writes the answers next to the scenario's file, from where match and the scenario's README take them. What was
// run decides every byte. Without any answer it returns ErrNoAnswer, and leaves what is there.
func (r *Record) Publish(s *scenario.Scenario) (file string, err error) {
	rows, known := r.Rows(), false
	for i := range rows {
		known = known || rows[i].first() != nil
		for k := range rows[i].Cells {
			rows[i].Cells[k].Why = "" // it may be what a compiler said on this machine
		}
		if rows[i].Changes == nil {
			rows[i].Changes = []Change{}
		}
	}
	if !known {
		return "", ErrNoAnswer
	}
	raw, err := json.MarshalIndent(
		published{
			Schema:   scenario.SurveySchema,
			Scenario: r.Scenario,
			Subject:  r.Subject,
			Module:   r.Module,
			Pair:     r.Pair,
			Provider: r.Provider,
			Versions: r.Versions,
			Packages: r.Packages,
			Seed:     r.Seed,
			Tried:    r.Tried(),
			Relapse:  r.Relapse,
			Branches: rows,
		},
		"",
		"  ",
	)
	if err == nil {
		file = filepath.Join(filepath.Dir(s.Origin.File), scenario.SurveyFile)
		err = renameio.WriteFile(file, append(raw, '\n'), 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("writing the survey of %s: %w", r.Scenario, err)
	}
	return file, nil
}
