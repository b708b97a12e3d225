package cli

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/rhysd/actionlint"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

func lint(t *testing.T, path string, text []byte) []*actionlint.Error {
	t.Helper()
	shellcheck, err := exec.LookPath("shellcheck") // for the scripts in the steps
	if err != nil {
		shellcheck = ""
	}
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{Shellcheck: shellcheck})
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.Lint(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestWorkflows checks the workflows as GitHub would read them, and that they use nobody's actions but GitHub's and ours.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range lint(t, path, text) {
			t.Errorf("%s", e)
		}
		var w struct {
			Jobs map[string]struct {
				Steps []struct{ Uses, Run string }
			}
		}
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatal(err)
		}
		used := 0
		for job, j := range w.Jobs {
			for _, s := range j.Steps {
				if s.Uses != "" && !strings.HasPrefix(s.Uses, "actions/") && !strings.HasPrefix(s.Uses, "kube-relapse/relapse@") {
					t.Errorf("%s, job %s uses %s: want actions/* and kube-relapse/relapse only", path, job, s.Uses)
				}
				if s.Uses != "" {
					used++
				}
				for word := range strings.FieldsSeq(s.Run) { // what it runs of ours must be there
					if strings.HasPrefix(word, ".ci/") {
						if info, err := os.Stat(filepath.Join("../..", word)); err != nil || info.Mode()&0o111 == 0 {
							t.Errorf("%s, job %s runs %s, which can't be: %v", path, job, word, err)
						}
					}
				}
			}
		}
		if used == 0 {
			t.Errorf("%s uses no action at all: it was not read", path)
		}
	}
	broken := "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ matrix.scenario }}\n"
	if found := lint(t, "broken.yaml", []byte(broken)); len(found) != 1 || !strings.Contains(found[0].Message, `property "scenario" is not defined`) {
		t.Errorf("the linter finds nothing in a broken workflow: %v", found)
	}
}

// TestSummaryForCI has .ci/summary tell of a nightly, and of one that never began.
func TestSummaryForCI(t *testing.T) {
	needTool(t, "jq")
	dir := t.TempDir()
	say := func() string {
		out, err := exec.Command("../../.ci/summary", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := say(); !strings.Contains(got, "the nightly ended before it began") {
		t.Errorf("without a summary: %q", got)
	}
	put := func(name string, v any) {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(campaign.SummaryFile, campaign.Summary{Schema: campaign.SummarySchema, EndedAt: time.Now(), Verdict: verdict.StillVulnerable, ExitCode: 1, Units: []campaign.Result{
		{Scenario: "a", Pair: "modern", Status: campaign.Done, Verdict: "StillVulnerable", Exit: 1, Seconds: 600, Dir: "1-a", Rates: []judge.Rate{{Arm: "fixed", Sentence: "1 of 3"}, {Arm: "vulnerable", Sentence: "3 of 3"}}},
		{Scenario: "b", Pair: "modern", Status: campaign.NotDone, Why: "the *budget | is\nused up", Exit: 3},
	}})
	put("1-a/verdict.json", judge.Verdict{Scenario: "a", Verdict: verdict.StillVulnerable, Arms: []verdict.Arm{
		{Name: "fixed", Trial: "002", Pair: "modern", Outcome: verdict.Reproduced, Expected: verdict.NotReproduced, Reason: "the signature is met: <nil>\nof *v1.Pod"},
		{Name: "vulnerable", Trial: "002", Pair: "modern", Outcome: verdict.Reproduced, Expected: verdict.Reproduced},
	}})
	got := say()
	for _, want := range []string{
		"## StillVulnerable (exit 1)\n", "| a | modern | StillVulnerable | 1 | 10 | fixed: 1 of 3<br>vulnerable: 3 of 3 |\n", `| b | modern | notDone: the \*budget \| is used up | 3 | 0 |  |` + "\n",
		"### a: StillVulnerable\n", "- trial 002, modern, **fixed** is Reproduced, expected NotReproduced: the signature is met: \\<nil> of \\*v1.Pod\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "**vulnerable**") {
		t.Errorf("it lists an arm that is as expected:\n%s", got)
	}
}

// The form for a failure must ask for what helps, by commands that relapse has.
func TestIssueFormsAskForWhatHelps(t *testing.T) {
	forms, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(forms) != 3 {
		t.Fatalf("%d forms, %v", len(forms), err)
	}
	asked := map[string]bool{} // what a form can't be sent without
	for _, form := range forms {
		text, err := os.ReadFile(form)
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Name, Description string
			Body              []struct {
				Type        string
				Attributes  struct{ Label, Description string }
				Validations struct{ Required bool }
			}
		}
		if err := yaml.Unmarshal(text, &f); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		for _, b := range f.Body {
			asked[b.Attributes.Label] = asked[b.Attributes.Label] || b.Validations.Required
			if command, ok := strings.CutPrefix(b.Attributes.Label, "relapse "); ok {
				wantFlags(t, command)
			}
		}
	}
	for _, want := range []string{"relapse version", "relapse doctor --report", "The bundle"} {
		if !asked[want] {
			t.Errorf("no form has to have %q: %v", want, asked)
		}
	}
}
