package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// gate says whether these versions of the subject have the bug, and why. The version of a fork says nothing, because it
// isn't known what the fork took over or took back.
func gate(m *scenario.Match, versions []string) (check.Truth, string) {
	if m.Affected == "" {
		return check.Unknown, "no version is known to be without it"
	}
	in, err := semver.ParseRange(m.Affected)
	if err != nil { // can't happen: the scenario was validated
		return check.Unknown, err.Error()
	}
	var all []check.Truth
	for _, v := range versions {
		if !plain(v) {
			return check.Unknown, v + " is a version of its own, of which it isn't known"
		}
		all = append(all, check.Of(in(semver.MustParse(strings.TrimPrefix(v, "v")))))
	}
	switch {
	case len(all) == 0:
		return check.Unknown, "the version isn't known"
	case !slices.Contains(all, check.True):
		return check.False, fmt.Sprintf("the fix is in %s; this is %s", m.Fixed, list(versions))
	case slices.Contains(all, check.False):
		return check.Unknown, "there are several versions, with the fix and without: " + list(versions)
	}
	return check.True, list(versions) + " has no fix"
}

// plain reports whether a version is one that upstream released.
func plain(version string) bool {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return err == nil && len(v.Pre) == 0 && len(v.Build) == 0
}
