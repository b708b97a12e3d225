// Package version says which relapse this is: verdicts name the one that judged, plans and bundles the one that made them.
package version

import "runtime/debug"

// Relapse is this program's own version, as Go recorded it, with the commit where that is known. One binary always says the same.
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
