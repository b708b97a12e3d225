package survey_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/survey"
)

// branch returns releases v1.MINOR.0 onwards, one for each letter of prints: their fingerprint, or "-" for a source that
// can't be had.
func branch(minor int, prints string) survey.Branch {
	b := survey.Branch{Name: fmt.Sprintf("v1.%d", minor)}
	for i, p := range strings.Split(prints, "") {
		r := survey.Release{Version: fmt.Sprintf("v1.%d.%d", minor, i), Print: p, Near: strings.ToLower(p)}
		if p == "-" {
			r = survey.Release{Version: r.Version, Why: "it is refused"}
		}
		b.Releases = append(b.Releases, r)
	}
	return b
}

// record returns a record of branches whose releases ran with the given results.
func record(branches []survey.Branch, results map[string]survey.Result) *survey.Record {
	r := &survey.Record{Schema: survey.Schema, Scenario: "no-node", Module: "k8s.io/kubernetes", Subject: "kube-scheduler",
		Branches: branches, Runs: map[string][]survey.Run{}, Updated: time.Unix(1700000000, 0).UTC()}
	r.Classes, r.Near = survey.Classify(branches)
	for version, result := range results {
		r.Runs[version] = []survey.Run{{Dir: "1-" + version, Result: result, Controls: true, Seconds: 60}}
	}
	return r
}

