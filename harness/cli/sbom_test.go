package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"runtime/debug"
	"testing"
)

// An SBOM has each module once, with its version and its sum, and what replaces a module in its place.
func TestSBOM(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: modulePath, Version: "v0.1.0"},
		Deps: []*debug.Module{{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:aaaa="}, {Path: "example.org/Old", Version: "v2.0.0+incompatible"},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1", Sum: "h1:bbbb="}}},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-29T08:00:00Z"}}}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := writeSBOM(out, info, sha256.Sum256([]byte("program"))); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Errorf("the same program gives other bytes:\n%s\n%s", &first, &second)
	}
	var got spdx
	if err := json.Unmarshal(first.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Creation.Created != "2026-11-29T08:00:00Z" || got.Version != "SPDX-2.3" || len(got.Relationships) != len(got.Packages) {
		t.Errorf("it is %+v", got)
	}
	want := []string{"pkg:golang/" + modulePath + "@v0.1.0", "pkg:golang/stdlib@1.26.8", "pkg:golang/example.org/a@v1.2.3",
		"pkg:golang/example.org/old@v2.0.0%2Bincompatible", "pkg:golang/example.org/fork@v1.0.1"}
	ids := map[string]bool{}
	for i, p := range got.Packages {
		if i >= len(want) || p.Refs[0].Locator != want[i] || ids[p.ID] {
			t.Errorf("package %d is %+v, want %v", i, p, want)
		}
		ids[p.ID] = true
	}
	if last := got.Packages[len(got.Packages)-1]; last.Comment != "go.sum: h1:bbbb=" {
		t.Errorf("the last module has the comment %q", last.Comment)
	}
	if p := got.Packages[0]; p.Version != "v0.1.0" || p.Comment != "relapse version: v0.1.0 abc" {
		t.Errorf("the program is %+v", p)
	}
	if sums := got.Packages[0].Sums; len(sums) != 1 || len(sums[0].Value) != 64 {
		t.Errorf("the program has the sums %v", sums)
	}
}
