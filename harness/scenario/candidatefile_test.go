package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// withCandidates is the scenario of testdata with candidates beside it, by file name.
func withCandidates(t *testing.T, files map[string]string) *scenario.Scenario {
	t.Helper()
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	return withScenario(t, string(text), files)
}

// withScenario is a scenario of that text with candidates beside it.
func withScenario(t *testing.T, text string, files map[string]string) *scenario.Scenario {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pleg")
	if err := os.MkdirAll(filepath.Join(dir, scenario.CandidatesDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, scenario.FileName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, scenario.CandidatesDir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Load(filepath.Join(dir, scenario.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const larger = `apiVersion: relapse.dev/v1alpha1
kind: Candidate
metadata: {name: larger}
spec:
  doc: a channel five times as large
  right: Reproduced
  why: a larger flood fills it
  because: {check: stuck, is: met}
  base: vulnerable
  pairs: [modern]
  mutations:
    - {kind: testCut, sites: 2, spec: {ident: capacity}}
`

// A candidate has the source of the arm that it starts from, and its own mutations come after that arm's.
func TestCandidateIsAFurtherArmOfAPair(t *testing.T) {
	s := withCandidates(t, map[string]string{"larger.yaml": larger})
	all, err := s.Candidates()
	if err != nil || len(all) != 1 {
		t.Fatalf("candidates %v, error %v, want one", all, err)
	}
	k := all[0]
	if !k.For("modern") || k.For("other") {
		t.Errorf("for modern %v, for other %v; want modern alone", k.For("modern"), k.For("other"))
	}
	arm, err := k.Arm(s.Spec.Pairs[0])
	if err != nil {
		t.Fatal(err)
	}
	var sites []int
	for _, m := range arm.Source.Mutations {
		sites = append(sites, m.Sites)
	}
	if arm.Name != "larger" || arm.Role != scenario.Candidate || !slices.Equal(sites, []int{1, 2}) {
		t.Errorf("arm %s, role %s, mutations of %v sites", arm.Name, arm.Role, sites)
	}
	if n := len(s.Spec.Pairs[0].Arms[0].Source.Mutations); n != 1 {
		t.Errorf("the vulnerable arm has %d mutations now, want its own", n)
	}
}

func TestNoCandidatesAreNone(t *testing.T) {
	if all, err := withCandidates(t, nil).Candidates(); err != nil || len(all) != 0 {
		t.Errorf("candidates %v, error %v, want none", all, err)
	}
}

func TestWrongCandidates(t *testing.T) {
	for _, tc := range []struct{ name, file, old, new, want string }{
		{"unknown field", "larger.yaml", "  doc:", "  dco: x\n  doc:", `larger.yaml:5:3: spec.dco: unknown field (want one of alone, base, because, doc, mutations, pairs, right, set, why)`},
		{"unknown outcome", "larger.yaml", "right: Reproduced", "right: Validated",
			`larger.yaml:6:10: spec.right: unknown right "Validated" (want one of Reproduced, NotReproduced, Broken, Inconclusive)`},
		{"no reason", "larger.yaml", "  why: a larger flood fills it\n", "", `larger.yaml:4:1: spec.why: is missing (want a text: why that is the right answer)`},
		{"another name than the file's", "bigger.yaml", "", "", `bigger.yaml:3:18: metadata.name: "larger" is not the file's name (want bigger)`},
		{"the name of a build that is given", "candidate-1.yaml", "name: larger", "name: candidate-1",
			`candidate-1.yaml:3:18: metadata.name: "candidate-1" is a name of builds that are given on the command line (want one that is not candidate and does not begin with candidate-)`},
		{"a name too long for a node's", "larger.yaml", "name: larger", "name: larger-than-a-name-of-a-node-may-be", `is not valid (want`},
		{"unknown pair", "larger.yaml", "[modern]", "[moden]", `larger.yaml:10:11: spec.pairs[0]: "moden" is no pair of pleg (want one of modern; did you mean modern?`},
		{"unknown setting", "larger.yaml", "  base:", "  set: {latancy: 4s}\n  base:", `larger.yaml:9:9: spec.set.latancy: spec has no field "latancy"`},
		{"unknown base", "larger.yaml", "base: vulnerable", "base: candidate", `spec.base: unknown base "candidate" (want one of vulnerable, fixed)`},
		{"unknown mutation", "larger.yaml", "testCut", "testCat", `spec.mutations[0].kind: unknown mutation kind "testCat"`},
		{"an unknown field of a mutation", "larger.yaml", "ident: capacity", "idnt: capacity", `spec.mutations[0].spec.idnt: unknown field (want one of ident; did you mean ident?`},
		{"a version that it is not for", "larger.yaml", "sites: 2,", `sites: 2, versions: "<1.30.0",`, `spec.mutations[0].versions: "<1.30.0" leaves out the arm's own version v1.34.4`},
		{"the cure of an arm as it is", "larger.yaml", larger[strings.Index(larger, "  mutations:"):], "",
			""},
		{"no cure without a change", "larger.yaml", larger[strings.Index(larger, "right:"):], "right: NotReproduced\n  why: no\n  base: vulnerable\n",
			`spec.right: NotReproduced can't be right for the vulnerable arm as it is (want mutations, or Reproduced)`},
		{"nothing", "larger.yaml", larger, "# nothing\n", `larger.yaml:1:1: is empty (want a candidate)`},
		{"a scenario", "larger.yaml", "kind: Candidate", "kind: Scenario", `kind: "Scenario" is not valid (want Candidate)`},
		{"another file", "larger.txt", "", "", `"larger" is not the file's name`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := withCandidates(t, map[string]string{tc.file: strings.Replace(larger, tc.old, tc.new, 1)}).Candidates()
			if tc.want == "" {
				if err != nil {
					t.Errorf("error %v, want none", err)
				}
				return
			}
			var vs scenario.Violations
			if !errors.As(err, &vs) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestWhatAPairSetsIsCheckedAgainstItsScenario(t *testing.T) {
	text, err := os.ReadFile(parametrised)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ set, want string }{
		{"{latency: 4s, phases.recovery.deadline: 2m}", ""},
		{"{latency: soon}", `x.yaml:28:22: spec.pairs[0].set.latency: "soon" is no duration`},
		{"{latncy: 40s}", "x.yaml:28:13: spec.pairs[0].set.latncy: there is no such parameter, and no such field of spec"},
	} {
		_, err := scenario.Parse("x.yaml", []byte(strings.Replace(string(text), "\n      vulnerable:", "\n      set: "+tc.set+"\n      vulnerable:", 1)))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.set, err, tc.want)
		}
	}
}

func TestOracleIsCheckedAgainstItsScenario(t *testing.T) {
	text, err := os.ReadFile(parametrised)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ oracle, want string }{
		{"{pair: modern, set: {latency: 4s, phases.recovery.deadline: 2m}}", ""},
		{"{pair: moden}", `spec.oracle.pair: "moden" is no pair (want one of genuine, modern; did you mean modern?`},
		{"{set: {latency: soon}}", `spec.oracle.set.latency: "soon" is no duration`},
		{"{set: {latncy: 40s}}", `spec.oracle.set.latncy: there is no such parameter, and no such field of spec (want one of apiserver.memory, call, latency,`},
	} {
		_, err := scenario.Parse("x.yaml", []byte(strings.Replace(string(text), "\n  pairs:", "\n  oracle: "+tc.oracle+"\n  pairs:", 1)))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.oracle, err, tc.want)
		}
	}
}
