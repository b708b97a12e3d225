package survey_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/survey"
)

// surveyor answers for releases, and counts how often each is asked.
type surveyor struct {
	asked  []string
	trials [][]string // which releases shared one
	run    func(version string, nth int) (survey.Run, error)
}

func (s *surveyor) options(file string) survey.Options {
	return survey.Options{File: file, Say: func(string) {}, Now: func() time.Time { return time.Unix(1700000000, 0) },
		Run: func(_ context.Context, versions []string) (runs []survey.Run, err error) {
			s.trials = append(s.trials, versions)
			for _, version := range versions {
				nth := 0
				for _, v := range s.asked {
					if v == version {
						nth++
					}
				}
				s.asked = append(s.asked, version)
				one, err := s.run(version, nth)
				if err != nil {
					return nil, err
				}
				runs = append(runs, one)
			}
			return runs, nil
		}}
}

// A lack of an answer is made good only where the controls are to blame; a release that gives none itself isn't run until
// it comes out well.
func TestOnlyRunsWithoutTheirControlsAreMadeAgain(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "ABC"))}, nil)
	r.Chosen = survey.Choose(r.Branches, 0, 1)
	file := filepath.Join(t.TempDir(), "runs", "survey.json")
	s := &surveyor{run: func(version string, nth int) (survey.Run, error) {
		switch {
		case version == "v1.29.0" && nth == 0:
			return survey.Run{Dir: "a", Result: survey.Inconclusive}, nil
		case version == "v1.29.1":
			return survey.Run{Dir: "b", Result: survey.Inconclusive, Controls: true, Why: "its log is missing"}, nil
		case version == "v1.29.2":
			return survey.Run{Result: survey.Unbuildable, Why: "it doesn't compile"}, nil
		}
		return survey.Run{Dir: "c", Result: survey.Good, Controls: true}, nil
	}}
	if err := r.Do(t.Context(), s.options(file)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"v1.29.0", "v1.29.0", "v1.29.2", "v1.29.1"}, s.asked); d != "" {
		t.Error(d)
	}
	written, err := survey.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r.Runs, written.Runs); d != "" {
		t.Errorf("the record differs from what is known: %s", d)
	}
	cells := written.Rows()[0].Cells
	if cells[1].State != survey.IsUnclear || cells[1].Why != "inconclusive: its log is missing" || cells[2].Why != "it doesn't compile" {
		t.Errorf("%+v", cells)
	}
	if written.Answered() || written.CountAnswered() != 1 || len(written.Chosen) != 2 {
		t.Errorf("%d of %v answered, want 1 of those that can be built", written.CountAnswered(), written.Chosen)
	}
}

// Each release that shares a trial has an answer of its own. What has none runs beside the next ones.
func TestReleasesShareATrial(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "ABCDE"))}, nil)
	r.Chosen = survey.Choose(r.Branches, 0, 1)
	s := &surveyor{run: func(version string, nth int) (survey.Run, error) {
		one := survey.Run{Dir: version, Result: survey.Good, Controls: true}
		switch version {
		case "v1.29.0":
			one.Controls = nth > 0
		case "v1.29.4":
			one.Result = survey.Bad
		}
		return one, nil
	}}
	o := s.options(filepath.Join(t.TempDir(), "s.json"))
	o.Beside = 2
	if err := r.Do(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"v1.29.0", "v1.29.4"}, {"v1.29.0", "v1.29.1"}, {"v1.29.2", "v1.29.3"}}
	if d := cmp.Diff(want, s.trials); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"good 1", "good 1", "good 1", "good 1", "bad 1 of 1"}, texts(r.Rows()[0])); d != "" {
		t.Error(d)
	}
}

// What would meet every further release ends the survey, and nothing is claimed of the release that met it.
func TestAFullDiskEndsTheSurvey(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "AB"))}, nil)
	r.Chosen = survey.Choose(r.Branches, 0, 1)
	s := &surveyor{run: func(string, int) (survey.Run, error) { return survey.Run{}, errors.New("the disk is full") }}
	err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json")))
	if err == nil || err.Error() != "running v1.29.0: the disk is full" || len(s.asked) != 1 || len(r.Runs) != 0 {
		t.Errorf("%v, after %v: %v", err, s.asked, r.Runs)
	}
}

// A release that could not be built is tried again when the survey goes on: its module may be there by then.
func TestWhatCouldNotBeBuiltIsTriedAgain(t *testing.T) {
	was := record([]survey.Branch{branch(29, "AB")}, map[string]survey.Result{"v1.29.0": survey.Unbuildable, "v1.29.1": survey.Good})
	is := record([]survey.Branch{branch(29, "AB")}, nil)
	is.Keep(was, func(string) bool { return true })
	if len(is.Runs) != 1 || len(is.Runs["v1.29.1"]) != 1 {
		t.Errorf("kept: %v", is.Runs)
	}
}

// Where a bug is a race, one good run says little; one bad run says all.
func TestAReleaseIsGoodInAsManyRunsAsAreAskedFor(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "ABCD"))}, nil)
	r.Repeat = 3
	r.Choose()
	s := &surveyor{run: func(version string, nth int) (survey.Run, error) {
		one := survey.Run{Dir: version, Result: survey.Good, Controls: nth != 1}
		switch {
		case version == "v1.29.1" && nth == 2:
			one.Result = survey.Bad
		case version == "v1.29.2" && nth == 2:
			one.Result = survey.Inconclusive
		case version == "v1.29.3":
			one.Controls = false
		}
		return one, nil
	}}
	if err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"good 3", "bad 1 of 2", "inconclusive", "inconclusive"}, texts(r.Rows()[0])); d != "" {
		t.Error(d)
	}
	for version, want := range map[string]int{"v1.29.0": 4, "v1.29.1": 3, "v1.29.2": 3, "v1.29.3": 3} {
		if got := len(r.Runs[version]); got != want {
			t.Errorf("%s ran %d times, want %d", version, got, want)
		}
	}
}

