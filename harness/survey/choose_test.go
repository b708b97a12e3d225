package survey_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/survey"
)

// answers runs releases, which are bad if bad says so.
func answers(bad func(version string) bool) *surveyor {
	return &surveyor{run: func(version string, _ int) (survey.Run, error) {
		one := survey.Run{Dir: version, Result: survey.Good, Controls: true}
		if bad(version) {
			one.Result = survey.Bad
		}
		return one, nil
	}}
}

// Where the last release of a class can't be built, the one before it is run: the class's answer would end earlier.
func TestANeighbourIsRunForAReleaseThatCannotBeBuilt(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "AAAA"))}, nil)
	r.Choose()
	s := answers(func(string) bool { return true })
	good := s.run
	s.run = func(version string, nth int) (survey.Run, error) {
		if version == "v1.29.3" {
			return survey.Run{Result: survey.Unbuildable, Why: "main.go:1: undefined"}, nil
		}
		return good(version, nth)
	}
	if err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"v1.29.0", "v1.29.3", "v1.29.2"}, s.asked); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"bad 1 of 1", "bad (as v1.29.0 and v1.29.2)", "bad 1 of 1", "unavailable"}, texts(r.Rows()[0])); d != "" {
		t.Error(d)
	}
	if !r.Answered() {
		t.Errorf("chosen are %v", r.Chosen)
	}
}

// If nothing can be built, nothing is answered.
func TestNothingIsAnsweredWhereNothingCanBeBuilt(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "AAA"))}, nil)
	r.Choose()
	s := &surveyor{run: func(string, int) (survey.Run, error) {
		return survey.Run{Result: survey.Unbuildable, Why: "no network"}, nil
	}}
	if err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 3 || r.Answered() || survey.Sentences(r.Rows())[0] != "v1.29: no release has an answer." {
		t.Errorf("asked %v; %v", s.asked, survey.Sentences(r.Rows()))
	}
}

// A survey that goes on after a new release draws those that it drew before.
func TestDrawsDoNotDependOnOtherReleases(t *testing.T) {
	drawn := func(prints string) (out []string) {
		for _, c := range survey.Choose([]survey.Branch{classified(branch(29, prints))}, 3, 11) {
			if c.Why == survey.Drawn {
				out = append(out, c.Version)
			}
		}
		return out
	}
	if d := cmp.Diff(drawn("AAAAAAAAAA"), drawn("AAAAAAAAAAB")); d != "" {
		t.Error(d)
	}
}

// Only those that were drawn are a sample; each is compared with what its class would have said of it.
func TestTheRateIsOfThoseThatWereDrawn(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "AAAAAAAA"))}, nil)
	r.Drawn, r.Seed = 6, 1 // all but the ends
	r.Choose()
	s := answers(func(version string) bool { return version == "v1.29.3" || version == "v1.29.4" })
	if err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(survey.Tried{Drawn: 6, Of: 6, Differ: 2, Split: 1}, r.Tried()); d != "" {
		t.Error(d)
	}
	r.Runs["v1.29.1"][0].Result = survey.Broken
	if said := r.Tried().String(); !strings.HasPrefix(said, "Of 6 releases that were drawn to try their class, 2 differ and 1 gave no answer: ") {
		t.Error(said)
	}
	without := record([]survey.Branch{classified(branch(29, "AA"))}, nil)
	if want := "Of 0 releases that were drawn to try their class, 0 differ. 0 classes have good and bad releases."; without.Tried().String() != want {
		t.Error(without.Tried().String())
	}
}

// A class with good and bad releases stands for none of its members: all of them run.
func TestAClassThatIsSplitIsRunAsAWhole(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "AAAAABBB"))}, nil)
	r.Choose()
	s := answers(func(version string) bool { return version == "v1.29.2" || version > "v1.29.3" })
	if err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"v1.29.0", "v1.29.7", "v1.29.4", "v1.29.5", "v1.29.1", "v1.29.2", "v1.29.3"}, s.asked); d != "" {
		t.Error(d)
	}
	const want = "v1.29: first bad in v1.29.2, first fixed in v1.29.3, bad again in v1.29.4, and not fixed up to v1.29.7."
	if said := survey.Sentences(r.Rows())[0]; said != want {
		t.Errorf("said %q", said)
	}
	if d := cmp.Diff(survey.Tried{Split: 1}, r.Tried()); d != "" {
		t.Error(d)
	}
}

// Members are drawn until few enough can differ, and no longer than there are any.
func TestMembersAreDrawnUntilTheRateIsLow(t *testing.T) {
	const members = 60
	for _, c := range []struct {
		name  string
		below float64
		bad   string
		least int
		most  int
	}{
		{"none is asked for", 0, "", 0, 0},
		{"none differs", 0.5, "", 4, 12},
		{"one differs", 0.5, "v1.29.30", 4, members - 2},
		{"there are too few", 0.01, "", members - 2, members - 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record([]survey.Branch{classified(branch(29, strings.Repeat("A", members)))}, nil)
			r.Seed = 5
			r.Choose()
			o := answers(func(v string) bool { return v == c.bad }).options(filepath.Join(t.TempDir(), "s.json"))
			o.Below = c.below
			if err := r.Do(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if n := r.Tried().Drawn; n < c.least || n > c.most {
				t.Errorf("%d were drawn, want %d to %d: %s", n, c.least, c.most, r.Tried())
			}
			if !r.Confident(c.below) {
				t.Errorf("it is not confident: %s", r.Tried())
			}
		})
	}
}

// A time limit ends the drawing, and the record is written.
func TestATimeLimitEndsTheDrawing(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "AAAA"))}, nil)
	r.Choose()
	file := filepath.Join(t.TempDir(), "s.json")
	o := (&surveyor{}).options(file)
	o.TimeLimit, o.Below = time.Nanosecond, 0.1
	o.Run = func(ctx context.Context, _ []string) ([]survey.Run, error) { <-ctx.Done(); return nil, ctx.Err() }
	if err := r.Do(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if was, err := survey.Read(file); err != nil || len(was.Chosen) != 2 || len(was.Runs) != 0 {
		t.Errorf("%+v, %v", was, err)
	}
}

// A name that no release has would make one class of them all.
func TestPackagesThatNoReleaseHasAreFound(t *testing.T) {
	b := branch(29, "AA-")
	b.Releases[0].Lacks = []string{"a", "c"}
	b.Releases[1].Lacks = []string{"b", "c"}
	r := record([]survey.Branch{b}, nil)
	r.Packages = []string{"a", "b", "c"}
	if d := cmp.Diff([]string{"c"}, r.Absent()); d != "" {
		t.Error(d)
	}
	if got := r.Without(); len(got) > 0 {
		t.Errorf("%v have one of them", got)
	}
	r.Branches[0].Releases[1].Lacks = r.Packages
	if d := cmp.Diff([]string{"v1.29.1"}, r.Without()); d != "" {
		t.Error(d)
	}
	none := record([]survey.Branch{branch(29, "--")}, nil)
	none.Packages = r.Packages
	if got := none.Absent(); len(got) > 0 {
		t.Errorf("said of releases that were not read: %v", got)
	}
}
