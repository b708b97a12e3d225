package campaign_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// sized is a unit whose trial has so many nodes, and rests on CPU time or doesn't.
func sized(t *testing.T, name string, nodes int, cpu bool) campaign.Unit {
	t.Helper()
	one := plan.Trial{ID: "001", Pair: "modern", Clusters: []plan.Cluster{{Topology: cluster.Topology{Nodes: make([]cluster.NodeSpec, nodes)}}}}
	// Each arm of each scenario is asked for the last one.
	one.Healed = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: plan.BuiltIn + "cpu", Kind: "processCPU"}, Spec: &metrics.ProcessCPU{}}}
	if cpu {
		one.Signature = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "any"}, AnyOf: []plan.Check{
			{CheckHeader: scenario.CheckHeader{Name: "busy", Kind: "processCPU"}, Spec: &metrics.ProcessCPU{}}}}}
	}
	u, err := campaign.NewUnit(&plan.Plan{Schema: plan.Schema, Scenario: name, Seed: 7, Provider: "processes", Trials: []plan.Trial{one}})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// day is a corpus whose runs end when the test lets them.
type day struct {
	campaign.Corpus
	mu    sync.Mutex
	built []string
	began chan string
	ends  map[string]chan verdict.Verdict // of what may end
}

func newDay(t *testing.T, units ...campaign.Unit) *day {
	t.Helper()
	d := &day{began: make(chan string, len(units)), ends: map[string]chan verdict.Verdict{}}
	now := time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC)
	d.Corpus = campaign.Corpus{Out: t.TempDir(), Units: units, Relapse: "v1", Say: func(string) {}, Run: d.run, Now: func() time.Time {
		d.mu.Lock()
		defer d.mu.Unlock()
		now = now.Add(time.Minute)
		return now
	}}
	d.Build = func(_ context.Context, u campaign.Unit) error {
		d.built = append(d.built, u.Plan.Scenario)
		return nil
	}
	for _, u := range units {
		d.ends[u.Plan.Scenario] = make(chan verdict.Verdict, 1)
	}
	return d
}

func (d *day) run(ctx context.Context, u campaign.Unit) (string, judge.Verdict, error) {
	name := u.Plan.Scenario
	d.began <- name
	v := judge.Verdict{Schema: judge.Schema, Scenario: name, StartedAt: time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC)}
	select {
	case <-ctx.Done():
		return "", v, context.Cause(ctx)
	case v.Verdict = <-d.ends[name]:
	}
	if v.Verdict == "" {
		return "", v, errors.New("creating the cluster: no space")
	}
	v.ExitCode = map[verdict.Verdict]int{verdict.Validated: 0, verdict.VerdictInconclusive: 3, verdict.StillVulnerable: 1}[v.Verdict]
	dir := filepath.Join(d.Out, "1-"+name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return dir, v, err
	}
	return dir, v, errors.Join(report.Write(dir, v), judge.Write(dir, v))
}

// start runs the corpus and returns what gives its summary.
func (d *day) start(ctx context.Context) func() (campaign.Summary, error) {
	type result struct {
		campaign.Summary
		error
	}
	done := make(chan result, 1)
	go func() {
		s, err := d.RunAll(ctx)
		done <- result{s, err}
	}()
	return func() (campaign.Summary, error) {
		r := <-done
		return r.Summary, r.error
	}
}