func TestBranchesHoldTheReleasesOfARange(t *testing.T) {
	known := []string{"v1.29.0", "v1.29.10", "v1.29.9", "v1.30.0", "v1.31.0"}
	got, err := survey.Branches(known, ">=1.29 <1.31")
	if err != nil {
		t.Fatal(err)
	}
	want := []survey.Branch{
		{Name: "v1.29", Releases: []survey.Release{{Version: "v1.29.0"}, {Version: "v1.29.9"}, {Version: "v1.29.10"}}},
		{Name: "v1.30", Releases: []survey.Release{{Version: "v1.30.0"}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for in, said := range map[string]string{
		">=1.40": "no known release is in >=1.40: the known ones reach from v1.29.0 to v1.31.0",
		"new":    `"new" is not a range of versions`,
	} {
		if _, err := survey.Branches(known, in); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v, want %s", in, err, said)
		}
	}
}

func TestKnownReleasesAreAllOfABranch(t *testing.T) {
	known, err := survey.Known("k8s.io/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1.29.4", "v1.33.0", "v1.34.12"} {
		if !slices.Contains(known, want) {
			t.Errorf("%s is not known", want)
		}
	}
	if _, err := survey.Known("example.com/none"); err == nil || !strings.Contains(err.Error(), "no releases of example.com/none are known") {
		t.Error(err)
	}
}

// What came after the known releases is asked for one by one, and only there.
func TestNewerReleasesAreAskedForUntilThereIsNone(t *testing.T) {
	there := []string{"v1.29.2", "v1.30.1", "v1.30.2", "v1.31.0", "v1.31.1"}
	var asked []string
	got := survey.Newer(t.Context(), []string{"v1.29.0", "v1.29.1", "v1.30.0"}, func(_ context.Context, v string) bool {
		asked = append(asked, v)
		return slices.Contains(there, v)
	})
	want := []string{"v1.29.0", "v1.29.1", "v1.29.2", "v1.30.0", "v1.30.1", "v1.30.2", "v1.31.0", "v1.31.1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"v1.29.2", "v1.29.3", "v1.30.1", "v1.30.2", "v1.30.3", "v1.31.0", "v1.31.1", "v1.31.2", "v1.32.0"}, asked); d != "" {
		t.Error(d)
	}
}

// One bad release between clean ones is found, however many there are on either side.
func TestChosenAreTheEndsOfBranchesAndBothSidesOfEachChange(t *testing.T) {
	b := branch(29, "AAAAABAAAAA")
	b.Releases[8].Near = "changed"
	b.Releases[9].Near = "changed"
	b.Releases[10].Near = "changed"
	classes, near := survey.Classify([]survey.Branch{b})
	if classes != 3 || near != 4 {
		t.Errorf("%d classes, %d with imports: want 3 and 4", classes, near)
	}
	got := survey.Choose([]survey.Branch{b}, 0, 1)
	want := []survey.Choice{
		{Version: "v1.29.0", Why: survey.EndOfBranch}, {Version: "v1.29.10", Why: survey.EndOfBranch},
		{Version: "v1.29.4", Why: survey.NextToOther}, {Version: "v1.29.5", Why: survey.NextToOther},
		{Version: "v1.29.6", Why: survey.NextToOther}, {Version: "v1.29.8", Why: survey.OtherNearby},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	drawn := survey.Choose([]survey.Branch{b}, 2, 7)
	if len(drawn) != len(want)+2 || drawn[len(drawn)-1].Why != survey.Drawn {
		t.Errorf("drawn: %v", drawn)
	}
	if d := cmp.Diff(drawn, survey.Choose([]survey.Branch{b}, 2, 7)); d != "" {
		t.Errorf("another draw with the same seed: %s", d)
	}
}

// A release whose source can't be had parts no class, and the ends of a branch are those that can be had.
func TestReleasesThatCannotBeHadAreNotChosen(t *testing.T) {
	got := survey.Choose([]survey.Branch{classified(branch(33, "-AA-AB-"))}, 5, 1)
	want := []survey.Choice{
		{Version: "v1.33.1", Why: survey.EndOfBranch}, {Version: "v1.33.5", Why: survey.EndOfBranch},
		{Version: "v1.33.4", Why: survey.NextToOther}, {Version: "v1.33.2", Why: survey.Drawn},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func classified(b survey.Branch) survey.Branch {
	survey.Classify([]survey.Branch{b})
	return b
}

func texts(row survey.Row) (out []string) {
	for _, c := range row.Cells {
		out = append(out, c.Text())
	}
	return out
}

// What didn't run answers as its class does on both sides, and is never more than that.
func TestAReleaseThatDidNotRunAnswersAsItsClass(t *testing.T) {
	bad, good := survey.Bad, survey.Good
	for _, c := range []struct {
		name    string
		prints  string
		results map[string]survey.Result
		cells   []string
		said    string
	}{
		{
			"one bad release", "AAABAAA",
			map[string]survey.Result{"v1.29.0": good, "v1.29.2": good, "v1.29.3": bad, "v1.29.4": good, "v1.29.6": good},
			[]string{"good 1", "good (as v1.29.0 and v1.29.2)", "good 1", "bad 1 of 1", "good 1", "good (as v1.29.4 and v1.29.6)", "good 1"},
			"v1.29: first bad in v1.29.3, first fixed in v1.29.4.",
		},
		{
			"an unavailable neighbour", "AA-BB",
			map[string]survey.Result{"v1.29.0": bad, "v1.29.1": bad, "v1.29.3": good, "v1.29.4": good},
			[]string{"bad 1 of 1", "bad 1 of 1", "unavailable", "good 1", "good 1"},
			"v1.29: bad from v1.29.0, the first that is known, first fixed in (v1.29.1, v1.29.3].",
		},
		{
			"members that differ split their class", "AAAAA",
			map[string]survey.Result{"v1.29.0": good, "v1.29.2": bad, "v1.29.4": bad},
			[]string{"good 1", "not run", "bad 1 of 1", "bad (as v1.29.2 and v1.29.4)", "bad 1 of 1"},
			"v1.29: first bad in (v1.29.0, v1.29.2], and not fixed up to v1.29.4.",
		},
		{
			"a member without an answer stands between", "AAAAA",
			map[string]survey.Result{"v1.29.0": good, "v1.29.2": survey.Broken, "v1.29.4": good},
			[]string{"good 1", "not run", "inconclusive", "not run", "good 1"}, "v1.29: good from v1.29.0 to v1.29.4, as far as it is known.",
		},
		{
			"bad up to the last that is known", "AAB",
			map[string]survey.Result{"v1.29.0": bad, "v1.29.1": bad, "v1.29.2": survey.Inconclusive},
			[]string{"bad 1 of 1", "bad 1 of 1", "inconclusive"}, "v1.29: bad from v1.29.0, the first that is known, and not fixed up to v1.29.1.",
		},
		{
			"back in the same branch", "ABABA",
			map[string]survey.Result{"v1.29.0": good, "v1.29.1": bad, "v1.29.2": good, "v1.29.3": bad, "v1.29.4": good},
			[]string{"good 1", "bad 1 of 1", "good 1", "bad 1 of 1", "good 1"},
			"v1.29: first bad in v1.29.1, first fixed in v1.29.2, bad again in v1.29.3, fixed again in v1.29.4.",
		},
		{
			"only one side ran", "AAA", map[string]survey.Result{"v1.29.0": good},
			[]string{"good 1", "not run", "not run"}, "v1.29: v1.29.0 is good, and nothing else is known.",
		},
		{
			"a release that says nothing is not good", "ABC",
			map[string]survey.Result{"v1.29.0": good, "v1.29.1": survey.Inconclusive, "v1.29.2": survey.Broken},
			[]string{"good 1", "inconclusive", "inconclusive"}, "v1.29: v1.29.0 is good, and nothing else is known.",
		},
		{
			"one that can't be built", "AB", map[string]survey.Result{"v1.29.0": bad, "v1.29.1": survey.Unbuildable},
			[]string{"bad 1 of 1", "unavailable"}, "v1.29: v1.29.0 is bad, and nothing else is known.",
		},
		{"nothing ran", "AB", nil, []string{"not run", "not run"}, "v1.29: no release has an answer."},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := record([]survey.Branch{branch(29, c.prints)}, c.results).Rows()
			if d := cmp.Diff(c.cells, texts(rows[0])); d != "" {
				t.Error(d)
			}
			if said := survey.Sentences(rows)[0]; said != c.said {
				t.Errorf("said %q, want %q", said, c.said)
			}
		})
	}
}

// Runs without their controls say nothing, whatever the release did; a run that shows the bug outweighs those that don't.
func TestSeveralRunsOfARelease(t *testing.T) {
	one := func(r survey.Result, controls bool) survey.Run {
		return survey.Run{Dir: "x", Result: r, Controls: controls, Why: "why"}
	}
	for _, c := range []struct {
		name string
		runs []survey.Run
		want string
	}{
		{"good without its controls", []survey.Run{one(survey.Good, false)}, "inconclusive"},
		{"bad without its controls", []survey.Run{one(survey.Bad, false)}, "inconclusive"},
		{"good once the controls were well", []survey.Run{one(survey.Bad, false), one(survey.Good, true)}, "good 1"},
		{"bad once", []survey.Run{one(survey.Good, true), one(survey.Bad, true), one(survey.Good, true)}, "bad 1 of 3"},
		{"good, and once without an answer", []survey.Run{one(survey.Good, true), one(survey.Inconclusive, true)}, "inconclusive"},
		{"bad, and not to be built later", []survey.Run{one(survey.Bad, true), {Result: survey.Unbuildable, Why: "no network"}}, "bad 1 of 1"},
		{"not to be built after a run without its controls", []survey.Run{one(survey.Good, false), {Result: survey.Unbuildable, Why: "no network"}}, "unavailable"},
	} {
		r := record([]survey.Branch{branch(29, "A")}, nil)
		r.Runs["v1.29.0"] = c.runs
		if got := r.Rows()[0].Cells[0].Text(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A release whose own modules could not all be had is marked wherever its answer stands.
func TestStandInsAreMarked(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "ABC"))}, map[string]survey.Result{"v1.29.0": survey.Good, "v1.29.2": survey.Bad})
	r.Runs["v1.29.1"] = []survey.Run{{Dir: "x", Result: survey.Good, Controls: true, StandIns: survey.StandIns(
		map[string]string{"k8s.io/b": "v0.29.2", "k8s.io/a": "v0.29.0"})}}
	const with = "k8s.io/a v0.29.0, k8s.io/b v0.29.2"
	cells := r.Rows()[0].Cells
	if got := cells[1]; got.Text() != "good 1, with stand-ins" || got.StandIns != with || cells[0].Text() != "good 1" {
		t.Errorf("%+v", cells)
	}
	var text strings.Builder
	if err := r.WriteText(&text, 200); err != nil || !strings.Contains(text.String(), "built with "+with) {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// Who stands in is nearest, and before rather than after; what can't be had can't.
func TestNeighboursOfARelease(t *testing.T) {
	r := record([]survey.Branch{branch(29, "ABCDE"), branch(30, "A")}, nil)
	r.Branches[0].Releases[1].Why = "refused"
	for version, want := range map[string][]string{
		"v1.29.2": {"v1.29.3", "v1.29.0", "v1.29.4"}, "v1.29.0": {"v1.29.2", "v1.29.3", "v1.29.4"}, "v1.30.0": nil, "v1.31.0": nil,
	} {
		if d := cmp.Diff(want, r.Neighbours(version)); d != "" {
			t.Errorf("%s: %s", version, d)
		}
	}
}

func TestWhoGetsTheBugBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		older   map[string]survey.Result
		want    string
		unfixed []string
	}{
		{"fixed in the older branch", map[string]survey.Result{"v1.33.0": survey.Bad, "v1.33.1": survey.Good}, "Whoever goes from v1.33.1 to v1.34.0 gets it back.", []string{"v1.34 (up to v1.34.0)"}},
		{"never in the older branch", map[string]survey.Result{"v1.33.0": survey.Good, "v1.33.1": survey.Good}, "Whoever goes from v1.33.1 to v1.34.0 gets it.", []string{"v1.34 (up to v1.34.0)"}},
		{"not fixed there either", map[string]survey.Result{"v1.33.0": survey.Bad, "v1.33.1": survey.Bad}, "", []string{"v1.33 (up to v1.33.1)", "v1.34 (up to v1.34.0)"}},
	} {
		results := map[string]survey.Result{"v1.34.0": survey.Bad}
		for v, r := range c.older {
			results[v] = r
		}
		rows := record([]survey.Branch{branch(33, "AB"), branch(34, "A")}, results).Rows()
		said := strings.Join(survey.Sentences(rows), "\n")
		if c.want == "" && strings.Contains(said, "Whoever") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.name, said)
		}
		unfixed, _ := survey.Unfixed(rows)
		if d := cmp.Diff(c.unfixed, unfixed); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}
