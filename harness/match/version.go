package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// gated says whether the versions of a subject have the bug, and why.
type gated struct {
	affected check.Truth
	why      string
	unsure   bool // affected is false, and the versions may not be those of the evidence: they rule nothing out
}

// gate says whether these versions of the subject have the bug, and why. The version of a fork says nothing, because it
// isn't known what the fork took over or took back. unsure says why the versions may not be those of the evidence, ""
// if they are.
func gate(m *scenario.Match, versions []string, unsure string) gated {
	if m.Affected == "" {
		return gated{why: "no version is known to be without it"}
	}
	in, err := semver.ParseRange(m.Affected)
	if err != nil { // can't happen: the scenario was validated
		return gated{why: err.Error()}
	}
	var all []check.Truth
	for _, v := range versions {
		if !plain(v) {
			return gated{why: v + " is a version of its own, of which it isn't known"}
		}
		all = append(all, check.Of(in(semver.MustParse(strings.TrimPrefix(v, "v")))))
	}
	switch {
	case len(all) == 0:
		return gated{why: "the version isn't known"}
	case !slices.Contains(all, check.True):
		out := gated{check.False, fmt.Sprintf("the fix is in %s; this is %s", m.Fixed, list(versions)), unsure != ""}
		if out.unsure {
			out.why += ", " + unsure
		}
		return out
	case slices.Contains(all, check.False):
		return gated{why: "there are several versions, with the fix and without: " + list(versions)}
	}
	return gated{affected: check.True, why: list(versions) + " has no fix"}
}

// plain reports whether a version is one that upstream released.
func plain(version string) bool {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return err == nil && len(v.Pre) == 0 && len(v.Build) == 0
}
