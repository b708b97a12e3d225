package survey

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// Schema is the value of the schema field of a record.
const Schema = "relapse.dev/survey/v1alpha1"

// Record is everything that a survey knows: releases with their classes, and what became of those that ran. It is
// written after each run, and a survey goes on from it.
type Record struct {
	Schema   string   `json:"schema"`
	Scenario string   `json:"scenario"`
	Digest   string   `json:"digest"` // SHA-256 of the scenario's file
	Pair     string   `json:"pair"`   // whose arms are the controls
	Provider string   `json:"provider"`
	Settings []string `json:"settings,omitempty"` // what was set for its runs, NAME=VALUE, sorted
	Subject  string   `json:"subject"`
	Module   string   `json:"module"`
	Versions string   `json:"versions"` // the range that was asked for
	Packages []string `json:"packages"` // whose syntax makes the classes
	// Found says where the scenario has its packages, unless they were stated.
	Found    map[string]string `json:"packagesFound,omitempty"`
	Seed     int64             `json:"seed"`
	Drawn    int               `json:"drawn"`  // how many members of classes are drawn, at most
	Repeat   int               `json:"repeat"` // in how many runs a release has to be good
	Relapse  string            `json:"relapse"`
	Updated  time.Time         `json:"updated"`
	Classes  int               `json:"classes"`
	Near     int               `json:"classesWithImports"`
	Branches []Branch          `json:"branches"`
	Chosen   []Choice          `json:"chosen"`
	Runs     map[string][]Run  `json:"runs"` // by version, in order
}

// Run is one run of a release beside the two controls.
type Run struct {
	Dir      string  `json:"dir,omitempty"` // the run's folder, next to the record
	Result   Result  `json:"result"`
	Why      string  `json:"why,omitempty"`
	SHA256   string  `json:"sha256,omitempty"` // of the program that ran
	Seconds  float64 `json:"seconds"`
	Controls bool    `json:"controls"` // both were as expected
	// StandIns says which modules of its repository it was built with from other releases, "k8s.io/api v0.29.3".
	StandIns string `json:"standIns,omitempty"`
	// Lost says that its trial was made elsewhere and left no bundle, which the release may have brought about.
	Lost bool `json:"lost,omitempty"`
}

// Result is what a run says of a release.
type Result string

// What a run says. A run whose controls were not as expected says nothing.
const (
	Bad          Result = "bad"  // the release has the bug
	Good         Result = "good" // it provably doesn't
	Broken       Result = "broken"
	Inconclusive Result = "inconclusive"
	Unbuildable  Result = "unbuildable"
)

// StandIns names modules that a release was built with from others: "k8s.io/api v0.29.3, k8s.io/cri-api v0.29.3".
func StandIns(versions map[string]string) string {
	var said []string
	for _, module := range slices.Sorted(maps.Keys(versions)) {
		said = append(said, module+" "+versions[module])
	}
	return strings.Join(said, ", ")
}

// FileOf returns the name of a scenario's record in the folder of run directories.
func FileOf(scenario string) string { return "survey-" + scenario + ".json" }

// Read reads a record.
func Read(path string) (*Record, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no survey to go on with: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the survey: %w", err)
	}
	r := &Record{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("reading %s: schema is %q, want %q", path, r.Schema, Schema)
	}
	return r, nil
}

// Write writes the record whole, or not at all.
func (r *Record) Write(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = renameio.WriteFile(path, append(raw, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the survey: %w", err)
	}
	return nil
}

// Fits says why a record can't be gone on with as another survey, "" if it can.
func (r *Record) Fits(o *Record) string {
	for _, one := range []struct{ what, was, is string }{
		{"scenario's file", r.Digest, o.Digest}, {"pair", r.Pair, o.Pair}, {"provider", r.Provider, o.Provider},
		{"settings", strings.Join(r.Settings, ", "), strings.Join(o.Settings, ", ")}, {"program", r.Relapse, o.Relapse},
	} {
		if one.was != one.is {
			return fmt.Sprintf("the %s was %q and is %q", one.what, one.is, one.was)
		}
	}
	return ""
}

// Keep takes over the runs of an earlier record whose folders are still there, as has reports. A release that could not be
// had or built is tried again. A version that is no longer asked for is kept, too: it may be asked for again.
func (r *Record) Keep(was *Record, has func(dir string) bool) {
	for version, runs := range was.Runs {
		kept := slices.DeleteFunc(
			slices.Clone(runs),
			func(one Run) bool { return one.Result == Unbuildable || one.Dir != "" && !has(one.Dir) },
		)
		if len(kept) > 0 {
			r.Runs[version] = kept
		}
	}
}

// Neighbours returns the other releases of a release's branch whose source can be had, the nearest first, and of two the
// older one.
func (r *Record) Neighbours(version string) (out []string) {
	for _, b := range r.Branches {
		at := slices.IndexFunc(b.Releases, func(one Release) bool { return one.Version == version })
		for far := 1; at >= 0 && far < len(b.Releases); far++ {
			for _, i := range []int{at - far, at + far} {
				if i >= 0 && i < len(b.Releases) && b.Releases[i].Why == "" {
					out = append(out, b.Releases[i].Version)
				}
			}
		}
	}
	return out
}

// Absent returns the packages that no release has whose source can be had. A class by such a package would say nothing.
func (r *Record) Absent() []string {
	has, read := map[string]bool{}, false
	for _, b := range r.Branches {
		for _, one := range b.Releases {
			for _, pkg := range r.Packages {
				has[pkg] = has[pkg] || one.Why == "" && !slices.Contains(one.Lacks, pkg)
			}
			read = read || one.Why == ""
		}
	}
	if !read {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.Packages), func(pkg string) bool { return has[pkg] })
}

// Without returns the releases that have none of the packages.
func (r *Record) Without() (out []string) {
	for _, b := range r.Branches {
		for _, one := range b.Releases {
			if len(one.Lacks) > 0 && len(one.Lacks) == len(r.Packages) {
				out = append(out, one.Version)
			}
		}
	}
	return out
}

// KeepPrints takes over the fingerprints of an earlier record of the same packages, and where these were found: what is
// published doesn't change.
func (r *Record) KeepPrints(was *Record) {
	if was.Module != r.Module || !slices.Equal(was.Packages, r.Packages) {
		return
	}
	r.Found = was.Found
	read := map[string]Release{}
	for _, b := range was.Branches {
		for _, one := range b.Releases {
			read[one.Version] = one
		}
	}
	for _, b := range r.Branches {
		for i, one := range b.Releases {
			if had := read[one.Version]; had.Print != "" {
				b.Releases[i].Print, b.Releases[i].Near, b.Releases[i].Lacks = had.Print, had.Near, had.Lacks
			}
		}
	}
}