// next returns the names of the next n units that begin, in any order, and wants no others to have begun.
func (d *day) next(t *testing.T, n int) string {
	t.Helper()
	var out []string
	for range n {
		out = append(out, <-d.began)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (d *day) end(name string, v verdict.Verdict) { d.ends[name] <- v }

func became(s campaign.Summary) (out []string) {
	for _, r := range s.Units {
		out = append(out, fmt.Sprintf("%s %s %s %d %s", r.Scenario, r.Status, r.Verdict, r.Exit, r.Why))
	}
	return out
}

// Two trials of two nodes fit into four nodes. What rests on CPU time waits until it is alone, and what comes after it
// need not wait for it.
func TestCorpusRunsSideBySideWhatThereIsRoomFor(t *testing.T) {
	d := newDay(t, sized(t, "a", 2, false), sized(t, "busy", 2, true), sized(t, "large", 9, false), sized(t, "b", 2, false), sized(t, "c", 1, false))
	d.Room = campaign.Room{Nodes: 4}
	d.Skipped = []campaign.Result{{Scenario: "kubelet", Pair: "modern", Why: "needs kind"}}
	wait := d.start(t.Context())
	for _, step := range []struct{ begins, ends string }{{"a b", "b"}, {"c", "a"}, {"", "c"}, {"busy", "busy"}, {"large", "large"}} {
		n := len(strings.Fields(step.begins))
		if got := d.next(t, n); got != step.begins {
			t.Fatalf("%q began, want %q", got, step.begins)
		}
		select {
		case more := <-d.began:
			t.Fatalf("%s began, too, beside %q", more, step.begins)
		default:
		}
		d.end(step.ends, verdict.Validated)
	}
	s, err := wait()
	if err != nil || s.ExitCode != 0 || s.Verdict != verdict.Validated {
		t.Errorf("%s, exit %d, %v", s.Verdict, s.ExitCode, err)
	}
	if diff := cmp.Diff([]string{"a", "busy", "large", "b", "c"}, d.built); diff != "" {
		t.Errorf("built, -want +got:\n%s", diff)
	}
	want := []string{"a done Validated 0 ", "busy done Validated 0 ", "large done Validated 0 ", "b done Validated 0 ", "c done Validated 0 ",
		"kubelet notRun  0 needs kind"}
	if diff := cmp.Diff(want, became(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.Units[0].Build != 60 || s.Units[0].Seconds < 60 || s.Seconds["kubelet"] != 0 {
		t.Errorf("times: %+v of %v", s.Units[0], s.Seconds)
	}
}

func TestCorpusWithAGivenNumberOfTrials(t *testing.T) {
	d := newDay(t, sized(t, "a", 9, false), sized(t, "b", 9, false), sized(t, "c", 1, false))
	d.Room = campaign.Room{Trials: 2}
	wait := d.start(t.Context())
	if got := d.next(t, 2); got != "a b" {
		t.Errorf("%q began first", got)
	}
	d.end("a", verdict.Validated)
	if got := d.next(t, 1); got != "c" {
		t.Errorf("%q began next", got)
	}
	d.end("b", verdict.Validated)
	d.end("c", verdict.Validated)
	if _, err := wait(); err != nil {
		t.Error(err)
	}
}

// What fails, or is not as expected, doesn't stop the others; what can't be built isn't run. The worst exit code is that of
// all, as the nightly's.
func TestCorpusGoesOnAfterWhatIsNotAsExpected(t *testing.T) {
	d := newDay(t, sized(t, "a", 1, false), sized(t, "b", 1, false), sized(t, "c", 1, false), sized(t, "d", 1, false))
	d.Skipped = []campaign.Result{{Scenario: "k", Pair: "modern", Why: "needs kind"}}
	d.Build = func(_ context.Context, u campaign.Unit) error {
		if u.Plan.Scenario == "a" {
			return errors.New("go build: exit status 1")
		}
		return nil
	}
	d.end("b", "") // it fails
	d.end("c", verdict.VerdictInconclusive)
	d.end("d", verdict.Validated)
	s, err := d.RunAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a failed Error 4 go build: exit status 1", "b failed Error 4 creating the cluster: no space", "c done Inconclusive 3 ",
		"d done Validated 0 ", "k notRun  0 needs kind"}, became(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.ExitCode != 4 || s.Verdict != verdict.VerdictError {
		t.Errorf("%s, exit %d", s.Verdict, s.ExitCode)
	}
	written, err := campaign.ReadCorpus(d.Out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(became(s), became(written)); diff != "" {
		t.Errorf("written, -want +got:\n%s", diff)
	}
	raw, err := os.ReadFile(filepath.Join(d.Out, report.JUnitFile))
	if err != nil {
		t.Fatal(err)
	}
	var suites junit.Testsuites
	if err := xml.Unmarshal(raw, &suites); err != nil || len(suites.Suites) != 5 {
		t.Fatalf("%d suites, %v", len(suites.Suites), err)
	}
	if last := suites.Suites[4]; last.Skipped != 1 || last.Errors != 0 {
		t.Errorf("what was not run: %+v", last)
	}
}

// An interrupt ends what runs, and the summary says of everything else that it has not run.
func TestCorpusIsInterrupted(t *testing.T) {
	d := newDay(t, sized(t, "a", 1, false), sized(t, "b", 1, false), sized(t, "c", 1, false))
	d.Room = campaign.Room{Nodes: 1}
	ctx, interrupt := context.WithCancel(t.Context())
	wait := d.start(ctx)
	d.next(t, 1)
	d.end("a", verdict.Validated)
	d.next(t, 1)
	interrupt()
	s, err := wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	want := []string{"a done Validated 0 ", "b notDone  3 interrupted", "c notDone  3 interrupted"}
	if diff := cmp.Diff(want, became(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if written, err := campaign.ReadCorpus(d.Out); err != nil || !cmp.Equal(became(s), became(written)) {
		t.Errorf("written: %q, %v", became(written), err)
	}
}

func TestCorpusIsOutOfTime(t *testing.T) {
	d := newDay(t, sized(t, "a", 1, false), sized(t, "b", 1, false))
	d.TimeLimit = time.Nanosecond
	s, err := d.RunAll(t.Context())
	if err != nil || s.ExitCode != 3 || s.Verdict != verdict.VerdictInconclusive {
		t.Errorf("%s, exit %d, %v", s.Verdict, s.ExitCode, err)
	}
	const why = "notDone  3 the time limit of 1ns is over"
	if diff := cmp.Diff([]string{"a " + why, "b " + why}, became(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Verdicts are compared by scenario, pair and provider, whatever their order.
func TestCorpusAgainstAnEarlierOne(t *testing.T) {
	unit := func(name string, v verdict.Verdict, status string) campaign.Result {
		return campaign.Result{Scenario: name, Pair: "modern", Provider: "processes", Status: status, Verdict: string(v)}
	}
	now := campaign.Summary{Units: []campaign.Result{unit("a", verdict.Validated, campaign.Done), unit("b", verdict.VerdictInconclusive, campaign.Done),
		unit("c", "", campaign.NotDone), unit("d", verdict.Validated, campaign.Done)}}
	then := campaign.Summary{Units: []campaign.Result{unit("c", verdict.Validated, campaign.Done), unit("b", verdict.Validated, campaign.Done),
		unit("a", verdict.Validated, campaign.Done)}}
	both, changed := now.Against(then)
	if diff := cmp.Diff([]string{"b, pair modern: Inconclusive, and Validated then"}, changed); both != 2 || diff != "" {
		t.Errorf("%d in both, -want +got:\n%s", both, diff)
	}
}

func TestCorpusOfNothing(t *testing.T) {
	if _, err := newDay(t).RunAll(t.Context()); err == nil || err.Error() != "the corpus has nothing to run" {
		t.Errorf("it ended with %v", err)
	}
}
