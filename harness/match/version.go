package match

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// gated says whether the versions of a subject have the bug, and why.
type gated struct {
	affected check.Truth
	why      string
	required bool // that is because a build may have replaced the version that its go.mod requires
	unsure   bool // affected is false, and some of the evidence may be of a version without the fix: nothing is ruled out
}

// gate says whether these versions of the subject have the bug, and why. It isn't known what a fork took over or took
// back, but what is built on a version with the fix has it as a rule. unsure says why the versions may not be those of
// the evidence, "" if they are.
func gate(m *scenario.Match, versions []string, unsure string) gated {
	if m.Affected == "" {
		return gated{why: "no version is known to be without it"}
	}
	in, err := semver.ParseRange(m.Affected)
	if err != nil { // can't happen: the scenario was validated
		return gated{why: err.Error()}
	}
	own := "" // what is known of a version that upstream didn't release
	affected, fixed := false, false
	for _, v := range versions {
		base, err := semver.Parse(strings.TrimPrefix(v, "v"))
		base.Pre, base.Build = nil, nil
		has := err == nil && !in(base)
		affected, fixed = affected || err == nil && !has, fixed || has
		if !plain(v) {
			own = v + " is a version of its own, of which it isn't known"
		}
		if !plain(v) && has {
			own += fmt.Sprintf(", and v%s has the fix", base)
		}
	}
	switch {
	case len(versions) == 0:
		return gated{why: "the version isn't known"}
	case fixed && affected:
		return gated{affected: check.False, why: "there are several versions, with the fix and without: " + list(versions), unsure: true}
	case fixed && own != "":
		return gated{affected: check.False, why: own, unsure: true}
	case own != "":
		return gated{why: own}
	case fixed && unsure != "":
		return gated{affected: check.False, why: fmt.Sprintf("the fix is in %s; this is %s, %s", m.Fixed, list(versions), unsure), required: unsure == asRequired,
			unsure: true}
	case fixed:
		return gated{affected: check.False, why: fmt.Sprintf("the fix is in %s; this is %s", m.Fixed, list(versions))}
	}
	return gated{affected: check.True, why: list(versions) + " has no fix"}
}

// plain reports whether a version is one that upstream released.
func plain(version string) bool {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return err == nil && len(v.Pre) == 0 && len(v.Build) == 0
}
