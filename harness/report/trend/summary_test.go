package trend_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/report/trend"
)

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// nights is an arm's trials, one a day: R reproduced, n not, ? inconclusive.
func nights(role, letters string) (out []history.Entry) {
	for i, l := range letters {
		out = append(out, history.Entry{Time: t0.AddDate(0, 0, i), Scenario: "x", Pair: "modern", Arm: role, Role: role, Trial: "001", Digest: "aaaaaaaaaaaaaaaa",
			Outcome: map[rune]string{'R': "Reproduced", 'n': "NotReproduced", '?': "Inconclusive"}[l], Run: fmt.Sprintf("%08d-x", i)})
	}
	return out
}

func TestSummary(t *testing.T) {
	entries := append(nights("fixed", "nn"), nights("vulnerable", strings.Repeat("R", 11)+"?n")...)
	lines := trend.Summary(entries)
	if len(lines) != 2 || lines[0].Role != "vulnerable" || lines[1].Role != "fixed" {
		t.Fatalf("%+v", lines)
	}
	v := lines[0]
	if v.Trials != 13 || v.All.String() != "11 of 12" || v.Others["Inconclusive"] != 1 || v.Last.Run != "00000010-x" || v.Newest.Outcome != "NotReproduced" {
		t.Errorf("%+v", v)
	}
	if len(v.Spans) != 2 || v.Spans[0].String() != "10 of 10" || v.Spans[1].String() != "1 of 2" || !v.Spans[1].From.Equal(t0.AddDate(0, 0, 10)) {
		t.Errorf("%+v", v.Spans)
	}
	if lines[1].Last != nil || lines[1].All.K != 0 {
		t.Errorf("%+v", lines[1])
	}
}

// Where the control didn't show the incident either, a fixed arm without it proves nothing. One that shows it does, always.
func TestATrialWithoutAVerdictIsNoTrialWithoutTheIncident(t *testing.T) {
	fixed, control := nights("fixed", "nnR"), nights("vulnerable", "nnR")
	for i := range fixed {
		fixed[i].Verdict, control[i].Verdict = "Inconclusive", "Inconclusive"
	}
	fixed[0].Verdict, control[0].Verdict = "NotReproduced", "NotReproduced"
	lines := trend.Summary(append(fixed, control...))
	if v := lines[0]; v.All.String() != "1 of 3" || len(v.Others) != 0 {
		t.Errorf("the control: %s, others %v", v.All, v.Others)
	}
	if f := lines[1]; f.All.String() != "1 of 2" || !cmp.Equal(f.Others, map[string]int{"NotReproduced in a trial that proves nothing": 1}) {
		t.Errorf("the fixed arm: %s, others %v", f.All, f.Others)
	}
}

func TestFading(t *testing.T) {
	many := strings.Repeat("R", 30)
	for _, c := range []struct {
		name, role, letters string
		want                []string
		silent              string
	}{
		{"as ever", "vulnerable", many + many, nil, ""},
		{"one miss", "vulnerable", many + "RRRRRRRRRn", nil, ""},
		{"four misses may be chance, over all the looks of a year", "vulnerable", many + "RnRnRnRnRR", nil, ""},
		{"blind", "vulnerable", many + "nnnnnnnnnn", []string{"Reproduced in 0 of 10 since 2026-04-03 (at most 57.7 %), and in 30 of 30 before (at least 80.1 %), by confidence sequences"}, ""},
		{"half of them", "vulnerable", many + strings.Repeat("Rn", 20), []string{"Reproduced in 20 of 40 since 2026-04-03 (at most 80.0 %), and in 30 of 30 before (at least 80.1 %), by confidence sequences"}, ""},
		{"too new for a comparison", "vulnerable", "RRRRRRRRRnnnnnnnnnn", nil, ""},
		{"two without an answer", "vulnerable", many + "??", nil, ""},
		{"three without an answer", "vulnerable", many + "???", nil, "the last 3 trials gave no answer, the newest is Inconclusive"},
		{"three, and then one", "vulnerable", many + "???R", nil, ""},
		{"hardly an answer any more", "vulnerable", many + "????R?????",
			[]string{"there was an answer in 1 of 10 since 2026-04-03 (at most 71.2 %), and in 30 of 30 before (at least 80.1 %), by confidence sequences"}, "the last 5 trials gave no answer, the newest is Inconclusive"},
		{"a fixed arm has no bite to lose", "fixed", many + "nnnnnnnnnn???", nil, ""},
	} {
		l := trend.Summary(nights(c.role, c.letters))[0]
		if !cmp.Equal(c.want, l.Fading) || l.Silent != c.silent {
			t.Errorf("%s: %q and %q, want %q and %q", c.name, l.Fading, l.Silent, c.want, c.silent)
		}
	}
	changed := nights("vulnerable", many+"nnnnnnnnnn")
	for i := 30; i < 40; i++ {
		changed[i].Digest = "bbbbbbbbbbbbbbbb"
	}
	if got := trend.Summary(changed)[0].Fading[0]; !strings.HasSuffix(got, "; the binary was aaaaaaaaaaaa and is bbbbbbbbbbbb") {
		t.Errorf("another binary: %q", got)
	}
}
