package verdict_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A candidate is judged as if the others weren't there, whatever they are. One that runs the same program says something
// about it, if it has an answer at all.
func TestACandidateIsJudgedAlone(t *testing.T) {
	arm := func(name, role, program string, is verdict.Outcome) verdict.Arm {
		expected := verdict.NotReproduced
		if role == scenario.Vulnerable {
			expected = verdict.Reproduced
		}
		return verdict.Arm{Name: name, Role: role, Program: program, Outcome: is, Expected: expected}
	}
	bitten := arm("vulnerable", scenario.Vulnerable, "v", verdict.Reproduced)
	well := arm("fixed", scenario.Fixed, "f", verdict.NotReproduced)
	for _, c := range []struct {
		name     string
		controls []verdict.Arm
		one      verdict.Arm
		other    verdict.Arm
		gone     string
		want     verdict.Verdict
		says     string
	}{
		{"good beside a bad one", nil, arm("a", scenario.Candidate, "a", verdict.NotReproduced), arm("b", scenario.Candidate, "b", verdict.Reproduced), "",
			verdict.Validated, "a did not show the incident"},
		{"bad beside a good one", nil, arm("a", scenario.Candidate, "a", verdict.Reproduced), arm("b", scenario.Candidate, "b", verdict.NotReproduced), "",
			verdict.StillVulnerable, "a still shows the incident"},
		{"good beside one on which the harness failed", nil, arm("a", scenario.Candidate, "a", verdict.NotReproduced), arm("b", scenario.Candidate, "b", verdict.Error), "",
			verdict.Validated, ""},
		{"on which the harness failed", nil, arm("a", scenario.Candidate, "a", verdict.Error), arm("b", scenario.Candidate, "b", verdict.NotReproduced), "",
			verdict.VerdictError, "the harness failed on arm a"},
		{"the same program with another answer", nil, arm("a", scenario.Candidate, "x", verdict.NotReproduced), arm("b", scenario.Candidate, "x", verdict.Reproduced), "",
			verdict.VerdictInconclusive, "with the same binary"},
		{"the same program without an answer", nil, arm("a", scenario.Candidate, "x", verdict.NotReproduced), arm("b", scenario.Candidate, "x", verdict.Inconclusive), "",
			verdict.Validated, ""},
		{"programs that aren't known", nil, arm("a", scenario.Candidate, "", verdict.NotReproduced), arm("b", scenario.Candidate, "", verdict.Reproduced), "",
			verdict.Validated, ""},
		{"a control that was not as expected", []verdict.Arm{arm("vulnerable", scenario.Vulnerable, "v", verdict.NotReproduced), well},
			arm("a", scenario.Candidate, "a", verdict.NotReproduced), arm("b", scenario.Candidate, "b", verdict.Reproduced), "",
			verdict.VerdictInconclusive, "the control vulnerable is NotReproduced"},
		{"the fixed arm's program with another answer", nil, arm("a", scenario.Candidate, "f", verdict.Reproduced), arm("b", scenario.Candidate, "b", verdict.NotReproduced), "",
			verdict.VerdictInconclusive, "with the same binary"},
		{"evidence that is gone", nil, arm("a", scenario.Candidate, "a", verdict.NotReproduced), arm("b", scenario.Candidate, "b", verdict.NotReproduced), "a file is gone",
			verdict.VerdictInconclusive, "a file is gone; without them a did not show the incident"},
	} {
		controls := c.controls
		if controls == nil {
			controls = []verdict.Arm{bitten, well}
		}
		whole := verdict.Trial{Arms: append(controls, c.one, c.other), Gone: c.gone}
		got := whole.Alone("a")
		if got.Verdict != c.want || !strings.Contains(got.Sentence, c.says) {
			t.Errorf("%s: %s: %s\nwant %s: %s", c.name, got.Verdict, got.Sentence, c.want, c.says)
		}
		if len(whole.Arms) != 4 || whole.Verdict != "" {
			t.Errorf("%s: the trial was changed", c.name)
		}
	}
}
