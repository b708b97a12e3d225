package version_test

import (
	"runtime/debug"
	"testing"

	"github.com/kube-relapse/relapse/harness/version"
)

func TestAVersionNamesWhatTheProgramWasBuiltFrom(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "4f2a"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, info := range map[string]debug.BuildInfo{
		"(devel)":                     {},
		"v0.1.0 h1:abc=":              {Main: debug.Module{Version: "v0.1.0", Sum: "h1:abc="}},
		"(devel) 4f2a":                {Settings: []debug.BuildSetting{commit}},
		"(devel) 4f2a dirty":          {Settings: []debug.BuildSetting{commit, changed}},
		"v0.0.0-2026-4f2a+dirty 4f2a": {Main: debug.Module{Version: "v0.0.0-2026-4f2a+dirty"}, Settings: []debug.BuildSetting{commit, changed}},
		"v0.1.0 h1:abc= in example.com/mine": {Main: debug.Module{Path: "example.com/mine", Version: "v0.3.0"},
			Deps: []*debug.Module{{Path: "github.com/kube-relapse/relapse", Version: "v0.1.0", Sum: "h1:abc="}}},
		"(devel) in example.com/mine": {Main: debug.Module{Path: "example.com/mine"}, Settings: []debug.BuildSetting{commit},
			Deps: []*debug.Module{{Path: "github.com/kube-relapse/relapse", Version: "v0.1.0", Replace: &debug.Module{Path: "../relapse"}}}},
	} {
		if got := version.Of(&info); got != want {
			t.Errorf("%+v: %q, want %q", info, got, want)
		}
	}
}

func TestOnlyAReleaseCanBeTooOld(t *testing.T) {
	for have, older := range map[string]bool{
		"v0.1.0 h1:abc=": true, "v0.2.0-rc.1": true, "v0.2.0": false, "v0.10.0 4f2a": false, "(devel) 4f2a dirty": false, "unknown": false,
		"v0.0.0-20261127235857-7e96d0c699af 7e96": false,
	} {
		if got := version.Older(have, "v0.2.0"); got != older {
			t.Errorf("is %s older than v0.2.0? %t", have, got)
		}
	}
}
