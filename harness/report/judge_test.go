package report_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

func TestJudgement(t *testing.T) {
	ready := func(status string, upTo int) func(*bundle.Stream) {
		return func(s *bundle.Stream) {
			s.JSON(bundle.NodeStatus{Time: at(0), Node: "n", Status: status})
			s.Alive(at(upTo))
		}
	}
	for _, c := range []struct {
		name              string
		change            func(*trial)
		want              verdict.Verdict
		exit              int
		vulnerable, fixed verdict.Outcome
		says              string // in the reasons, the sentence or what deviates
	}{
		{"the cure works", func(*trial) {}, "Validated", 0, "Reproduced", "NotReproduced", "is blocked: goroutine 9 [chan send]"},
		{"the cure does not work", func(tr *trial) { tr.fixed.after = "goroutine 9 [chan send]" }, "StillVulnerable", 1, "Reproduced", "Reproduced", "fixed still shows the incident"},
		{"fixed fails in another way", func(tr *trial) { tr.fixed.health = "ill" }, "Broken", 1, "Reproduced", "Broken", "is well: ill"},
		{"nothing known of its health", func(tr *trial) { tr.fixed.health = "" }, "Inconclusive", 3, "Reproduced", "Inconclusive", "whether it is healed is unknown"},
		{"not exposed", func(tr *trial) { tr.vulnerable.exposed, tr.fixed.exposed = "fast", "fast" }, "Inconclusive", 3, "Inconclusive", "Inconclusive", "the exposure is not met, and must be met: was hit: slow not met: fast; stuck not met: fast"},
		{"exposed in the other way", func(tr *trial) { tr.vulnerable.exposed = "stuck" }, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"ill in the baseline", func(tr *trial) { tr.vulnerable.before = "goroutine 1 [chan send]" }, "Inconclusive", 3, "Inconclusive", "NotReproduced", "the signature in the baseline is met, and must be not met"},
		{"no baseline", func(tr *trial) { tr.vulnerable.before = "" }, "Inconclusive", 3, "Inconclusive", "NotReproduced", "the signature in the baseline is unknown"},
		{"never steady", func(tr *trial) { tr.fixed.steady = "no" }, "Inconclusive", 3, "Reproduced", "Inconclusive", "the steady state is not met"},
		{"never ready", func(tr *trial) {
			tr.fixed.steady = "no"
			tr.fixed.nodes, tr.vulnerable.nodes = ready("False", 80), ready("True", 80)
		}, "Broken", 1, "Reproduced", "Broken", "never got Ready where a control did"},
		{"never ready, both", func(tr *trial) {
			tr.fixed.steady, tr.vulnerable.steady = "no", "no"
			tr.fixed.nodes, tr.vulnerable.nodes = ready("False", 80), ready("False", 80)
		}, "Inconclusive", 3, "Inconclusive", "Inconclusive", "the steady state is not met"},
		{"never ready as far as anyone looked", func(tr *trial) {
			tr.fixed.steady = "no"
			tr.fixed.nodes, tr.vulnerable.nodes = ready("False", 2), ready("True", 80)
		}, "Inconclusive", 3, "Reproduced", "Inconclusive", "the steady state is not met"},
		{"another binary", func(tr *trial) { tr.fixed.identity = same(digestV) }, "Inconclusive", 3, "Reproduced", "Inconclusive", "it isn't the binary that was built"},
		{"no digests", func(tr *trial) { tr.fixed.identity = same("") }, "Inconclusive", 3, "Reproduced", "Inconclusive", "no sample with a digest"},
		{"digest before the fault only", func(tr *trial) {
			tr.fixed.identity = func(s int) (bundle.IdentitySample, bool) {
				one, _ := same(digestF)(s)
				if s > 40 {
					one.SHA256 = ""
				}
				return one, true
			}
		}, "Inconclusive", 3, "Reproduced", "Inconclusive", "9 before the fault and 0 in the recovery"},
		{"killed and back", func(tr *trial) {
			tr.fixed.identity = func(s int) (bundle.IdentitySample, bool) {
				one, _ := same(digestF)(s)
				if s >= 50 {
					one.PID, one.Restarts = 8, 1
				}
				return one, true
			}
		}, "Broken", 1, "Reproduced", "Broken", "process 7 started at tick 99 with 0 restarts, then process 8 started at tick 99 with 1 restarts: the process was not the same any more at 05:06:57"},
		{"restarted by the harness", func(tr *trial) {
			tr.vulnerable.identity = func(s int) (bundle.IdentitySample, bool) {
				one, _ := same(digestV)(s)
				if s >= 75 {
					one.PID, one.Expected = 8, true
				}
				return one, true
			}
		}, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"killed by the incident", func(tr *trial) {
			tr.vulnerable.identity = killedAt(55)
			tr.plan.Signature[0].Spec = &holds{Artifact: "goroutines.debug2", Text: "chan send", Ended: 54}
		}, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"gone before its end was noted", func(tr *trial) {
			tr.vulnerable.identity = func(s int) (bundle.IdentitySample, bool) {
				one, _ := killedAt(60)(s)
				if s >= 50 && s < 60 {
					one.PID = 0
				}
				return one, true
			}
			tr.plan.Signature[0].Spec = &holds{Artifact: "goroutines.debug2", Text: "chan send", Ended: 54}
		}, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"gone long before its end was noted", func(tr *trial) {
			tr.vulnerable.identity = func(s int) (bundle.IdentitySample, bool) {
				one, _ := killedAt(60)(s)
				if s >= 45 && s < 60 {
					one.PID = 0
				}
				return one, true
			}
			tr.plan.Signature[0].Spec = &holds{Artifact: "goroutines.debug2", Text: "chan send", Ended: 54}
		}, "Inconclusive", 3, "Inconclusive", "NotReproduced", "found none"},
		{"killed after the incident's own end of it", func(tr *trial) {
			tr.vulnerable.identity = killedAt(55)
			tr.plan.Signature[0].Spec = &holds{Artifact: "goroutines.debug2", Text: "chan send", Ended: 58}
		}, "Inconclusive", 3, "Broken", "NotReproduced", "the subject exited or restarted unasked"},
		{"killed, and nobody knows by what", func(tr *trial) {
			tr.vulnerable.identity = killedAt(55)
			tr.plan.Signature[0].Spec = &holds{Artifact: "restart", Text: "chan send", Ended: 54}
		}, "Inconclusive", 3, "Inconclusive", "Inconclusive", "it is unknown whether the subject was one process all along"},
		{"one blind look", func(tr *trial) { tr.fixed.identity = blind(func(s int) bool { return s == 50 }) }, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"a count of restarts that changes by itself", func(tr *trial) {
			tr.fixed.identity = func(s int) (bundle.IdentitySample, bool) {
				one, _ := same(digestF)(s)
				one.Restarts = s / 50
				return one, true
			}
		}, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"nobody looked for 25 s, and it was the same process after", func(tr *trial) {
			tr.fixed.identity = looked(func(s int) bool { return s < 40 || s > 60 })
		}, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"nobody looked in the last 20 s", func(tr *trial) {
			tr.fixed.identity = looked(func(s int) bool { return s <= 60 })
		}, "Inconclusive", 3, "Reproduced", "Inconclusive", "but nobody looked which process it was from 05:07:07.0 to 05:07:27.0"},
		{"nobody looked in the first 20 s", func(tr *trial) {
			tr.fixed.identity = looked(func(s int) bool { return s >= 20 })
		}, "Inconclusive", 3, "Reproduced", "Inconclusive", "but nobody looked which process it was from 05:06:07.0 to 05:06:27.0"},
		{"the last look found none", func(tr *trial) { tr.fixed.identity = blind(func(s int) bool { return s == 80 }) },
			"Inconclusive", 3, "Reproduced", "Inconclusive", "but the last look, at 05:07:27, found none"},
		{"gone in the end", func(tr *trial) { tr.fixed.identity = blind(func(s int) bool { return s >= 75 }) },
			"Broken", 1, "Reproduced", "Broken", "then none at 05:07:22 and after"},
		{"no samples", func(tr *trial) {
			tr.fixed.identity = func(int) (bundle.IdentitySample, bool) { return bundle.IdentitySample{}, false }
		}, "Inconclusive", 3, "Reproduced", "Inconclusive", "no sample"},
		{"another toolchain", func(tr *trial) { tr.fixed.world.GoVersion = "go1.25.1" }, "Inconclusive", 3, "Inconclusive", "Inconclusive", `Go version: "go1.26.0", and "go1.25.1" in fixed`},
		{"a genuine pair", func(tr *trial) {
			tr.fixed.world.Graph, tr.fixed.planned.Source.Version = "graph2", "v1.34.5"
		}, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"both fixed", func(tr *trial) {
			tr.vulnerable.world.Digest, tr.vulnerable.identity = digestF, same(digestF)
			tr.vulnerable.after, tr.vulnerable.health = "goroutine 9 [select]", "well"
		}, "NotReproduced", 1, "NotReproduced", "NotReproduced", "the arms vulnerable and fixed are the same binary (SHA-256 ffffffffffff)"},
		{"evidence that belongs to no arm", func(tr *trial) {
			tr.vulnerable.sharedEvidence = true
			tr.plan.Signature[0].Spec = &holds{Artifact: "goroutines.debug2", Text: "chan send", Shared: true}
		}, "Inconclusive", 3, "Inconclusive", "Inconclusive", "unknown"},
		{"one binary with two outcomes", func(tr *trial) {
			tr.vulnerable.world.Digest, tr.vulnerable.identity = digestF, same(digestF)
		}, "Inconclusive", 3, "Reproduced", "NotReproduced", "vulnerable is Reproduced and fixed is NotReproduced with the same binary, so what makes the difference is not the build; " +
			"the arms vulnerable and fixed are the same binary (SHA-256 ffffffffffff); next: run it again with --repeat 5"},
		{"a part of the signature unknown", func(tr *trial) { tr.plan.Signature = append(tr.plan.Signature, unseen) },
			"Inconclusive", 3, "Inconclusive", "Inconclusive", "fixed: the signature is unknown, and must be met, or not met with every part of it known: not seen: no snapshot; next: run it again"},
		{"a part of the signature unknown, and another one that is the same", func(tr *trial) {
			tr.plan.Signature = append(tr.plan.Signature, plan.Check{CheckHeader: scenario.CheckHeader{Name: "either"}, AnyOf: []plan.Check{unseen, tr.plan.Signature[0]}})
			tr.vulnerable.more = func(w *bundle.Writer) { record(w, "vulnerable", bundle.Restart, 65, "x") }
			tr.fixed.more = func(w *bundle.Writer) { record(w, "fixed", bundle.Restart, 65, "y") }
		}, "Validated", 0, "Reproduced", "NotReproduced", "did not show the incident"},
		{"ill, and a part of the signature unknown", func(tr *trial) {
			tr.plan.Signature = append(tr.plan.Signature, unseen)
			tr.vulnerable.more = func(w *bundle.Writer) { record(w, "vulnerable", bundle.Restart, 65, "x") }
			tr.fixed.health = "ill"
		}, "Broken", 1, "Reproduced", "Broken", "fixed is not well, and whether that is the incident or something else is not known"},
		{"the harness failed", func(tr *trial) {
			tr.emit = []event.Event{{Time: at(50), Type: event.Failure, Arm: "fixed", Message: "proxy died"}}
		}, "Error", 4, "Reproduced", "Error", "proxy died"},
		{"one arm as expected", func(tr *trial) { tr.only = tr.vulnerable }, "Reproduced", 0, "Reproduced", "", "the only arm"},
		{"no checks at all", func(tr *trial) { tr.plan.Signature = nil }, "Inconclusive", 3, "Inconclusive", "Inconclusive", "unknown"},
		{"no faults", func(tr *trial) { tr.plan.NoFaults = true }, "Validated", 0, "Reproduced", "NotReproduced", "no faults were injected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial()
			c.change(tr)
			v, err := judge.Run(tr.write(t))
			if err != nil {
				t.Fatal(err)
			}
			text := v.Sentence + strings.Join(v.Deviates, "; ")
			got := map[string]verdict.Outcome{}
			for _, a := range v.Arms {
				got[a.Name] = a.Outcome
				if is := a.Without(nil); is != a.Outcome {
					t.Errorf("%s is %s, and by its findings alone %s", a.Name, a.Outcome, is)
				}
				text += "\n" + a.Name + ": " + a.Reason
			}
			if v.Verdict != c.want || v.ExitCode != c.exit || got["vulnerable"] != c.vulnerable || got["fixed"] != c.fixed || !strings.Contains(text, c.says) {
				t.Errorf("%s (%d), %v, want %s (%d), %s and %s, saying %q:\n%s", v.Verdict, v.ExitCode, got, c.want, c.exit, c.vulnerable, c.fixed, c.says, text)
			}
		})
	}
}

