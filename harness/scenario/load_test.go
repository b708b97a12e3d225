package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

const fixture = "testdata/pleg/scenario.yaml"

func text(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLoad(t *testing.T) {
	s, err := scenario.Load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if s.Metadata.Name != "pleg" || s.Spec.Phases.Recovery.AtLeast.Duration != 65*time.Second {
		t.Errorf("read name %q and recovery.atLeast %s", s.Metadata.Name, s.Spec.Phases.Recovery.AtLeast.Duration)
	}
	if got := string(s.Spec.Exposure[0].AnyOf[0].Spec); got != `{"limit":180,"metric":"age"}` {
		t.Errorf("spec of the first alternative is %s", got)
	}
	if s.Origin.File != fixture || len(s.Origin.Digest) != 64 {
		t.Errorf("origin is %+v", s.Origin)
	}
}

func TestLoadWrongFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other", "scenario.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := scenario.Load(path)
	want := path + `:3:18: metadata.name: "pleg" is not the folder's name (want other)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Each case changes the fixture and names everything that is then wrong with it.
func TestViolations(t *testing.T) {
	const line = "f.yaml:"
	for _, c := range []struct {
		name     string
		old, new string
		want     []string
	}{
		{"unknown field", "spec: {latency: 40ms}", "spec: {latency: 40ms, latncy: 1s}",
			[]string{line + "35:29: spec.faults[0].spec.latncy: unknown field (want one of calls, latency; did you mean latency?)"}},
		{"duration without unit", "latency: 40ms", "latency: 5",
			[]string{line + "35:23: spec.faults[0].spec.latency: 5 is no duration (want how much later each call answers; a duration with its unit: 250ms, 40s, 1m30s)"}},
		{"text that is no duration", "latency: 40ms", "latency: soon",
			[]string{line + `35:23: spec.faults[0].spec.latency: "soon" is not valid (want how much later each call answers; a duration with its unit: 250ms, 40s, 1m30s)`}},
		{"unknown kind", "kind: testFlood", "kind: testFlod",
			[]string{line + `37:13: spec.faults[1].kind: unknown fault kind "testFlod" (want one of testFlood, testLatency; did you mean testFlood?)`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := strings.Replace(text(t), c.old, c.new, 1)
			if in == text(t) {
				t.Fatalf("the fixture has no %q", c.old)
			}
			_, err := scenario.Parse("f.yaml", []byte(in))
			var vs scenario.Violations
			if !errors.As(err, &vs) {
				t.Fatalf("got %v, want violations", err)
			}
			var got []string
			for _, v := range vs {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
