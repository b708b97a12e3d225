package report_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// broken says what to do about a difference.
const broken = "docs/compatibility.md promises that this stays. Take the change back; or, if it may change (a sentence, a new field's " +
	"value), write the path and the reason into %s"

// For each release there is a run that it made, with its verdict.json, and the scenario of that run (.ci/keep). Its
// evidence is judged as it was, verdict.json has the same fields with the same values, and the scenario's file is planned
// as it was. What is new is no difference.
func TestWhatReleasesPromised(t *testing.T) {
	releases, err := filepath.Glob("testdata/releases/v*")
	if err != nil || len(releases) == 0 {
		t.Fatalf("no releases: %v", err)
	}
	for _, release := range releases {
		t.Run(filepath.Base(release), func(t *testing.T) {
			dir := unpack(t, filepath.Join(release, "run.tar.zst"))
			r := released{release, onPurpose(t, filepath.Join(release, "differs.txt"))}
			now, err := judge.Run(dir)
			if err != nil {
				t.Fatalf("its run isn't judged any more: %v", err)
			}
			raw, err := now.JSON()
			if err != nil {
				t.Fatal(err)
			}
			r.compare(t, judge.VerdictFile, fileText(t, filepath.Join(dir, judge.VerdictFile)), raw)
			r.planned(t, dir, now.Scenario)
		})
	}
}

// The next release may not forget to keep its run.
func TestEveryReleaseIsKept(t *testing.T) {
	m := regexp.MustCompile(`(?m)^    default: (v[0-9.]+)$`).FindSubmatch(fileText(t, "../../action.yml"))
	if m == nil {
		t.Fatal("action.yml has no version")
	}
	if _, err := os.Stat(filepath.Join("testdata/releases", string(m[1]), "run.tar.zst")); err != nil {
		t.Errorf("action.yml takes the release %s, of which nothing is kept: relapse run autoscaler-value-target --pair modern, then "+
			".ci/keep %[1]s runs/latest", m[1])
	}
}

// released is what was kept of a release.
type released struct {
	dir     string
	differs []string // what is different on purpose
}

// planned compares the plan of the release's scenario, made now, with that of its run, and plans each known candidate.
func (r released) planned(t *testing.T, run, name string) {
	t.Helper()
	then, err := plan.Read(fileText(t, filepath.Join(run, "plan.json")))
	if err != nil {
		t.Fatalf("its plan isn't read any more: %v", err)
	}
	s, err := scenario.Load(filepath.Join(r.dir, name, scenario.FileName))
	if err != nil {
		t.Fatalf("its scenario isn't valid any more: %v\n"+broken, err, filepath.Join(r.dir, "differs.txt"))
	}
	options := plan.Options{Pair: then.Trials[0].Pair, Provider: then.Provider, Seed: then.Seed, Params: then.Params}
	now, err := plan.New(s, options)
	if err != nil {
		t.Fatalf("its scenario isn't planned any more: %v", err)
	}
	r.compare(t, "plan.json", planText(t, then), planText(t, now))
	candidates, err := s.Candidates()
	if err != nil || len(candidates) == 0 {
		t.Fatalf("its %d candidates: %v", len(candidates), err)
	}
	for _, c := range candidates {
		if !c.For(options.Pair) {
			continue
		}
		if _, err := plan.New(s, plan.Options{Pair: options.Pair, Provider: then.Provider, Candidates: []plan.Candidate{{Known: &c}}}); err != nil {
			t.Errorf("its candidate %s isn't planned any more: %v", c.File, err)
		}
	}
}

// compare fails for each field of then that now doesn't have, or has with another value.
func (r released) compare(t *testing.T, file string, then, now []byte) {
	t.Helper()
	var was, is any
	if err := json.Unmarshal(then, &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(now, &is); err != nil {
		t.Fatal(err)
	}
	for path, what := range differences("", was, is) {
		if place := file + " " + strings.TrimPrefix(path, "."); !slices.Contains(r.differs, place) {
			t.Errorf("%s: %s\n"+broken, place, what, filepath.Join(r.dir, "differs.txt"))
		}
	}
}

// differences returns what fields of was are not in is, or are otherwise, by their paths. The elements of a list have one
// path.
func differences(path string, was, is any) map[string]string {
	out := map[string]string{}
	add := func(path string, was, is any) {
		for at, what := range differences(path, was, is) {
			out[at] = what
		}
	}
	switch w := was.(type) {
	case map[string]any:
		i, ok := is.(map[string]any)
		if !ok {
			return map[string]string{path: fmt.Sprintf("was an object and is %v", is)}
		}
		for name, value := range w {
			if _, there := i[name]; !there {
				out[path+"."+name] = fmt.Sprintf("was %v and is gone", value)
				continue
			}
			add(path+"."+name, value, i[name])
		}
	case []any:
		i, ok := is.([]any)
		if !ok || len(i) != len(w) {
			return map[string]string{path: fmt.Sprintf("was %v and is %v", was, is)}
		}
		for k := range w {
			add(path+"[]", w[k], i[k])
		}
	default:
		if was != is {
			out[path] = fmt.Sprintf("was %v and is %v", was, is)
		}
	}
	return out
}

// onPurpose returns the places that a file lists, one a line, each with a colon and the reason behind it.
func onPurpose(t *testing.T, file string) (out []string) {
	t.Helper()
	for line := range strings.Lines(string(fileText(t, file))) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		place, why, ok := strings.Cut(line, ": ")
		if !ok || why == "" {
			t.Errorf("%s: %q has no reason (want PATH: REASON)", file, line)
		}
		out = append(out, place)
	}
	return out
}

func fileText(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func planText(t *testing.T, p *plan.Plan) []byte {
	t.Helper()
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The comparison itself finds what is gone, what is otherwise and what has another type, and nothing else.
func TestDifferences(t *testing.T) {
	var was, is any
	for text, to := range map[string]*any{
		`{"a":1,"b":{"c":"x"},"d":[{"e":1},{"e":2}],"f":[1],"g":{"h":1},"i":null,"same":[true]}`:             &was,
		`{"b":{"c":"y","new":1},"d":[{"e":1},{"e":3,"new":1}],"f":[1,2],"g":[],"i":0,"same":[true],"new":1}`: &is,
	} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{".a": "was 1 and is gone", ".b.c": "was x and is y", ".d[].e": "was 2 and is 3", ".f": "was [1] and is [1 2]",
		".g": "was an object and is []", ".i": "was <nil> and is 0"}
	got := differences("", was, is)
	for path, what := range want {
		if got[path] != what {
			t.Errorf("%s: got %q, want %q", path, got[path], what)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %d differences", got, len(want))
	}
}
