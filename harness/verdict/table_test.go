package verdict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// byColumns is the outcome table once more, as patterns over the columns: steady, baseline, exposure, signature,
// healed. '+' is met, '-' not met, '*' anything.
var byColumns = []struct {
	pattern string
	outcome verdict.Outcome
}{
	{"+-++*", verdict.Reproduced},
	{"+-+-+", verdict.NotReproduced},
	{"+-+--", verdict.Broken},
	{"+-+?-", verdict.Broken},
	{"*****", verdict.Inconclusive},
}

func TestOutcomeTableIsExhaustive(t *testing.T) {
	seen := map[verdict.Outcome]int{}
	for n := range 3 * 3 * 3 * 3 * 3 {
		var cols [5]check.Truth
		row := ""
		for i, rest := 0, n; i < 5; i, rest = i+1, rest/3 {
			cols[i] = check.Truth(rest % 3)
			row += string("?-+"[cols[i]])
		}
		var want verdict.Outcome
		for _, line := range byColumns {
			if matches(line.pattern, row) {
				want = line.outcome
				break
			}
		}
		got, reason := verdict.OutcomeOf(verdict.Inputs{Steady: cols[0], Baseline: cols[1], Exposure: cols[2], Signature: cols[3], Healed: cols[4],
			Binary: check.True, Process: check.True})
		if got != want || reason == "" {
			t.Errorf("%s: %s (%s), want %s", row, got, reason, want)
		}
		seen[got]++
	}
	if fmt.Sprint(seen) != fmt.Sprint(map[verdict.Outcome]int{verdict.Reproduced: 3, verdict.NotReproduced: 1, verdict.Broken: 2, verdict.Inconclusive: 237}) {
		t.Errorf("the outcomes are shared out as %v", seen)
	}
}

func matches(pattern, row string) bool {
	for i := range pattern {
		if pattern[i] != '*' && pattern[i] != row[i] {
			return false
		}
	}
	return true
}

func TestWhatGoesBeforeTheTable(t *testing.T) {
	good := verdict.Inputs{Steady: check.True, Baseline: check.False, Exposure: check.True, Signature: check.False, Healed: check.True,
		Binary: check.True, Process: check.True}
	for _, c := range []struct {
		name   string
		change func(*verdict.Inputs)
		want   verdict.Outcome
		reason string
	}{
		{"nothing", func(*verdict.Inputs) {}, verdict.NotReproduced, "the signature is not met under proven exposure, and the subject is well"},
		{"a fault never came", func(in *verdict.Inputs) { in.Missed = "flood" }, verdict.Inconclusive, "the signature is not met, but the arm wasn't put to the whole test: flood never came"},
		{"a fault never came, and the incident did", func(in *verdict.Inputs) { in.Missed = "flood"; in.Signature = check.True }, verdict.Reproduced, "the signature is met under proven exposure"},
		{"a fault never came, and it is ill", func(in *verdict.Inputs) { in.Missed = "flood"; in.Healed = check.False }, verdict.Broken, "it failed in another way"},
		{"harness failed", func(in *verdict.Inputs) { in.HarnessError = "disk full"; in.Process = check.False }, verdict.Error, "something of the harness failed: disk full"},
		{"restarted", func(in *verdict.Inputs) { in.Process = check.False }, verdict.Broken, "exited or restarted unasked"},
		{"restarted with a signature", func(in *verdict.Inputs) { in.Process = check.False; in.Signature = check.True }, verdict.Broken, "exited or restarted unasked"},
		{"another binary that restarted", func(in *verdict.Inputs) { in.Process = check.False; in.Binary = check.False }, verdict.Inconclusive, "isn't the binary that belongs to this arm"},
		{"never ready", func(in *verdict.Inputs) { in.NeverReady = true; in.Steady = check.False }, verdict.Broken, "never got Ready where a control did"},
		{"unknown binary", func(in *verdict.Inputs) { in.Binary = check.Unknown }, verdict.Inconclusive, "unknown whether the binary that ran"},
		{"unknown process", func(in *verdict.Inputs) { in.Process = check.Unknown }, verdict.Inconclusive, "unknown whether the subject was one process"},
		{"no exposure", func(in *verdict.Inputs) { in.Exposure = check.False }, verdict.Inconclusive, "the exposure is not met, and must be met"},
		{"ill, and nobody knows with what", func(in *verdict.Inputs) { in.Signature, in.Healed = check.Unknown, check.False }, verdict.Broken,
			"the subject is not well, and the signature is unknown, so that it may be the incident or another failure"},
		{"well, and the signature unknown", func(in *verdict.Inputs) { in.Signature = check.Unknown }, verdict.Inconclusive,
			"the signature is unknown, and must be met, or not met with every part of it known"},
		{"nothing known", func(in *verdict.Inputs) { *in = verdict.Inputs{} }, verdict.Inconclusive, "unknown"},
	} {
		in := good
		c.change(&in)
		got, reason := verdict.OutcomeOf(in)
		if got != c.want || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, reason, c.want, c.reason)
		}
	}
}

