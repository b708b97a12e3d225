package trial_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// The programs of a pair in which the fixed arm is one.
var pair = map[string]string{"vulnerable": leaks, "fixed": ""}

// whole is how an arm goes through a trial, with where its fault is seen to come and to go.
const whole = "steady baseline fault +fault lifting -fault recovery end"

// inBubble runs a test by a clock of its own.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

func TestAWholeTrial(t *testing.T) {
	for _, c := range []struct {
		name     string
		programs map[string]string
		want     verdict.Verdict
		outcomes string // of vulnerable and fixed
	}{
		{"the cure works", pair, verdict.Validated, "Reproduced NotReproduced"},
		{"the cure doesn't work", map[string]string{"vulnerable": leaks, "fixed": leaks}, verdict.StillVulnerable, "Reproduced Reproduced"},
		{"nothing is vulnerable", map[string]string{"vulnerable": "", "fixed": ""}, verdict.VerdictNotReproduced, "NotReproduced NotReproduced"},
		{"the cure fails in another way", map[string]string{"vulnerable": leaks, "fixed": crashes}, verdict.VerdictBroken, "Reproduced Broken"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			r := newRun(t, c.programs, plan.Options{})
			if err := r.trial(t.Context(), t, 0); err != nil {
				t.Fatal(err)
			}
			v := r.judge(t, 0)
			if v.Verdict != c.want || r.outcomes("vulnerable", "fixed") != c.outcomes {
				t.Errorf("it is %s: %s, want %s: %s", v.Verdict, r.outcomes("vulnerable", "fixed"), c.want, c.outcomes)
			}
			for arm, s := range r.servers {
				if got := r.went(arm); got != whole || s.armed() != 1 {
					t.Errorf("%s went through %s, and a fault was armed %d times", arm, got, s.armed())
				}
				if n := r.looks(arm, "goroutines"); n != 2 { // however short it is: one at its begin, one at its end
					t.Errorf("%s was looked at %d times in its baseline, want 2", arm, n)
				}
			}
			if first := r.heard[0]; first.Stage != "cluster" {
				t.Errorf("its timeline begins with %+v", first)
			}
		})
	}
}

// Whenever a run is broken off, no fault stays, the error is why, and nothing is left that could pass for a trial.
func TestATrialThatIsBrokenOff(t *testing.T) {
	enough := errors.New("enough")
	for _, c := range []struct {
		name, in string
		plus     time.Duration // after the phase began
		o        plan.Options
		went     string // the vulnerable arm
		armed    int
	}{
		{name: "in the steady state", in: "steady", plus: time.Second, went: "steady"},
		{name: "in the baseline", in: "baseline", plus: time.Second, went: "steady baseline"},
		{name: "before the fault", in: "fault", went: "steady baseline fault -fault"},
		{name: "before the fault is seen", in: "fault", plus: time.Second, went: "steady baseline fault -fault", armed: 1},
		{name: "with the fault in force", in: "fault", plus: 5 * time.Second, went: "steady baseline fault +fault -fault", armed: 1},
		{name: "while it is lifted", in: "lifting", went: "steady baseline fault +fault lifting -fault", armed: 1},
		{name: "in the recovery", in: "recovery", plus: time.Second, went: "steady baseline fault +fault lifting -fault recovery", armed: 1},
		{name: "between two clusters", in: "end", o: plan.Options{Sequential: true}, went: whole, armed: 1},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			r := newRun(t, pair, c.o)
			ctx, cancel := context.WithCancelCause(t.Context())
			r.events.Attach(event.SinkFunc(func(e event.Event) {
				if e.Type == event.Phase && e.Message == c.in && c.plus == 0 {
					cancel(enough)
				} else if e.Type == event.Phase && e.Message == c.in {
					time.AfterFunc(c.plus, func() { cancel(enough) })
				}
			}))
			if err := r.trial(ctx, t, 0); err != enough {
				t.Errorf("it ended with %v", err)
			}
			if got := r.went("vulnerable"); got != c.went {
				t.Errorf("it went through %s, want %s", got, c.went)
			}
			if got := r.servers["vulnerable"].armed(); got != c.armed {
				t.Errorf("a fault was armed %d times, want %d", got, c.armed)
			}
			if _, err := os.Stat(filepath.Join(r.dir.Trial("001"), bundle.ManifestFile)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it has a manifest: %v", err)
			}
			if _, err := judge.Bundle(r.dir.Trial("001")); err == nil || !strings.Contains(err.Error(), "never sealed") {
				t.Errorf("it can be judged: %v", err)
			}
			if x, err := bundle.ReadIndex(r.dir.Path()); err != nil || x.Trial("001") == nil || x.Trial("001").Manifest != "" {
				t.Errorf("the run's index says %+v, %v", x, err)
			}
		})
	}
}

