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

// gate says whether these versions of the subject have the bug, and why: by the survey of its releases, and where that
// has no answer, by match.affected. It isn't known what a fork took over or took back, but what is built on a version with
// the fix has it as a rule. unsure says why the versions may not be those of the evidence, "" if they are.
func gate(s *scenario.Scenario, versions []string, unsure string) gated {
	m := s.Spec.Match
	if m.Affected == "" && s.Surveyed() == nil {
		return gated{why: "no version is known to be without it"}
	}
	in := func(semver.Version) bool { return false }
	if m.Affected != "" {
		of, err := semver.ParseRange(m.Affected)
		if err != nil { // can't happen: the scenario was validated
			return gated{why: err.Error()}
		}
		in = of
	}
	own := "" // what is known of a version that upstream didn't release
	fix := "the fix is in " + m.Fixed
	affected, fixed, unknown := false, false, false
	for _, v := range versions {
		base, err := semver.Parse(strings.TrimPrefix(v, "v"))
		base.Pre, base.Build = nil, nil
		surveyed := s.SurveyedBug(base)
		has := err == nil && !in(base)
		// A class rules nothing out, nor does what ran with stand-ins: the release itself never ran.
		if err == nil && surveyed.Known() && surveyed.As == "" && surveyed.StandIns == "" {
			has = surveyed.State == scenario.SurveyedGood
			fix = surveyedText(surveyed)
		} else if m.Affected == "" {
			unknown = true
			continue
		}
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
		return gated{
			affected: check.False,
			why:      "there are several versions, with the fix and without: " + list(versions),
			unsure:   true,
		}
	case unknown:
		return gated{why: "no survey has an answer about " + list(versions)}
	case fixed && own != "":
		return gated{affected: check.False, why: own, unsure: true}
	case own != "":
		return gated{why: own}
	case fixed && unsure != "":
		return gated{
			affected: check.False,
			why:      fmt.Sprintf("%s; this is %s, %s", fix, list(versions), unsure),
			required: unsure == asRequired,
			unsure:   true,
		}
	case fixed:
		return gated{
			affected: check.False,
			why:      fmt.Sprintf("%s; this is %s", fix, list(versions)),
		}
	}
	return gated{affected: check.True, why: list(versions) + " has no fix"}
}

// surveyedText says what a survey has of a release.
func surveyedText(r scenario.SurveyedRelease) string {
	return fmt.Sprintf("a survey of releases has %s as %s", r.Version, r.State)
}

// plain reports whether a version is one that upstream released.
func plain(version string) bool {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return err == nil && len(v.Pre) == 0 && len(v.Build) == 0
}
