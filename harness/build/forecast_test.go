package build_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
)

// foreseen is a forecast of sources.
func foreseen(t *testing.T, b *build.Builder, all ...build.Source) *build.Forecast {
	t.Helper()
	f, err := b.NewForecast()
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range all {
		if err := f.Source(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// How long a build takes is what a build like it took on this host, and unknown before there was one.
func TestForecast(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir, kept := layDown(t, tiny), t.TempDir()
	b := newBuilder(t, kept)
	foresee := func(all ...build.Source) *build.Forecast { return foreseen(t, b, all...) }
	plain, cut, forty := tinySource(dir), tinySource(dir, unselect), tinySource(dir, capacity40)

	f := foresee(plain, cut, plain)
	if len(f.Missing) != 2 || f.Missing[0].Unknown != "no build of it from scratch is recorded on this host" ||
		f.Missing[1].Unknown != "no build of it after another of its version is recorded on this host" {
		t.Fatalf("with an empty cache: %+v", f.Missing)
	}
	if _, known := f.Takes(); known || !strings.HasPrefix(f.String(), "how long it takes is unknown (no build of it from scratch is recorded on this host: example.org/tiny@v1.2.3 (subject, other) from ") {
		t.Errorf("with an empty cache it says %q", f)
	}

	mustBuild(t, b, plain)
	if f = foresee(plain); f.Cached != 1 || len(f.Missing) != 0 || f.String() != "all of it is in the cache" {
		t.Errorf("of what was built: %+v, %s", f.Missing, f)
	}
	if f = foresee(cut); f.Missing[0].Unknown != "no build of it after another of its version is recorded on this host" {
		t.Errorf("the first build of a version tells nothing of a later one: %+v", f.Missing)
	}

	mustBuild(t, b, cut)
	f = foresee(plain, cut, forty)
	if total, known := f.Takes(); !known || f.Cached != 2 || len(f.Missing) != 1 || total != f.Missing[0].Takes ||
		!strings.HasPrefix(f.String(), "missing: example.org/tiny@v1.2.3 (subject, other) from ") {
		t.Errorf("after a build like it: %+v, %s", f.Missing, f)
	}

	at := filepath.Join(kept, "times.jsonl")
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.ReplaceAll(string(text), `"host":"`+host+`"`, `"host":"elsewhere"`)
	if err := os.WriteFile(at, []byte(elsewhere), 0o644); err != nil {
		t.Fatal(err)
	}
	if f = foresee(forty); f.Missing[0].Unknown == "" {
		t.Errorf("another host's builds say how long it takes here: %+v", f.Missing)
	}
}
