package campaign_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jstemmer/go-junit-report/v2/junit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// night is a campaign whose runs are made up: by scenario and pair, what a run comes to and how long it takes on a
// clock of its own.
type night struct {
	campaign.Options
	out  string
	now  time.Time
	ran  []string
	said []string
	runs map[string]func(ctx context.Context, n *night) (verdict.Verdict, int, error)
}

func newNight(t *testing.T, units ...string) *night {
	t.Helper()
	n := &night{out: t.TempDir(), now: time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC), runs: map[string]func(context.Context, *night) (verdict.Verdict, int, error){}}
	n.Options = campaign.Options{Out: n.out, Relapse: "v1", Run: n.run, Say: func(s string) { n.said = append(n.said, s) }, Now: func() time.Time { return n.now }}
	for _, name := range units {
		n.Units = append(n.Units, unit(t, name, 1))
	}
	return n
}

// unit is one of "scenario/pair".
func unit(t *testing.T, name string, seed int64) campaign.Unit {
	t.Helper()
	scenario, pair, _ := strings.Cut(name, "/")
	u, err := campaign.NewUnit(&plan.Plan{Schema: plan.Schema, Scenario: scenario, Seed: seed, Trials: []plan.Trial{{ID: "001", Pair: pair}}})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// run takes ten minutes and is as expected, unless it was said otherwise, and leaves what a run leaves.
func (n *night) run(ctx context.Context, u campaign.Unit) (string, judge.Verdict, error) {
	name := u.Plan.Scenario + "/" + u.Pair()
	n.ran = append(n.ran, name)
	n.now = n.now.Add(10 * time.Minute)
	v := judge.Verdict{Schema: judge.Schema, Scenario: u.Plan.Scenario, Verdict: verdict.Validated, StartedAt: n.now}
	if f := n.runs[name]; f != nil {
		var err error
		if v.Verdict, v.ExitCode, err = f(ctx, n); err != nil {
			return "", v, err
		}
	}
	dir := filepath.Join(n.out, fmt.Sprintf("%08d-%s", len(n.ran), u.Plan.Scenario))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return dir, v, err
	}
	return dir, v, errors.Join(report.Write(dir, v), judge.Write(dir, v))
}

func (n *night) units(s campaign.Summary) (out []string) {
	for _, r := range s.Units {
		out = append(out, fmt.Sprintf("%s/%s %s %s %d %s", r.Scenario, r.Pair, r.Status, r.Verdict, r.Exit, r.Why))
	}
	return out
}