// A lift that fails is tried once more. No verdict comes of such a trial, and only one whose fault may still be in
// force says so.
func TestALiftThatFailsIsTriedOnceMoreAndNoVerdictComesOfIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails int
		want  string
	}{
		{"once", 1, "recovering slow-etcd in fixed: "},
		{"each time", 2, "a fault may still be in force: recovering slow-etcd in fixed: "},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			r := newRun(t, pair, plan.Options{})
			r.scripted = func(arm string, s *server) {
				if arm == "fixed" {
					s.unlifted = c.fails
				}
			}
			r.stays = c.fails > 1
			err := r.trial(t.Context(), t, 0)
			var left *trial.LiftError
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &left) != (c.fails > 1) {
				t.Fatalf("it ended with %v, want %q", err, c.want)
			}
			if v := r.judge(t, 0); v.Verdict != verdict.VerdictError || v.Exit != verdict.ExitError || r.outcomes("vulnerable", "fixed") != "Error Error" ||
				!strings.Contains(v.Arms[0].Reason, c.want) {
				t.Errorf("it is %s (exit %d): %s", v.Verdict, v.Exit, v.Arms[0].Reason)
			}
			if got, want := r.went("vulnerable"), "steady baseline fault +fault lifting -fault -fault"; got != want {
				t.Errorf("the other arm went through %s, want %s", got, want)
			}
		})
	}
}

// A candidate is the user's: that it doesn't get as far as the controls is an answer about it, where they are judged as
// ever.
func TestACandidateThatStaysBehind(t *testing.T) {
	for _, c := range []struct {
		does    string
		outcome verdict.Outcome
		want    verdict.Verdict
		went    string
		reason  string
	}{
		{dead, verdict.Broken, verdict.VerdictBroken, "steady end", "the subject never got Ready where a control did"},
		{mute, verdict.Broken, verdict.VerdictBroken, "steady end", "the subject never got Ready where a control did"},
		{tires, verdict.Broken, verdict.VerdictBroken, "steady end", "the subject never got Ready where a control did"},
		{unmeasured, verdict.Inconclusive, verdict.VerdictInconclusive, "steady end", "the steady state is unknown, and must be met: deletes-go-on: "},
		{crashes, verdict.Broken, verdict.VerdictBroken, whole, "the subject exited or restarted unasked"},
		{"", verdict.NotReproduced, verdict.Validated, whole, "the subject is well"},
	} {
		inBubble(t, "it "+cmp.Or(c.does, "is a cure"), func(t *testing.T) {
			r := newRun(t, map[string]string{"vulnerable": leaks, "fixed": "", scenario.Candidate: c.does}, plan.Options{})
			if err := r.trial(t.Context(), t, 0); err != nil {
				t.Fatal(err)
			}
			if r.says(event.Warning, "the kube-apiserver of candidate doesn't answer: not within 2m0s: ") != (c.does == dead || c.does == mute) {
				t.Error("it is not known, or wrong, that it doesn't answer")
			}
			v := r.judge(t, 0)
			if v.Verdict != c.want || r.outcomes("vulnerable", "fixed", scenario.Candidate) != "Reproduced NotReproduced "+string(c.outcome) {
				t.Errorf("it is %s: %s", v.Verdict, r.outcomes("vulnerable", "fixed", scenario.Candidate))
			}
			if got := v.Arms[2].Reason; !strings.Contains(got, c.reason) {
				t.Errorf("the candidate's reason is %q, want %q", got, c.reason)
			}
			if r.went("vulnerable") != whole || r.went("fixed") != whole || r.went(scenario.Candidate) != c.went {
				t.Errorf("they went through %s; %s; %s", r.went("vulnerable"), r.went("fixed"), r.went(scenario.Candidate))
			}
		})
	}
}

