package campaign_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// hall is an oracle whose runs are made up: outcomes are those of each trial, of candidates and controls, as expected
// unless said otherwise.
type hall struct {
	campaign.OracleOptions
	now      time.Time
	ran      []string // the candidates of each run
	outcomes map[string][]verdict.Outcome
	failed   map[string]error
	broke    map[string]error // runs, by a candidate in them
	digests  map[string]string
	lacks    string // a control that takes no part
	lost     []bundle.LostTrial
	trials   int
}

func newHall(t *testing.T, beside int, candidates ...scenario.CandidateFile) *hall {
	t.Helper()
	h := &hall{now: time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC), outcomes: map[string][]verdict.Outcome{}, trials: 1, broke: map[string]error{}}
	h.OracleOptions = campaign.OracleOptions{
		Scenario: "pleg", Relapse: "v1", Candidates: candidates, Beside: beside, Dir: filepath.Join(t.TempDir(), "1-oracle-pleg"),
		Settings: campaign.Settings{Pair: "smoke", Provider: "processes", Set: map[string]string{"quiet": "40s"}},
		Build:    func(context.Context, []scenario.CandidateFile) (map[string]error, error) { return h.failed, nil },
		Plan: func(list []scenario.CandidateFile) (*plan.Plan, error) {
			p := &plan.Plan{}
			for range h.trials {
				tr := plan.Trial{}
				for _, k := range list {
					tr.Arms = append(tr.Arms, plan.Arm{Arm: scenario.Arm{Name: k.Metadata.Name}})
				}
				p.Trials = append(p.Trials, tr)
			}
			return p, nil
		},
		Run: h.run, Say: func(string) {}, Now: func() time.Time { return h.now },
	}
	return h
}

func (h *hall) run(ctx context.Context, p *plan.Plan) (string, judge.Verdict, error) {
	h.now = h.now.Add(5 * time.Minute)
	v := judge.Verdict{Versions: map[string]string{"kubernetes": "v1.34.4"}, Digests: h.digests, Index: bundle.Index{Lost: h.lost}}
	var in []string
	for i, t := range p.Trials {
		id := string(rune('1' + i))
		arm := func(name, role string, expected verdict.Outcome) {
			if name == h.lacks {
				return
			}
			outcome := expected
			if given := h.outcomes[name]; i < len(given) {
				outcome = given[i]
			}
			a := armThatIs(outcome)
			a.Name, a.Role, a.Trial, a.Expected, a.Reason = name, role, id, expected, "seen in "+name
			v.Arms = append(v.Arms, a)
		}
		arm("vulnerable", scenario.Vulnerable, verdict.Reproduced)
		arm("fixed", scenario.Fixed, verdict.NotReproduced)
		for _, c := range t.Arms {
			if i == 0 {
				in = append(in, c.Name)
			}
			if err := h.broke[c.Name]; err != nil {
				return "", v, err
			}
			arm(c.Name, scenario.Candidate, verdict.NotReproduced)
		}
	}
	h.ran = append(h.ran, strings.Join(in, "+"))
	if ctx.Err() != nil {
		return "", v, context.Cause(ctx)
	}
	return "/runs/r" + string(rune('0'+len(h.ran))), v, nil
}

func known(name string, right verdict.Outcome) scenario.CandidateFile {
	return scenario.CandidateFile{Metadata: scenario.Metadata{Name: name}, Spec: scenario.CandidateSpec{Doc: "does " + name, Right: string(right), Why: "it is so",
		Because: because[right]}}
}

func graded(s campaign.OracleSummary) (out []string) {
	for _, g := range s.Candidates {
		out = append(out, g.Name+": "+string(g.Grade)+": "+strings.Join(g.Given, "+")+": "+g.Reason)
	}
	return out
}

func TestOracleGradesEachCandidateByItsOwnOutcome(t *testing.T) {
	h := newHall(t, 2, known("cure", verdict.NotReproduced), known("moved", verdict.Reproduced), known("missed", verdict.Reproduced),
		known("unknown", verdict.NotReproduced), known("vague", verdict.Inconclusive))
	h.outcomes = map[string][]verdict.Outcome{"moved": {verdict.Reproduced}, "unknown": {verdict.Inconclusive}, "vague": {verdict.Inconclusive}}
	s, err := campaign.Oracle(t.Context(), h.OracleOptions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"cure: right: NotReproduced: seen in cure", "moved: right: Reproduced: seen in moved", "missed: wrong: NotReproduced: seen in missed",
		"unknown: no answer: Inconclusive: seen in unknown", "vague: right: Inconclusive: seen in vague",
	}, graded(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cure+moved", "missed+unknown", "vague"}, h.ran); diff != "" {
		t.Errorf("runs: -want +got:\n%s", diff)
	}
	if s.ExitCode != 1 || s.Grade != campaign.Wrong || s.Sentence() != "pleg: of 5 candidates 3 right, 1 wrong, 1 no answer" || s.Took() != 15*time.Minute {
		t.Errorf("exit %d, %s, %q in %s", s.ExitCode, s.Grade, s.Sentence(), s.Took())
	}
	var onDisk campaign.OracleSummary
	raw, err := os.ReadFile(filepath.Join(h.Dir, campaign.OracleFile))
	if err != nil || json.Unmarshal(raw, &onDisk) != nil {
		t.Fatalf("reading %s: %v", campaign.OracleFile, err)
	}
	resolved := cmpopts.IgnoreFields(scenario.Ground{}, "List", "Name", "Narrow")
	if diff := cmp.Diff(s, onDisk, resolved, cmpopts.IgnoreUnexported(scenario.Ground{})); diff != "" {
		t.Errorf("on disk: -returned +read:\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(h.Dir, campaign.OracleMarkdownFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2026-03-04 with pair smoke on the provider processes, quiet=40s, Kubernetes v1.34.4, relapse v1: of 5 candidates 3 right, 1 wrong, 1 no answer, in 15m0s.\n",
		"| `missed` | does missed | Reproduced | sick is met | wrong: NotReproduced |\n",
		"| `unknown` | does unknown | NotReproduced | exposed is met, well is met | no answer: Inconclusive |\n",
		"- missed: seen in missed; Reproduced is right: it is so\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q:\n%s", campaign.OracleMarkdownFile, want, text)
		}
	}
}

