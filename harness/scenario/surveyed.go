package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
)

// SurveyFile is the name of the file next to a scenario's that has the answers of a survey of its subject's releases.
const SurveyFile = "survey.json"

// SurveySchema is the value of its schema field.
const SurveySchema = "relapse.dev/survey-answers/v1alpha1"

// Surveyed has the answers of a survey, as SurveyFile holds them. Package survey writes them, with more than is read here.
type Surveyed struct {
	Schema   string           `json:"schema"`
	Scenario string           `json:"scenario"`
	Module   string           `json:"module"`
	Pair     string           `json:"pair"`
	Versions string           `json:"versions"`
	Branches []SurveyedBranch `json:"branches"`

	file, text string
}

// SurveyedBranch is a minor version with its releases, the oldest first.
type SurveyedBranch struct {
	Name     string            `json:"branch"`
	Releases []SurveyedRelease `json:"cells"`
}

// SurveyedRelease is the answer about a release. Only SurveyedBad and SurveyedGood are known.
type SurveyedRelease struct {
	Version string `json:"version"` // v1.34.12
	State   string `json:"state"`
	As      string `json:"as,omitempty"` // the releases of its class whose answer this is, if it did not run itself
	// StandIns are modules that it was built with from other releases, as its own can't be had.
	StandIns string `json:"standIns,omitempty"`
}

// The known states of a release.
const (
	SurveyedBad  = "bad"
	SurveyedGood = "good"
)

// Known reports whether there is an answer.
func (r SurveyedRelease) Known() bool { return r.State == SurveyedBad || r.State == SurveyedGood }

// loadSurveyed reads the survey next to a scenario's file; nil if there is none. It is no part of the scenario: its digest
// doesn't count.
func loadSurveyed(file, name string) (*Surveyed, error) {
	out, err := ReadSurveyed(filepath.Join(filepath.Dir(file), SurveyFile), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return out, err
}

// TakeSurvey takes the answers of the survey next to a scenario's file, if there is one.
func (s *Scenario) TakeSurvey(file string) (err error) {
	if s.Origin == nil {
		s.Origin = &Origin{}
	}
	s.Origin.surveyed, err = loadSurveyed(file, s.Metadata.Name)
	return err
}

// ReadSurveyed reads the answers of a survey of the named scenario. Mistakes in the file are returned as Violations.
func ReadSurveyed(path, name string) (*Surveyed, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the survey of %s: %w", name, err)
	}
	out := &Surveyed{file: path, text: string(text)}
	wrong := func(format string, args ...any) error {
		return Violations{{File: path, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...) + " (relapse survey --write writes this file)"}}
	}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, wrong("is no survey: %s", err)
	}
	switch {
	case out.Schema != SurveySchema:
		return nil, wrong("has the schema %q (want %s)", out.Schema, SurveySchema)
	case out.Scenario != name:
		return nil, wrong("is of scenario %q (want %s)", out.Scenario, name)
	}
	for _, b := range out.Branches {
		for _, r := range b.Releases {
			if _, err := semver.ParseTolerant(r.Version); err != nil {
				return nil, wrong("has the release %q: %s", r.Version, lower(err))
			}
		}
	}
	return out, nil
}

// Surveyed returns the answers of the scenario's survey; nil if there is none.
func (s *Scenario) Surveyed() *Surveyed {
	if s.Origin == nil {
		return nil
	}
	return s.Origin.surveyed
}

// SurveyedBug returns what the scenario's survey knows of a version of what has the bug. The release of the zero value is
// unknown.
func (s *Scenario) SurveyedBug(v semver.Version) SurveyedRelease {
	o := s.Surveyed()
	if o == nil || s.Spec.Match != nil && s.Spec.Match.Module != "" && s.Spec.Match.Module != o.Module {
		return SurveyedRelease{} // match.affected is about another module's versions
	}
	for _, b := range o.Branches {
		for _, r := range b.Releases {
			if is, err := semver.ParseTolerant(r.Version); err == nil && is.EQ(v) && r.Known() {
				return r
			}
		}
	}
	return SurveyedRelease{}
}

// CheckSurveyed returns as Violations the releases of which the scenario's survey and match.affected say different things.
func (s *Scenario) CheckSurveyed() error {
	o, m := s.Surveyed(), s.Spec.Match
	if o == nil || m == nil || m.Affected == "" {
		return nil
	}
	in, err := semver.ParseRange(m.Affected)
	if err != nil { // can't happen: the scenario was validated
		return err
	}
	d := read(s.Origin.File, "scenario", []byte(s.Origin.text))
	at := d.positionOf(d.find([]string{"match", "affected"}))
	says := map[bool]string{true: "has the bug", false: "doesn't have it"}
	var found Violations
	for i, b := range o.Branches {
		for k, r := range b.Releases {
			v, err := semver.ParseTolerant(r.Version)
			if err != nil || s.SurveyedBug(v) != r || in(v) == (r.State == SurveyedBad) {
				continue
			}
			place := o.position(i, k)
			found = append(found, Violation{
				File:   o.file,
				Line:   place.line,
				Column: place.column,
				Path:   fmt.Sprintf("branches[%d].cells[%d]", i, k),
				Message: fmt.Sprintf(
					"by its survey %s %s, and by match.affected, %s:%d:%d, it %s (want both to say the same; "+
						"match.affected is for releases that no survey answers)",
					r.Version,
					says[!in(v)],
					s.Origin.File,
					at.line,
					at.column,
					says[in(v)],
				),
			})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// position returns where the version of a release stands in the file.
func (o *Surveyed) position(branch, release int) position {
	d := read(o.file, "survey", []byte(o.text))
	return d.positionOf([]string{"branches", strconv.Itoa(branch), "cells", strconv.Itoa(release), "version"})
}

// Places returns the releases in a state as ranges, the oldest first: v1.29.0 to v1.29.4, v1.29.6.
func (b SurveyedBranch) Places(is func(state string) bool) string {
	var out []string
	first, last := "", ""
	end := func() {
		switch {
		case first == "":
		case first == last:
			out = append(out, first)
		default:
			out = append(out, first+" to "+last)
		}
		first = ""
	}
	for _, r := range b.Releases {
		if !is(r.State) {
			end()
			continue
		}
		if first == "" {
			first = r.Version
		}
		last = r.Version
	}
	end()
	return strings.Join(out, ", ")
}
