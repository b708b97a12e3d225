package verdict_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

var update = flag.Bool("update", false, "write docs/inconclusive.md anew")

const causesPage = "../../docs/inconclusive.md"

func TestThePageOfCausesIsWrittenFromTheTexts(t *testing.T) {
	var want bytes.Buffer
	if err := verdict.WriteCausesPage(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(causesPage, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(causesPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from the texts: go test ./harness/verdict -run %s -update", causesPage, t.Name())
	}
	for _, g := range verdict.Causes() {
		for _, c := range g.Causes {
			for _, text := range []string{c.Says, c.Means, c.See, c.Next} {
				if text == "" || strings.ContainsAny(text, "`\n") {
					t.Errorf("%q has the text %q (want one without backquotes and line breaks)", c.Says, text)
				}
			}
		}
	}
}

func TestEveryCodeHasACause(t *testing.T) {
	codes := verdict.Causes()[3].Causes
	for i, c := range check.Codes {
		if i >= len(codes) || codes[i].Says != string(c) {
			t.Fatalf("cause %d is not %s: the causes follow check.Codes", i, c)
		}
	}
	if len(codes) > len(check.Codes) {
		t.Errorf("there is a cause %s and no such code", codes[len(check.Codes)].Says)
	}
}

// Every reason that the outcome table gives for Inconclusive is explained, and no other.
func TestEveryInconclusiveReasonHasACause(t *testing.T) {
	seen := map[string]bool{}
	truths := []check.Truth{check.Unknown, check.False, check.True}
	var in verdict.Inputs
	columns := []*check.Truth{&in.Binary, &in.Process, &in.Steady, &in.Baseline, &in.Exposure, &in.Signature,
		&in.Healed}
	var walk func(column int)
	walk = func(column int) {
		if column < len(columns) {
			for _, truth := range truths {
				*columns[column] = truth
				walk(column + 1)
			}
			return
		}
		for _, in.NeverReady = range []bool{false, true} {
			for _, in.Missed = range []string{"", "the fault slow"} {
				if outcome, reason := verdict.OutcomeOf(in); outcome == verdict.Inconclusive {
					seen[reason] = true
				}
			}
		}
	}
	walk(0)
	explains(t, verdict.Causes()[2].Causes, seen)
}

// Every sentence of an Inconclusive trial is explained. That of missing files is not of its arms' outcomes.
func TestEveryInconclusiveSentenceHasACause(t *testing.T) {
	seen := map[string]bool{"files of the bundle are gone (1, such as x), and what they would say is not known": true}
	outcomes := []verdict.Outcome{verdict.Reproduced, verdict.NotReproduced, verdict.Broken, verdict.Inconclusive,
		verdict.Error}
	expected := map[string]verdict.Outcome{scenario.Vulnerable: verdict.Reproduced,
		scenario.Fixed: verdict.NotReproduced, scenario.Candidate: verdict.NotReproduced}
	var walk func([]verdict.ArmOutcome)
	walk = func(arms []verdict.ArmOutcome) {
		if v, _, sentence, _ := verdict.Decide(arms); v == verdict.VerdictInconclusive {
			seen[sentence] = true
		}
		if len(arms) == 3 {
			return
		}
		for role, want := range expected {
			for _, o := range outcomes {
				for _, digest := range []string{"", "a"} {
					walk(append(arms[:len(arms):len(arms)],
						verdict.ArmOutcome{Name: role, Role: role, Outcome: o, Expected: want, Digest: digest}))
				}
			}
		}
	}
	walk(nil)
	explains(t, verdict.Causes()[1].Causes, seen)
}

// Every way in which an open-ended run stays without an answer is explained.
func TestEveryUndecidedRunHasACause(t *testing.T) {
	rule := rate.Rule{Target: 0.5, Confidence: 0.8, Max: 4}
	if err := rule.Validate(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{
		"the run was cut short, or isn't over: 1 of 2 trials were sealed; fixed did not show the incident": true,
		"one trial of an open-ended run gives no verdict by itself: fixed did not show the incident":       true,
	}
	for clear := range 5 {
		for silent := range 2 {
			for aside := range 5 {
				for doubtful := range aside + 1 {
					d := rule.Decide(rate.Tally{Judged: "fixed", Clear: clear, Silent: silent, SetAside: aside,
						Doubtful: doubtful, Control: "vulnerable", Bites: rate.Count{K: clear, N: clear}})
					if d.End == rate.Undecided || !d.Done() {
						seen[d.Why] = true
					}
				}
			}
		}
	}
	explains(t, verdict.Causes()[0].Causes, seen)
}

// explains wants a cause for each text, and a text for each cause.
func explains(t *testing.T, causes []verdict.Cause, texts map[string]bool) {
	t.Helper()
	used := map[string]bool{}
	for text := range texts {
		found := false
		for _, c := range causes {
			if says(c.Says, text) {
				used[c.Says], found = true, true
			}
		}
		if !found {
			t.Errorf("nothing explains %q", text)
		}
	}
	for _, c := range causes {
		if !used[c.Says] {
			t.Errorf("nothing says %q", c.Says)
		}
	}
}

// says reports whether a text has the parts of a cause's words, in their order. Where the words don't begin with
// something that differs, the text begins with them.
func says(words, text string) bool {
	for i, part := range strings.Split(words, "…") {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