// What a trial says of a candidate counts only where its controls did as they should.
func TestOracleTakesNoAnswerFromATrialWithoutItsControls(t *testing.T) {
	h := newHall(t, 4, known("cure", verdict.NotReproduced), known("vague", verdict.Inconclusive))
	h.outcomes = map[string][]verdict.Outcome{"vulnerable": {verdict.NotReproduced}, "vague": {verdict.Inconclusive}}
	s, err := campaign.Oracle(t.Context(), h.OracleOptions)
	if err != nil {
		t.Fatal(err)
	}
	const why = "the control vulnerable is NotReproduced and should be Reproduced: seen in vulnerable"
	if diff := cmp.Diff([]string{"cure: no answer: NotReproduced: " + why, "vague: no answer: Inconclusive: " + why}, graded(s)); diff != "" || s.ExitCode != 3 {
		t.Errorf("exit %d, -want +got:\n%s", s.ExitCode, diff)
	}
}

// A cure that nothing was cured of is not right, whatever the other controls did.
func TestOracleTakesNoAnswerWithoutTheVulnerableArm(t *testing.T) {
	h := newHall(t, 4, known("cure", verdict.NotReproduced), known("dead", verdict.Broken))
	h.lacks, h.outcomes = "vulnerable", map[string][]verdict.Outcome{"dead": {verdict.Broken}}
	s, err := campaign.Oracle(t.Context(), h.OracleOptions)
	if err != nil {
		t.Fatal(err)
	}
	const why = "no vulnerable arm beside it showed the incident"
	if diff := cmp.Diff([]string{"cure: no answer: NotReproduced: " + why, "dead: no answer: Broken: " + why}, graded(s)); diff != "" || s.ExitCode != 3 {
		t.Errorf("exit %d, -want +got:\n%s", s.ExitCode, diff)
	}
}

// One program that came out both ways shows that something else decided.
func TestOracleTakesNoAnswerFromEqualProgramsWithDifferentOutcomes(t *testing.T) {
	h := newHall(t, 4, known("cure", verdict.NotReproduced), known("other", verdict.NotReproduced))
	h.outcomes = map[string][]verdict.Outcome{"cure": {verdict.Broken}}
	h.digests = map[string]string{"fixed": "aa", "cure": "aa", "other": "bb"}
	s, err := campaign.Oracle(t.Context(), h.OracleOptions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cure: no answer: Broken: it is Broken and fixed is NotReproduced, and they are the same program: seen in cure",
		"other: right: NotReproduced: seen in other"}, graded(s)); diff != "" || s.ExitCode != 3 {
		t.Errorf("exit %d, -want +got:\n%s", s.ExitCode, diff)
	}
}

func TestOracleWantsEveryTrialRight(t *testing.T) {
	for _, tc := range []struct {
		outcomes []verdict.Outcome
		grade    campaign.Grade
		exit     int
		row      string
	}{
		{[]verdict.Outcome{verdict.NotReproduced, verdict.NotReproduced}, campaign.Right, 0, "NotReproduced 2/2"},
		{[]verdict.Outcome{verdict.NotReproduced, verdict.Inconclusive}, campaign.NoAnswer, 3, "no answer: Inconclusive 1/2, NotReproduced 1/2"},
		{[]verdict.Outcome{verdict.Broken, verdict.Inconclusive}, campaign.Wrong, 1, "wrong: Broken 1/2, Inconclusive 1/2"},
		{[]verdict.Outcome{verdict.NotReproduced, verdict.Error}, campaign.Errored, 4, "error: Error 1/2, NotReproduced 1/2"},
	} {
		h := newHall(t, 1, known("cure", verdict.NotReproduced))
		h.trials, h.outcomes = 2, map[string][]verdict.Outcome{"cure": tc.outcomes}
		s, err := campaign.Oracle(t.Context(), h.OracleOptions)
		if err != nil {
			t.Fatal(err)
		}
		if g := s.Candidates[0]; g.Grade != tc.grade || s.ExitCode != tc.exit || s.Table().Rows[0][2] != tc.row {
			t.Errorf("%v: %s, exit %d, row %q; want %s, %d, %q", tc.outcomes, g.Grade, s.ExitCode, s.Table().Rows[0][2], tc.grade, tc.exit, tc.row)
		}
	}
}