func TestControlsThatAreNeverWellEndTheTries(t *testing.T) {
	r := record([]survey.Branch{classified(branch(29, "A"))}, nil)
	r.Chosen = survey.Choose(r.Branches, 0, 1)
	s := &surveyor{run: func(string, int) (survey.Run, error) { return survey.Run{Dir: "a", Result: survey.Good}, nil }}
	if err := r.Do(t.Context(), s.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 3 || r.Rows()[0].Cells[0].State != survey.IsUnclear {
		t.Errorf("asked %d times, %+v", len(s.asked), r.Rows()[0].Cells[0])
	}
}

// An interrupted survey claims nothing of the release that it was at, and goes on there.
func TestAnInterruptedSurveyGoesOn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	fresh := func() *survey.Record {
		r := record([]survey.Branch{classified(branch(29, "ABC"))}, nil)
		r.Chosen = survey.Choose(r.Branches, 0, 1)
		return r
	}
	ctx, stop := context.WithCancelCause(t.Context())
	first := fresh()
	s := &surveyor{run: func(version string, _ int) (survey.Run, error) {
		if version == "v1.29.2" {
			stop(errors.New("interrupted"))
			return survey.Run{}, errors.New("killed")
		}
		return survey.Run{Dir: version, Result: survey.Bad, Controls: true}, nil
	}}
	if err := first.Do(ctx, s.options(file)); err == nil || err.Error() != "interrupted" {
		t.Errorf("the error is %v", err)
	}
	was, err := survey.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(was.Runs) != 1 {
		t.Errorf("of two runs, one was finished: %v", was.Runs)
	}
	again := fresh()
	again.Keep(was, func(string) bool { return true })
	s = &surveyor{run: func(string, int) (survey.Run, error) {
		return survey.Run{Dir: "x", Result: survey.Good, Controls: true}, nil
	}}
	if err := again.Do(t.Context(), s.options(file)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"v1.29.2", "v1.29.1"}, s.asked); d != "" {
		t.Error(d)
	}
	lost := fresh()
	lost.Keep(was, func(string) bool { return false })
	if len(lost.Runs) != 0 {
		t.Errorf("runs whose folder is gone are kept: %v", lost.Runs)
	}
}

// Wherever a survey is killed, before or after its record was written, the one that goes on ends with the same table.
func TestASurveyThatWasKilledEndsAsIfItWereNot(t *testing.T) {
	fresh := func() *survey.Record {
		r := record([]survey.Branch{classified(branch(29, "AAABAA")), classified(branch(30, "AB"))}, nil)
		r.Drawn, r.Seed = 1, 9
		r.Choose()
		return r
	}
	run := func(version string, nth int) (survey.Run, error) {
		one := survey.Run{Dir: version, Result: survey.Good, Controls: nth > 0 || version != "v1.29.5"}
		switch version {
		case "v1.29.3", "v1.30.0":
			one.Result = survey.Bad
		case "v1.29.4":
			one = survey.Run{Result: survey.Unbuildable, Why: "it doesn't compile"}
		case "v1.30.1":
			one.Result = survey.Broken
		}
		return one, nil
	}
	whole, all := fresh(), &surveyor{run: run}
	if err := whole.Do(t.Context(), all.options(filepath.Join(t.TempDir(), "s.json"))); err != nil {
		t.Fatal(err)
	}
	for killed := range all.asked {
		file := filepath.Join(t.TempDir(), "s.json")
		ran := 0
		s := &surveyor{run: func(version string, nth int) (survey.Run, error) {
			if ran == killed {
				return survey.Run{}, errors.New("killed")
			}
			ran++
			return run(version, nth)
		}}
		if err := fresh().Do(t.Context(), s.options(file)); err == nil {
			t.Fatalf("it was not killed in run %d", killed)
		}
		was, err := survey.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		again := fresh()
		again.Keep(was, func(string) bool { return true })
		s = &surveyor{run: run}
		if ran, had := was.Runs["v1.29.5"]; had && len(ran) > 0 { // its first run, without the controls, is over
			s.asked = []string{"v1.29.5"}
		}
		if err := again.Do(t.Context(), s.options(file)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(whole.Rows(), again.Rows()); d != "" {
			t.Errorf("killed in run %d: %s", killed, d)
		}
		if d := cmp.Diff(whole.Chosen, again.Chosen); d != "" {
			t.Errorf("killed in run %d, others are chosen: %s", killed, d)
		}
	}
}

// What was read of a release is read once, unless other packages are asked for.
func TestFingerprintsAreKept(t *testing.T) {
	was := record([]survey.Branch{branch(29, "A-")}, nil)
	for _, c := range []struct {
		packages []string
		want     string
	}{{nil, "A"}, {[]string{"other"}, ""}} {
		is := record([]survey.Branch{{Name: "v1.29", Releases: []survey.Release{{Version: "v1.29.0"}, {Version: "v1.29.1"}}}}, nil)
		is.Packages = c.packages
		is.KeepPrints(was)
		if got := is.Branches[0].Releases; got[0].Print != c.want || got[1].Print != "" {
			t.Errorf("packages %v: %+v", c.packages, got)
		}
	}
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"cut.json": `{"schema":`, "other.json": `{"schema":"relapse.dev/nightly/v1alpha1"}`} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := survey.Read(file); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := survey.Read(filepath.Join(dir, "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
