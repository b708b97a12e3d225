package campaign_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// because are grounds of candidates whose arms armThatIs makes.
var because = map[verdict.Outcome]scenario.Grounds{
	verdict.Reproduced:    {ground("signature/sick", scenario.IsMet)},
	verdict.NotReproduced: {ground("exposure/exposed", scenario.IsMet), ground("healed/well", scenario.IsMet)},
	verdict.Broken:        {ground("healed/well", scenario.IsNotMet)},
	verdict.Inconclusive:  {ground("exposure/exposed", scenario.IsNotMet)},
}

// ground is one as it is once a candidate was read: LIST/NAME is looked up.
func ground(check, is string) scenario.Ground {
	list, name, _ := strings.Cut(check, "/")
	called := name
	if list == scenario.BuiltInList {
		called = check
	}
	return scenario.Ground{Check: called, Is: is, List: list, Name: name}
}

func found(name string, met check.Truth) check.Finding { return check.Finding{Name: name, Met: met} }

// armThatIs is an arm with findings by which it has its outcome.
func armThatIs(o verdict.Outcome) verdict.Arm {
	exposed, sick, well := check.True, check.False, check.True
	switch o {
	case verdict.Reproduced:
		sick, well = check.True, check.False
	case verdict.Broken:
		well = check.False
	case verdict.Inconclusive:
		exposed = check.False
	}
	return verdict.Arm{Outcome: o, BuiltIn: verdict.BuiltIn{Binary: check.True, Process: check.True, Ready: check.True},
		Steady: []check.Finding{found("up", check.True)}, Baseline: []check.Finding{found("sick", check.False)},
		Exposure: []check.Finding{found("exposed", exposed)}, Signature: []check.Finding{found("sick", sick)},
		Healed: []check.Finding{found("well", well), found("quick", check.True)}}
}