func vulnerable(o verdict.Outcome) verdict.ArmOutcome {
	return verdict.ArmOutcome{Name: "vulnerable", Role: scenario.Vulnerable, Outcome: o, Expected: verdict.Reproduced}
}

func fixed(o verdict.Outcome) verdict.ArmOutcome {
	return verdict.ArmOutcome{Name: "fixed", Role: scenario.Fixed, Outcome: o, Expected: verdict.NotReproduced}
}

func candidate(o verdict.Outcome) verdict.ArmOutcome {
	return verdict.ArmOutcome{Name: "candidate", Role: scenario.Candidate, Outcome: o, Expected: verdict.NotReproduced}
}

func TestVerdictTable(t *testing.T) {
	oneBinary := func(arms ...verdict.ArmOutcome) []verdict.ArmOutcome {
		for i := range arms {
			arms[i].Digest = "aa"
		}
		return arms
	}
	ill := candidate(verdict.Broken)
	ill.MayBeIncident = true
	second := func(o verdict.Outcome) verdict.ArmOutcome {
		a := candidate(o)
		a.Name = "another"
		return a
	}
	const R, N, B, I, E = verdict.Reproduced, verdict.NotReproduced, verdict.Broken, verdict.Inconclusive, verdict.Error
	for _, c := range []struct {
		arms     []verdict.ArmOutcome
		want     verdict.Verdict
		exit     int
		sentence string
	}{
		{nil, "Error", 4, "no arm was judged"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(N)}, "Validated", 0, "fixed did not show the incident under the fault that reproduced it in vulnerable"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(R)}, "StillVulnerable", 1, "fixed still shows the incident"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(B)}, "Broken", 1, "failed in another way"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(I)}, "Inconclusive", 3, "fixed gave no answer"},
		{[]verdict.ArmOutcome{vulnerable(N), fixed(N)}, "NotReproduced", 1, "nothing shows that the cure works"},
		{[]verdict.ArmOutcome{vulnerable(N), fixed(R)}, "Inconclusive", 3, "control vulnerable is NotReproduced and should be Reproduced"},
		{[]verdict.ArmOutcome{vulnerable(I), fixed(N)}, "Inconclusive", 3, "control vulnerable is Inconclusive"},
		{[]verdict.ArmOutcome{vulnerable(B), fixed(N)}, "Inconclusive", 3, "control vulnerable is Broken"},
		{[]verdict.ArmOutcome{vulnerable(I), fixed(I)}, "Inconclusive", 3, "control vulnerable is Inconclusive"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(E)}, "Error", 4, "failed on arm fixed"},
		{[]verdict.ArmOutcome{vulnerable(E), fixed(B)}, "Error", 4, "failed on arm vulnerable"},
		{[]verdict.ArmOutcome{vulnerable(R)}, "Reproduced", 0, "the only arm vulnerable is Reproduced, expected Reproduced"},
		{[]verdict.ArmOutcome{vulnerable(N)}, "NotReproduced", 1, "expected Reproduced"},
		{[]verdict.ArmOutcome{fixed(N)}, "NotReproduced", 0, "expected NotReproduced"},
		{[]verdict.ArmOutcome{fixed(R)}, "Reproduced", 1, "expected NotReproduced"},
		{[]verdict.ArmOutcome{fixed(I)}, "Inconclusive", 3, "expected NotReproduced"},
		{[]verdict.ArmOutcome{fixed(B)}, "Broken", 1, "expected NotReproduced"},
		{[]verdict.ArmOutcome{fixed(E)}, "Error", 4, "failed on arm fixed"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(N), candidate(N)}, "Validated", 0, "candidate did not show the incident under the fault that reproduced it in vulnerable, while fixed is NotReproduced"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(N), candidate(R)}, "StillVulnerable", 1, "candidate still shows the incident"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(B), candidate(N)}, "Inconclusive", 3, "control fixed is Broken"},
		{[]verdict.ArmOutcome{vulnerable(N), fixed(N), candidate(N)}, "Inconclusive", 3, "control vulnerable is NotReproduced"},
		{[]verdict.ArmOutcome{vulnerable(R), candidate(I)}, "Inconclusive", 3, "candidate gave no answer"},
		{[]verdict.ArmOutcome{vulnerable(R), vulnerable(R)}, "Inconclusive", 3, "none to judge"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed("")}, "Error", 4, "has no outcome"},
		{[]verdict.ArmOutcome{vulnerable(R), fixed(N), ill}, "Broken", 1, "candidate is not well, and whether that is the incident or something else is not known"},
		{oneBinary(vulnerable(R), fixed(N)), "Inconclusive", 3, "vulnerable is Reproduced and fixed is NotReproduced with the same binary, so what makes the difference is not the build"},
		{oneBinary(vulnerable(N), fixed(N)), "NotReproduced", 1, "nothing shows that the cure works"},
		{oneBinary(vulnerable(E), fixed(N)), "Error", 4, "failed on arm vulnerable"},
		{append(oneBinary(fixed(N), candidate(R)), vulnerable(R)), "Inconclusive", 3, "fixed is NotReproduced and candidate is Reproduced with the same binary"},
		{append(oneBinary(fixed(N), candidate(B)), vulnerable(R)), "Inconclusive", 3, "fixed is NotReproduced and candidate is Broken with the same binary"},
		{append(oneBinary(vulnerable(R), candidate(N)), fixed(N)), "Inconclusive", 3, "vulnerable is Reproduced and candidate is NotReproduced with the same binary"},
		{append(oneBinary(candidate(N), second(R)), vulnerable(R)), "Inconclusive", 3, "candidate is NotReproduced and another is Reproduced with the same binary"},
		{append(oneBinary(fixed(N), candidate(N)), vulnerable(R)), "Validated", 0, "candidate did not show the incident under the fault that reproduced it in vulnerable, while fixed is NotReproduced"},
		{append(oneBinary(fixed(N), candidate(I)), vulnerable(R)), "Inconclusive", 3, "candidate gave no answer"},
	} {
		v, exit, sentence, next := verdict.Decide(c.arms)
		if v != c.want || exit != c.exit || !strings.Contains(sentence, c.sentence) {
			t.Errorf("%+v: %s, %d, %q; want %s, %d, %q", c.arms, v, exit, sentence, c.want, c.exit, c.sentence)
		}
		if (next != "") != (v == verdict.VerdictInconclusive) {
			t.Errorf("%+v is %s, and the next step is %q", c.arms, v, next)
		}
	}
}

func TestCombine(t *testing.T) {
	for _, c := range []struct {
		exits []int
		want  int
	}{
		{nil, 4}, {[]int{0}, 0}, {[]int{0, 3}, 3}, {[]int{3, 4, 0}, 4}, {[]int{4, 1, 3}, 1}, {[]int{0, 2}, 4}, {[]int{0, 130}, 4},
	} {
		if got := verdict.Combine(c.exits); got != c.want {
			t.Errorf("Combine(%v) = %d, want %d", c.exits, got, c.want)
		}
	}
}
