// Package version says which relapse this is. Verdicts name the version that judged, plans and bundles the version
// that made them.
package version

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// modulePath is relapse's own module.
const modulePath = "github.com/kube-relapse/relapse"

// Relapse is this program's version, as Go recorded it, with the commit if it is known. Where it isn't, as in a program
// that go install made, the checksum of the module says what the version's code is. A tree with changes that are in no
// commit is dirty.
func Relapse() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return Of(info)
}

// Older reports whether have, which Relapse returned, is a release before the version need. A build of a checkout is
// older than nothing, because it doesn't say which release it is.
func Older(have, need string) bool {
	release, _, _ := strings.Cut(have, " ")
	return semver.IsValid(release) && !module.IsPseudoVersion(release) &&
		semver.Compare(release, need) < 0
}

// Of is the version that a build of relapse has recorded.
func Of(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if own := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == modulePath }); own >= 0 {
		// A program of somebody else's that links relapse: the rest is about that program.
		m := info.Deps[own]
		if m.Replace != nil {
			m = m.Replace
		}
		return strings.TrimSpace(cmp.Or(m.Version, "(devel)")+" "+m.Sum) + " in " + info.Main.Path
	}
	out := cmp.Or(info.Main.Version, "(devel)")
	switch commit := settings["vcs.revision"]; {
	case commit != "":
		out += " " + commit
	case info.Main.Sum != "":
		out += " " + info.Main.Sum
	}
	if settings["vcs.modified"] == "true" && !strings.Contains(info.Main.Version, "+dirty") {
		out += " dirty"
	}
	return out
}