// The right outcome counts only if it comes from what the candidate names.
func TestRightOnlyByTheNamedChecks(t *testing.T) {
	for _, tc := range []struct {
		name    string
		right   verdict.Outcome
		because scenario.Grounds
		change  func(*verdict.Arm) // of an arm with the right outcome by armThatIs
		want    string
	}{
		{"as said", verdict.Broken, because[verdict.Broken], nil, "right: seen"},
		{"a cure", verdict.NotReproduced, because[verdict.NotReproduced], nil, "right: seen"},
		{"the incident", verdict.Reproduced, because[verdict.Reproduced], nil, "right: seen"},
		{"not exposed, by the only check of its list", verdict.Inconclusive, because[verdict.Inconclusive], nil, "right: seen"},
		{"without grounds", verdict.Broken, nil, nil, "no answer: it is Broken, and nothing says by which check that is right; seen"},
		{"its node never came up", verdict.Inconclusive, because[verdict.Inconclusive], func(a *verdict.Arm) {
			a.Steady[0].Met, a.Exposure[0].Met, a.BuiltIn.Ready = check.Unknown, check.Unknown, check.Unknown
		}, "no answer: it is Inconclusive, but not because exposed is not met: that is unknown; seen"},
		{"its node never came up, and the exposure is as said all the same", verdict.Inconclusive, because[verdict.Inconclusive],
			func(a *verdict.Arm) { a.Steady[0].Met, a.BuiltIn.Ready = check.Unknown, check.Unknown },
			"right by luck: it is Inconclusive, and would be without what decides it (exposed is not met); seen"},
		{"another binary", verdict.Inconclusive, because[verdict.Inconclusive], func(a *verdict.Arm) { a.BuiltIn.Binary = check.Unknown },
			"right by luck: it is Inconclusive, and would be without what decides it (exposed is not met); seen"},
		{"never Ready", verdict.Broken, because[verdict.Broken], func(a *verdict.Arm) {
			a.Steady[0].Met, a.BuiltIn.Ready, a.Healed[0].Met = check.False, check.False, check.Unknown
		}, "no answer: it is Broken, but not because well is not met: that is unknown; seen"},
		{"never Ready, as said", verdict.Broken, scenario.Grounds{ground("built-in/ready", scenario.IsNotMet)},
			func(a *verdict.Arm) { a.Steady[0].Met, a.BuiltIn.Ready = check.False, check.False }, "right: seen"},
		{"restarted", verdict.Broken, because[verdict.Broken], func(a *verdict.Arm) { a.BuiltIn.Process = check.False },
			"right by luck: it is Broken, and would be without what decides it (well is not met); seen"},
		{"restarted, as said", verdict.Broken, scenario.Grounds{ground("built-in/process", scenario.IsNotMet), ground("healed/well", scenario.IsNotMet)},
			func(a *verdict.Arm) { a.BuiltIn.Process = check.False }, "right: seen"},
		{"another check", verdict.Broken, because[verdict.Broken], func(a *verdict.Arm) { a.Healed[0].Met, a.Healed[1].Met = check.True, check.False },
			"right by luck: it is Broken, but not because well is not met: that is met; seen"},
		{"another check as well", verdict.Broken, because[verdict.Broken], func(a *verdict.Arm) { a.Healed[1].Met = check.False },
			"right by luck: it is Broken, and would be without what decides it (well is not met); seen"},
		{"two checks together", verdict.Broken, scenario.Grounds{ground("healed/well", scenario.IsNotMet), ground("healed/quick", scenario.IsNotMet)},
			func(a *verdict.Arm) { a.Healed[1].Met = check.False }, "right: seen"},
		{"one that fails sometimes, and does", verdict.Broken, sometimes("healed/quick"), func(a *verdict.Arm) { a.Healed[1].Met = check.False }, "right: seen"},
		{"one that fails sometimes, and doesn't", verdict.Broken, sometimes("healed/quick"), nil, "right: seen"},
		{"only the one that fails sometimes", verdict.Broken, sometimes("healed/quick"), func(a *verdict.Arm) { a.Healed[0].Met, a.Healed[1].Met = check.True, check.False },
			"right by luck: it is Broken, but not because well is not met: that is met; seen"},
		{"an alternative that holds alone", verdict.NotReproduced, scenario.Grounds{ground("exposure/by-log", scenario.IsMet)}, func(a *verdict.Arm) {
			a.Exposure[0].AnyOf = []check.Finding{found("by-log", check.True), found("by-stack", check.False)}
		}, "right: seen"},
		{"an alternative beside one that holds, too", verdict.NotReproduced, scenario.Grounds{ground("exposure/by-log", scenario.IsMet)}, func(a *verdict.Arm) {
			a.Exposure[0].AnyOf = []check.Finding{found("by-log", check.True), found("by-stack", check.True)}
		}, "right by luck: it is NotReproduced, and would be without what decides it (by-log is met); seen"},
		{"a check that was not asked", verdict.Broken, scenario.Grounds{ground("healed/cut-out", scenario.IsNotMet)}, nil,
			"no answer: it is Broken, but not because cut-out is not met: that is unknown; seen"},
		{"another outcome", verdict.Broken, because[verdict.Broken], func(a *verdict.Arm) { a.Outcome, a.Healed[0].Met = verdict.NotReproduced, check.True }, "wrong: seen"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := known("drops-late", tc.right)
			k.Spec.Because = tc.because
			h := newHall(t, 1, k)
			h.Run = func(context.Context, *plan.Plan) (string, judge.Verdict, error) {
				vulnerable, fixed, a := armThatIs(verdict.Reproduced), armThatIs(verdict.NotReproduced), armThatIs(tc.right)
				vulnerable.Name, vulnerable.Role, vulnerable.Expected = "vulnerable", scenario.Vulnerable, verdict.Reproduced
				fixed.Name, fixed.Role, fixed.Expected = "fixed", scenario.Fixed, verdict.NotReproduced
				a.Name, a.Role, a.Reason = "drops-late", scenario.Candidate, "seen"
				if tc.change != nil {
					tc.change(&a)
				}
				if is := a.Without(nil); is != a.Outcome {
					t.Fatalf("the arm is made to be %s, and its findings make it %s", a.Outcome, is)
				}
				return "/runs/r1", judge.Verdict{Arms: []verdict.Arm{vulnerable, fixed, a}}, nil
			}
			s, err := campaign.Oracle(t.Context(), h.OracleOptions)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(s.Candidates[0].Grade) + ": " + s.Candidates[0].Reason; got != tc.want {
				t.Errorf("graded %q, want %q", got, tc.want)
			}
		})
	}
}

// sometimes are the grounds of a Broken candidate that another check sometimes finds ill, too.
func sometimes(check string) scenario.Grounds {
	may := ground(check, scenario.IsNotMet)
	may.Sometimes = true
	return append(scenario.Grounds{may}, because[verdict.Broken]...)
}

// An outcome that is right by luck is a failure, and is told apart from a wrong one.
func TestRightByLuckFails(t *testing.T) {
	k := known("leaks", verdict.Broken)
	k.Spec.Because = scenario.Grounds{ground("healed/quick", scenario.IsNotMet)}
	s, err := campaign.Oracle(t.Context(), withOutcome(newHall(t, 1, k), "leaks", verdict.Broken).OracleOptions)
	if err != nil {
		t.Fatal(err)
	}
	if s.ExitCode != verdict.ExitFailed || s.Grade != campaign.ByLuck || s.Sentence() != "pleg: of 1 candidates 0 right, 1 right by luck" ||
		s.Table().Rows[0][2] != "right by luck: Broken" {
		t.Errorf("exit %d, %s, %q, row %q", s.ExitCode, s.Grade, s.Sentence(), s.Table().Rows[0])
	}
	want := "| `leaks` | does leaks | Broken | quick is not met | right by luck: Broken |"
	if text := string(s.Markdown()); !strings.Contains(text, want) {
		t.Errorf("the table lacks %q:\n%s", want, text)
	}
}

func withOutcome(h *hall, name string, o verdict.Outcome) *hall {
	h.outcomes[name] = []verdict.Outcome{o}
	return h
}