func TestMissingFileIsInconclusive(t *testing.T) {
	for part, says := range map[string]string{
		"goroutines.debug2": "a snapshot is missing",
		"identity":          "identity-fixed.jsonl is missing",
	} {
		run := newTrial().write(t)
		removeArtifact(t, run, part)
		v, err := judge.Run(run)
		if err != nil {
			t.Fatal(err)
		}
		text, err := v.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if v.Verdict != "Inconclusive" || v.ExitCode != 3 || !strings.Contains(string(text), says) {
			t.Errorf("without %s: %s (%d), want Inconclusive (3) saying %q:\n%s", part, v.Verdict, v.ExitCode, says, text)
		}
	}
}

func TestNoVerdictOverDamage(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(bundleDir string) error
		want string
	}{
		"changed byte":    {func(d string) error { return os.WriteFile(filepath.Join(d, "world.json"), []byte("{}"), 0o644) }, "world.json was changed"},
		"unlisted file":   {func(d string) error { return os.WriteFile(filepath.Join(d, "x"), nil, 0o644) }, "x is not listed"},
		"broken manifest": {func(d string) error { return os.WriteFile(filepath.Join(d, "manifest.json"), []byte("{"), 0o644) }, "broken"},
		"never sealed":    {func(d string) error { return os.Remove(filepath.Join(d, "manifest.json")) }, "never sealed"},
	} {
		run := newTrial().write(t)
		dir := filepath.Join(run, "trials", "001")
		if err := c.harm(dir); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{run, dir} {
			_, err := judge.Run(d)
			var damage *bundle.DamageError
			if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want a DamageError with %q", name, err, c.want)
			}
		}
	}
}