// Of trials that were made elsewhere, one that left no evidence isn't passed over.
func TestOracleTakesNoAnswerFromALostTrial(t *testing.T) {
	for _, tc := range []struct {
		outcome verdict.Outcome
		grade   campaign.Grade
		reason  string
	}{
		{verdict.NotReproduced, campaign.NoAnswer, "trial 002 left no evidence: its recorder ended with exit code 137, which may be the incident's own doing"},
		{verdict.Broken, campaign.Wrong, "seen in cure"},
	} {
		h := newHall(t, 1, known("cure", verdict.NotReproduced))
		h.outcomes, h.lost = map[string][]verdict.Outcome{"cure": {tc.outcome}}, []bundle.LostTrial{{ID: "002", Why: "its recorder ended with exit code 137"}}
		s, err := campaign.Oracle(t.Context(), h.OracleOptions)
		if err != nil {
			t.Fatal(err)
		}
		if g := s.Candidates[0]; g.Grade != tc.grade || g.Reason != tc.reason {
			t.Errorf("%s: %s, %q; want %s, %q", tc.outcome, g.Grade, g.Reason, tc.grade, tc.reason)
		}
	}
}

func TestOracleLosesNoOtherByOneThatFails(t *testing.T) {
	alone := known("alone", verdict.NotReproduced)
	alone.Spec.Alone = true
	slow := known("slow", verdict.NotReproduced)
	slow.Spec.Set = map[string]scenario.Scalar{"watch": "330s"} // which no other shares
	h := newHall(t, 2, known("a", verdict.NotReproduced), known("unbuilt", verdict.NotReproduced), alone, known("b", verdict.NotReproduced), known("c", verdict.NotReproduced), slow)
	h.failed = map[string]error{"unbuilt": errors.New("undefined: queue")}
	h.broke["c"] = errors.New("creating the cluster: no space")
	s, err := campaign.Oracle(t.Context(), h.OracleOptions)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"a: right: NotReproduced: seen in a", "unbuilt: error: : it can't be built: undefined: queue", "alone: right: NotReproduced: seen in alone",
		"b: right: NotReproduced: seen in b", "c: error: : creating the cluster: no space", "slow: right: NotReproduced: seen in slow",
	}, graded(s)); diff != "" || s.ExitCode != 4 {
		t.Errorf("exit %d, -want +got:\n%s", s.ExitCode, diff)
	}
	if diff := cmp.Diff([]string{"alone", "a+b", "slow"}, h.ran); diff != "" {
		t.Errorf("runs: -want +got:\n%s", diff)
	}
}

func TestOracleThatIsInterruptedSaysWhatWasNotRun(t *testing.T) {
	h := newHall(t, 1, known("a", verdict.NotReproduced), known("b", verdict.NotReproduced), known("c", verdict.NotReproduced))
	ctx, cancel := context.WithCancelCause(t.Context())
	run := h.Run
	h.Run = func(ctx context.Context, p *plan.Plan) (string, judge.Verdict, error) {
		if len(h.ran) == 1 {
			cancel(errors.New("interrupted"))
		}
		return run(ctx, p)
	}
	s, err := campaign.Oracle(ctx, h.OracleOptions)
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"a: right: NotReproduced: seen in a", "b: not run: : it was interrupted", "c: not run: : its turn hasn't come"}, graded(s)); diff != "" || s.ExitCode != 3 {
		t.Errorf("exit %d, -want +got:\n%s", s.ExitCode, diff)
	}
}

func TestOracleWithoutCandidatesOrControls(t *testing.T) {
	if _, err := campaign.Oracle(t.Context(), newHall(t, 1).OracleOptions); err == nil || err.Error() != "scenario pleg has no candidates to run" {
		t.Errorf("error %v", err)
	}
	h := newHall(t, 1, known("a", verdict.NotReproduced))
	h.Build = func(context.Context, []scenario.CandidateFile) (map[string]error, error) {
		return nil, errors.New("arm vulnerable: no go command")
	}
	if _, err := campaign.Oracle(t.Context(), h.OracleOptions); err == nil || err.Error() != "arm vulnerable: no go command" {
		t.Errorf("error %v", err)
	}
}

// An arm that never gets well takes all the time that a recovery has, so those share trials.
func TestOracleHasThoseThatStayIllTogether(t *testing.T) {
	h := newHall(t, 2, known("leaks", verdict.Broken), known("cure", verdict.NotReproduced), known("hangs", verdict.Broken),
		known("ill", verdict.Reproduced))
	if _, err := campaign.Oracle(t.Context(), h.OracleOptions); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cure+ill", "leaks+hangs"}, h.ran); diff != "" {
		t.Errorf("trials:\n%s", diff)
	}
}