// Where a control isn't well nothing is injected anywhere: whatever came of it would prove nothing.
func TestAControlThatNeverGetsSteady(t *testing.T) {
	for _, c := range []struct {
		programs map[string]string
		outcomes string
		reason   string // of the vulnerable arm
	}{
		{map[string]string{"vulnerable": leaks, "fixed": mute}, "Inconclusive Broken", "the phase steady, with --set phases.steady.deadline=2m0s: the phase baseline never began"},
		{map[string]string{"vulnerable": mute, "fixed": ""}, "Broken Inconclusive", "the subject never got Ready where a control did"},
		{map[string]string{"vulnerable": mute, "fixed": mute}, "Inconclusive Inconclusive", "the steady state is not met, and must be met: apiserver-healthy: "},
		{map[string]string{"vulnerable": unmeasured, "fixed": "", scenario.Candidate: ""}, "Inconclusive Inconclusive", "the steady state is unknown, and must be met: deletes-go-on: "},
	} {
		inBubble(t, fmt.Sprint(c.programs), func(t *testing.T) {
			r := newRun(t, c.programs, plan.Options{})
			if err := r.trial(t.Context(), t, 0); err != nil {
				t.Fatal(err)
			}
			v := r.judge(t, 0)
			if v.Verdict != verdict.VerdictInconclusive || r.outcomes("vulnerable", "fixed") != c.outcomes {
				t.Errorf("it is %s: %s, want Inconclusive: %s", v.Verdict, r.outcomes("vulnerable", "fixed"), c.outcomes)
			}
			if got := v.Arms[0].Reason; !strings.Contains(got, c.reason) {
				t.Errorf("the vulnerable arm's reason is %q, want %q", got, c.reason)
			}
			if !r.says(event.Warning, "the steady state never came, so nothing is injected: after 1m0s, still waiting for ") {
				t.Error("it doesn't say so")
			}
			for arm, s := range r.servers {
				if got := r.went(arm); got != "steady end" || s.armed() != 0 {
					t.Errorf("%s went through %s, and a fault was armed %d times", arm, got, s.armed())
				}
			}
		})
	}
}

// Arms that go one after the other have a cluster each, and never two of them at once.
func TestOneClusterAfterTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, map[string]string{"vulnerable": leaks, "fixed": "", scenario.Candidate: dead}, plan.Options{Sequential: true})
		if err := r.trial(t.Context(), t, 0); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(r.made, " "), "+vulnerable -vulnerable +fixed -fixed +candidate -candidate"; got != want {
			t.Errorf("clusters came and went: %s, want %s", got, want)
		}
		if v := r.judge(t, 0); v.Verdict != verdict.VerdictBroken || r.outcomes("vulnerable", "fixed", scenario.Candidate) != "Reproduced NotReproduced Broken" {
			t.Errorf("it is %s: %s", v.Verdict, r.outcomes("vulnerable", "fixed", scenario.Candidate))
		}
		if r.went("vulnerable") != whole || r.went("fixed") != whole || r.went(scenario.Candidate) != "steady end" {
			t.Errorf("they went through %s; %s; %s", r.went("vulnerable"), r.went("fixed"), r.went(scenario.Candidate))
		}
	})
}

// The null control goes through everything but the faults, and reproduces nothing.
func TestTheNullControlReproducesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, pair, plan.Options{NoFaults: true})
		if err := r.trial(t.Context(), t, 0); err != nil {
			t.Fatal(err)
		}
		if v := r.judge(t, 0); v.Verdict != verdict.VerdictInconclusive || r.outcomes("vulnerable", "fixed") != "Inconclusive Inconclusive" {
			t.Errorf("it is %s: %s", v.Verdict, r.outcomes("vulnerable", "fixed"))
		}
		for arm, s := range r.servers {
			if got := r.went(arm); got != "steady baseline fault lifting recovery end" || s.armed() != 0 {
				t.Errorf("%s went through %s, and a fault was armed %d times", arm, got, s.armed())
			}
		}
	})
}

// Each trial of a run has fresh clusters, and the run is judged by all of its bundles.
func TestSeveralTrialsOfOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, pair, plan.Options{Repeat: 2})
		for n := range r.plan.Trials {
			if err := r.trial(t.Context(), t, n); err != nil {
				t.Fatal(err)
			}
		}
		for _, half := range [][]string{r.made[:4], r.made[4:]} {
			slices.Sort(half)
			if got := strings.Join(half, " "); got != "+fixed +vulnerable -fixed -vulnerable" {
				t.Errorf("in a trial clusters came and went: %s", got)
			}
		}
		if v, err := judge.Run(r.dir.Path()); err != nil || v.Verdict != verdict.VerdictInconclusive {
			t.Errorf("before its end it is %s: %s, %v", v.Verdict, v.Sentence, err)
		}
		if err := r.dir.Complete(); err != nil {
			t.Fatal(err)
		}
		v, err := judge.Run(r.dir.Path())
		if err != nil || v.Verdict != verdict.Validated || v.ExitCode != verdict.ExitOK || len(v.Trials) != 2 || !strings.HasPrefix(v.Sentence, "2 of 2 trials are Validated; ") {
			t.Errorf("it is %s (exit %d): %s, %v", v.Verdict, v.ExitCode, v.Sentence, err)
		}
	})
}
