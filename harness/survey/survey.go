// Package survey finds out which releases of a subject have a scenario's bug, by running them.
//
// It never bisects: a bug may be in one release alone, with clean ones on both sides. Releases in a row whose packages
// that matter have the same syntax are one class. Of each class, the first and the last release are run, and some more
// that are drawn; all of it if they differ. No class stands for the first or the last release of a branch.
package survey

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Release is one patch release, and what its source is like.
type Release struct {
	Version string `json:"version"` // v1.34.12
	// Print is the fingerprint of the packages that the scenario names, Near that of what they import of the subject's
	// repository.
	Print string `json:"fingerprint,omitempty"`
	Near  string `json:"importsFingerprint,omitempty"`
	// Lacks are the packages of the scenario that it doesn't have.
	Lacks []string `json:"lacks,omitempty"`
	Class int      `json:"class,omitempty"` // from 1, over all branches; 0 if the source can't be had
	Why   string   `json:"why,omitempty"`   // why the source can't be had
}

// Branch is a minor version with its patch releases, the oldest first.
type Branch struct {
	Name     string    `json:"name"` // v1.34
	Releases []Release `json:"releases"`
}

// Branches returns the versions that are in a semver range, by branch. It refuses a range without a release.
func Branches(versions []string, in string) ([]Branch, error) {
	want, err := scenario.Range(in)
	if err != nil {
		return nil, err
	}
	chosen := make([]semver.Version, 0, len(versions))
	for _, text := range versions {
		v, err := semver.ParseTolerant(text)
		if err != nil {
			return nil, fmt.Errorf("reading the list of releases: %q: %w", text, err)
		}
		if want(v) {
			chosen = append(chosen, v)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf(
			"no known release is in %s: the known ones reach from %s to %s",
			in,
			oldest(versions),
			newest(versions),
		)
	}
	slices.SortFunc(chosen, semver.Version.Compare)
	var out []Branch
	for _, v := range slices.CompactFunc(chosen, semver.Version.EQ) {
		name := fmt.Sprintf("v%d.%d", v.Major, v.Minor)
		if len(out) == 0 || out[len(out)-1].Name != name {
			out = append(out, Branch{Name: name})
		}
		last := &out[len(out)-1]
		last.Releases = append(last.Releases, Release{Version: "v" + v.String()})
	}
	return out, nil
}

func oldest(versions []string) string { return slices.MinFunc(versions, compare) }

func newest(versions []string) string { return slices.MaxFunc(versions, compare) }

// compare orders versions that were parsed before.
func compare(a, b string) int {
	x, _ := semver.ParseTolerant(a)
	y, _ := semver.ParseTolerant(b)
	return cmp.Or(x.Compare(y), cmp.Compare(a, b))
}

// Classify numbers the classes: releases of one branch in a row with the same fingerprint are one class. A release whose
// source can't be had is in none, and parts no class.
func Classify(branches []Branch) (classes, nearClasses int) {
	for _, b := range branches {
		print, near := "", ""
		for i := range b.Releases {
			r := &b.Releases[i]
			if r.Why != "" {
				r.Class = 0
				continue
			}
			if print != r.Print {
				classes++
			}
			if print != r.Print || near != r.Near {
				nearClasses++
			}
			print, near, r.Class = r.Print, r.Near, classes
		}
	}
	return classes, nearClasses
}

// members returns the indexes of a branch's releases by class, in order.
func (b Branch) members() (out [][]int) {
	class := 0
	for i, r := range b.Releases {
		switch {
		case r.Class == 0:
			continue
		case r.Class != class:
			out = append(out, nil)
		}
		class = r.Class
		out[len(out)-1] = append(out[len(out)-1], i)
	}
	return out
}
