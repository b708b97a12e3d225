// Package version says which relapse this is. Verdicts name the version that judged, plans and bundles the version
// that made them.
package version

import "runtime/debug"

// Relapse is this program's version, as Go recorded it, with the commit if it is known.
func Relapse() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return v + " " + s.Value
		}
	}
	return v
}
