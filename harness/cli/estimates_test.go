package cli

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// What has to be built is listed with the time that it took here earlier; one part of which that is unknown leaves the
// sum unknown.
func TestWriteForecast(t *testing.T) {
	known := build.Part{What: "kubelet", Sought: true, Takes: 8 * time.Minute}
	other := build.Part{What: "fixture cri", Sought: true, Takes: 12 * time.Second}
	noGo := func(what string) build.Part { return build.Part{What: what, Unknown: build.ErrNoGo.Error()} }
	unknown := build.Part{What: "etcd", Sought: true, Unknown: "no build of it is recorded on this host"}
	for _, c := range []struct {
		f    build.Forecast
		want string
	}{
		{build.Forecast{Cached: 3}, "nothing has to be built: the cache has all 3 builds\n"},
		{build.Forecast{Missing: []build.Part{known, other}}, "not in the cache: kubelet: about 8m0s, as last time\n" +
			"not in the cache: fixture cri: about 12s, as last time\nwhat has to be built takes about 8m12s\n"},
		{build.Forecast{Missing: []build.Part{known, unknown}}, "not in the cache: kubelet: about 8m0s, as last time\n" +
			"not in the cache: etcd: how long it takes is unknown: no build of it is recorded on this host\nhow long building takes is unknown\n"},
		{build.Forecast{Missing: []build.Part{noGo("arm fixed"), known, noGo("etcd")}},
			"arm fixed, etcd: how long it takes is unknown: no go command on PATH: install Go 1.26 or later and put its bin folder on PATH, or relapse cache import FILE what a host with Go exported\n" +
				"not in the cache: kubelet: about 8m0s, as last time\nhow long building takes is unknown\n"},
	} {
		var b bytes.Buffer
		if writeForecast(&b, &c.f); b.String() != c.want {
			t.Errorf("it says\n%swant\n%s", b.String(), c.want)
		}
	}
}

// How long a trial took is told from the history, without the builds before it, and from trials that were the scenario's.
func TestTrialTimes(t *testing.T) {
	out := t.TempDir()
	p := &plan.Plan{Scenario: "late", Trials: []plan.Trial{{Pair: "modern"}, {Pair: "modern"}}}
	want := func(said string) {
		t.Helper()
		if got := trialTimes(out, p); !slices.Equal(got, []string{said}) {
			t.Errorf("it says %q, want %q", got, said)
		}
	}
	want("how long a trial of pair modern takes is unknown: " + filepath.Join(out, history.File) + " has none on this provider")
	began := time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)
	trial := func(took time.Duration, apart ...string) judge.Trial {
		done := event.Event{Type: event.StageDone, Stage: "build", Time: began.Add(time.Minute), Fields: map[string]any{"seconds": 60.0}}
		return judge.Trial{Trial: verdict.Trial{ID: "001", Pair: "modern", Arms: []verdict.Arm{{Name: "fixed", Role: "fixed", Outcome: "NotReproduced"}}},
			Provider: "kind", Apart: apart, World: bundle.World{StartedAt: began},
			Events: []event.Event{{Time: began}, done, {Time: began.Add(time.Minute + took)}}}
	}
	for i, x := range []judge.Trial{trial(6 * time.Minute), trial(time.Second, "no fault is injected"), trial(7 * time.Minute)} {
		e := judge.Entries(judge.Verdict{Scenario: "late", Trials: []judge.Trial{x}}, string(rune('a'+i)))
		if !slices.Equal(e[0].Apart, x.Apart) {
			t.Errorf("the history has it apart by %q, want %q", e[0].Apart, x.Apart)
		}
		if err := history.Append(filepath.Join(out, history.File), e); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want("the last trial of pair modern took 6m0s")
		}
	}
	want("the last 2 trials of pair modern took 6m0s to 7m0s")
	p.Provider = "processes"
	want("how long a trial of pair modern takes is unknown: " + filepath.Join(out, history.File) + " has none on this provider")
}