func TestNightlyGoesOnAfterWhatIsNotAsExpected(t *testing.T) {
	n := newNight(t, "a/modern", "a/genuine", "b/modern", "c/modern")
	n.runs["a/modern"] = func(context.Context, *night) (verdict.Verdict, int, error) {
		return verdict.VerdictInconclusive, 3, nil
	}
	n.runs["a/genuine"] = func(context.Context, *night) (verdict.Verdict, int, error) {
		return "", 0, errors.New("creating the cluster: no space")
	}
	n.runs["b/modern"] = func(context.Context, *night) (verdict.Verdict, int, error) { return verdict.StillVulnerable, 1, nil }
	s, err := campaign.Nightly(t.Context(), n.Options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/modern done Inconclusive 3 ", "a/genuine failed Error 4 creating the cluster: no space", "b/modern done StillVulnerable 1 ",
		"c/modern done Validated 0 "}, n.units(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.ExitCode != 1 || s.Verdict != verdict.StillVulnerable || s.Seconds["a"] != 1200 {
		t.Errorf("%s (%d), %v", s.Verdict, s.ExitCode, s.Seconds)
	}
	onDisk, err := campaign.ReadSummary(n.out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, onDisk); diff != "" {
		t.Errorf("on disk: -returned +read:\n%s", diff)
	}
	raw, err := os.ReadFile(filepath.Join(n.out, report.JUnitFile))
	if err != nil {
		t.Fatal(err)
	}
	var all junit.Testsuites
	if err := xml.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, suite := range all.Suites {
		got = append(got, fmt.Sprintf("%s %d tests %d failures %d errors", suite.Name, suite.Tests, suite.Failures, suite.Errors))
	}
	if diff := cmp.Diff([]string{"relapse/a/modern 1 tests 0 failures 1 errors", "relapse/a/genuine 1 tests 0 failures 1 errors",
		"relapse/b/modern 1 tests 1 failures 0 errors", "relapse/c/modern 1 tests 0 failures 0 errors"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// untilCut waits, as a run does that takes too long, until it is ended.
func untilCut(ctx context.Context, _ *night) (verdict.Verdict, int, error) {
	<-ctx.Done()
	return "", 0, context.Cause(ctx)
}

func TestNightlyEndsWhatIsOverItsTime(t *testing.T) {
	n := newNight(t, "a/modern", "a/genuine", "b/modern")
	n.Units[0].Plan.Budget = &metav1.Duration{Duration: time.Millisecond}
	n.Units[1].Plan.Budget = &metav1.Duration{Duration: time.Millisecond}
	n.runs["a/modern"] = untilCut
	s, err := campaign.Nightly(t.Context(), n.Options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/modern notDone  3 the budget of a, 1ms, is used up", "a/genuine notDone  3 the budget of a, 1ms, is used up",
		"b/modern done Validated 0 "}, n.units(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.ExitCode != 3 || s.Verdict != verdict.VerdictInconclusive || len(n.ran) != 2 {
		t.Errorf("%s (%d), ran %v", s.Verdict, s.ExitCode, n.ran)
	}

	n = newNight(t, "a/modern", "b/modern")
	n.TimeLimit = time.Millisecond
	n.runs["a/modern"] = untilCut
	if s, err = campaign.Nightly(t.Context(), n.Options); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a/modern notDone  3 the campaign's time limit of 1ms is over", "b/modern notDone  3 the campaign's time limit of 1ms is over"},
		n.units(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.ExitCode != 3 || len(n.ran) != 1 {
		t.Errorf("exit %d, ran %v", s.ExitCode, n.ran)
	}
}

func TestNightlyResumes(t *testing.T) {
	n := newNight(t, "a/modern", "b/modern", "c/modern")
	ctx, interrupt := context.WithCancel(t.Context())
	n.runs["b/modern"] = func(ctx context.Context, n *night) (verdict.Verdict, int, error) {
		interrupt()
		return untilCut(ctx, n)
	}
	if s, err := campaign.Nightly(ctx, n.Options); !errors.Is(err, context.Canceled) || s.Units[1].Why != "the campaign was interrupted" || s.Units[2].Status != campaign.NotDone {
		t.Fatalf("%v, %v", err, n.units(s))
	}
	n.runs["b/modern"] = nil
	resume := func(change func()) []string {
		t.Helper()
		n.ran, n.said, n.Resume = nil, nil, true
		change()
		s, err := campaign.Nightly(t.Context(), n.Options)
		if err != nil || s.ExitCode != 0 {
			t.Fatalf("%v, %v", err, n.units(s))
		}
		return n.ran
	}
	for _, c := range []struct {
		name   string
		change func()
		want   []string
		says   string
	}{
		{"what was not done", func() {}, []string{"b/modern", "c/modern"}, "a, pair modern: done before, Validated in 00000001-a"},
		{"nothing", func() {}, nil, "c, pair modern: done before"},
		{"another plan", func() { n.Units[1] = unit(t, "b/modern", 2) }, []string{"b/modern"}, "b, pair modern is run again: its scenario, its options or its seed have changed"},
		{"a verdict is gone", func() {
			if err := os.RemoveAll(filepath.Join(n.out, "00000001-a")); err != nil {
				t.Fatal(err)
			}
		}, []string{"a/modern"}, "a, pair modern is run again: 00000001-a has no verdict any more"},
		{"another program", func() { n.Relapse = "v2" }, []string{"a/modern", "b/modern", "c/modern"}, "nothing is taken over: nightly.json was written by v1, and this is v2"},
	} {
		if got := resume(c.change); !cmp.Equal(got, c.want) {
			t.Errorf("%s: ran %v, want %v", c.name, got, c.want)
		}
		if said := strings.Join(n.said, "\n"); !strings.Contains(said, c.says) {
			t.Errorf("%s: said %q, want %q in it", c.name, said, c.says)
		}
	}
	n.ran, n.Resume = nil, false
	if _, err := campaign.Nightly(t.Context(), n.Options); err != nil || len(n.ran) != 3 {
		t.Errorf("without resuming: %v, ran %v", err, n.ran)
	}
	n.Resume, n.Out = true, t.TempDir()
	if _, err := campaign.Nightly(t.Context(), n.Options); err == nil || !strings.HasPrefix(err.Error(), "there is nothing to resume: ") {
		t.Errorf("nothing to resume: %v", err)
	}
	n.Units = nil
	if _, err := campaign.Nightly(t.Context(), n.Options); err == nil || err.Error() != "the campaign has nothing to run" {
		t.Errorf("no unit: %v", err)
	}
}

func TestNightlyPrunesAndKeepsItsOwn(t *testing.T) {
	n := newNight(t, "a/modern", "b/modern")
	var kept [][]string
	n.Prune = func(keep []string) ([]string, error) {
		kept = append(kept, keep)
		return []string{fmt.Sprint("old", len(kept))}, nil
	}
	s, err := campaign.Nightly(t.Context(), n.Options)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{nil, {"00000001-a"}, {"00000001-a", "00000002-b"}}, kept); diff != "" {
		t.Errorf("kept: -want +got:\n%s", diff)
	}
	if !cmp.Equal(s.Pruned, []string{"old1", "old2", "old3"}) {
		t.Errorf("pruned %v", s.Pruned)
	}
}