func TestErrorsOfOurs(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T) string
		want string
	}{
		{"unknown kind", func(t *testing.T) string {
			tr := newTrial()
			tr.plan.Healed = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "odd", Kind: "noSuchKind"}}}
			return tr.write(t)
		}, `reading plan.json: decoding a plan: trial 001: check "odd": unknown check kind "noSuchKind": want one of`},
		{"panic", func(t *testing.T) string {
			tr := newTrial()
			tr.plan.Healed = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "odd", Kind: "testPanics"}}}
			return tr.write(t)
		}, `evaluating check "odd": the check panicked: nil map`},
		{"no trial", func(t *testing.T) string {
			run := t.TempDir()
			if err := os.Mkdir(filepath.Join(run, "trials"), 0o755); err != nil {
				t.Fatal(err)
			}
			return run
		}, "it holds no trial"},
		{"no plan", func(t *testing.T) string {
			run := newTrial().write(t)
			if err := os.Remove(filepath.Join(run, "trials", "001", "plan.json")); err != nil {
				t.Fatal(err)
			}
			return run
		}, "plan.json is gone"},
	} {
		if _, err := judge.Run(c.run(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestSeveralTrials(t *testing.T) {
	run := filepath.Join(t.TempDir(), "r1-x")
	for i, health := range []string{"well", "ill", ""} {
		tr := newTrial()
		tr.run.Trials = listed("001", "002", "003")
		tr.plan.ID, tr.fixed.health = tr.run.Trials[i].ID, health
		tr.writeTo(t, run)
	}
	v, err := judge.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	if v.Verdict != "Broken" || v.ExitCode != 1 || len(v.Arms) != 6 || !strings.HasPrefix(v.Sentence, "1 of 3 trials are Broken; fixed") || v.Timings["fault"] != 61.5 {
		t.Errorf("%s (%d), %d arms, %q, %v", v.Verdict, v.ExitCode, len(v.Arms), v.Sentence, v.Timings)
	}
}

func TestChecksAreThreeValuedInJSON(t *testing.T) {
	tr := newTrial()
	tr.fixed.health = ""
	v, err := judge.Run(tr.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Arms[1].Healed[0].Met; got != check.Unknown {
		t.Errorf("healed is %s", got)
	}
	b, err := v.JSON()
	if err != nil || !strings.Contains(string(b), `"met": null`) || strings.Contains(string(b), `"differs": null`) || strings.Contains(string(b), `"evidence": null`) {
		t.Errorf("%v\n%s", err, b)
	}
}

// unseen is a check over a capture that trials don't have unless they record it.
var unseen = plan.Check{CheckHeader: scenario.CheckHeader{Name: "not seen", Kind: "testHolds"}, Spec: &holds{Artifact: "restart", Text: "x"}}

// record takes one more snapshot of an arm.
func record(w *bundle.Writer, arm string, kind bundle.Kind, second int, text string) {
	if _, err := w.Write(bundle.Meta{Kind: kind, Arm: arm, Time: at(second)}, "txt", strings.NewReader(text)); err != nil {
		panic(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// looked is the fixed arm's process, where somebody looked.
func looked(when func(second int) bool) func(int) (bundle.IdentitySample, bool) {
	return func(s int) (bundle.IdentitySample, bool) {
		one, _ := same(digestF)(s)
		return one, when(s)
	}
}

// blind is the fixed arm's process with some looks that found none.
func blind(when func(second int) bool) func(int) (bundle.IdentitySample, bool) {
	return func(s int) (bundle.IdentitySample, bool) {
		one, _ := same(digestF)(s)
		if when(s) {
			one = bundle.IdentitySample{}
		}
		return one, true
	}
}

// killedAt is the vulnerable arm's process with another one in its place from a second on.
func killedAt(second int) func(int) (bundle.IdentitySample, bool) {
	return func(s int) (bundle.IdentitySample, bool) {
		one, _ := same(digestV)(s)
		if s >= second {
			one.PID, one.Restarts = 8, 1
		}
		return one, true
	}
}

// A process that replaced itself by execve keeps its id and its start time.
func TestReplacedItself(t *testing.T) {
	elsewhere := func(second int) (bundle.IdentitySample, bool) {
		one, _ := same(digestF)(second)
		one.Arguments = &bundle.Arguments{Address: 0x7ffd_1000, Randomize: 2}
		if second >= 50 {
			one.Arguments.Address = 0x7fff_2000
		}
		return one, true
	}
	again := func(w *bundle.Writer) {
		for second, n := range map[int]int{25: 40, 65: 3} {
			_, err := w.Write(bundle.Meta{Kind: bundle.Metrics, Arm: "fixed", Time: at(second)}, "txt",
				strings.NewReader(fmt.Sprintf("# TYPE requests_total counter\nrequests_total %d\n", n)))
			must(t, err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*arm)
		seen   string
	}{
		{"its arguments are elsewhere", func(a *arm) { a.identity = elsewhere }, "whose arguments are at another address, as after execve"},
		{"its counters begin anew", func(a *arm) { a.more = again }, "but the counter requests_total fell from 40 "},
		{"its goroutines are others", func(a *arm) {
			one := "goroutine 9 [select]:\na.wait(0x1)\n\t/a.go:1 +0x1\n%s(0x1)\n\t/a.go:1 +0x1\ncreated by a.New in goroutine 1\n\t/a.go:9 +0x1\n\n"
			a.before, a.after = fmt.Sprintf(one, "a.first"), fmt.Sprintf(one, "a.second")
		}, "are of two processes: goroutine 9 was a.first, created by a.New, and is a.second, created by a.New in the other"},
	} {
		tr := newTrial()
		c.change(tr.fixed)
		v, err := judge.Run(tr.write(t))
		must(t, err)
		if f := v.Arms[1].Identity[1]; v.Verdict != "Broken" || v.ExitCode != 1 || f.Met != check.False || !strings.Contains(f.Seen, c.seen) {
			t.Errorf("%s: %s (exit %d), %s: %s; want %q", c.name, v.Verdict, v.ExitCode, f.Met, f.Seen, c.seen)
		}
	}
}
