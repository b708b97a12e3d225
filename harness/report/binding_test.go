package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/judge"
	ledger "github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// writeTwo leaves a run of two trials, in the second of which the cure fails.
func writeTwo(t *testing.T, run string) string {
	t.Helper()
	for i, id := range []string{"001", "002"} {
		tr := newTrial()
		tr.plan.ID = id
		tr.run.Trials = []plan.Trial{{ID: "001", Pair: "modern"}, {ID: "002", Pair: "modern"}}
		if i == 1 {
			tr.fixed.health = "ill"
		}
		tr.writeTo(t, run)
	}
	return run
}

// writeOther leaves a run of one trial that has another name and another plan.
func writeOther(t *testing.T) string {
	tr := newTrial()
	tr.plan.ID, tr.world.Run, tr.run.Seed = "002", "r2", 43
	return tr.write(t)
}

func TestTrialsAreBoundToTheirRun(t *testing.T) {
	trials := func(run string, id string) string { return filepath.Join(run, "trials", id) }
	for _, c := range []struct {
		name string
		harm func(t *testing.T, run string)
		want string
	}{
		{"a trial is gone", func(t *testing.T, run string) { must(t, os.RemoveAll(trials(run, "002"))) },
			"trial 002 is gone: index.json lists it, sealed with the manifest "},
		{"a trial is gone with the plan", func(t *testing.T, run string) {
			must(t, os.RemoveAll(trials(run, "002")))
			must(t, os.Remove(filepath.Join(run, "plan.json")))
		}, "its plan.json is gone: nothing says which trials there should be"},
		{"a trial is gone with the plan and the index", func(t *testing.T, run string) {
			must(t, os.RemoveAll(trials(run, "002")))
			must(t, os.Remove(filepath.Join(run, "plan.json")))
			must(t, os.Remove(filepath.Join(run, "index.json")))
		}, "its index.json is gone, or an older relapse made it: nothing says which trials belong to it"},
		{"a trial is gone from the index, too", func(t *testing.T, run string) { remove(t, run, "002") },
			"its plan has a trial 002 and there is no bundle of it"},
		{"a trial is gone with all that tells of it but the ledger", func(t *testing.T, run string) {
			was := ledger.Entry{Time: t0, Scenario: "x", Pair: "modern", Arm: "fixed", Role: "fixed", Outcome: "Broken", Run: filepath.Base(run), Trial: "002"}
			sum, err := bundle.ManifestSum(trials(run, "002"))
			must(t, err)
			was.Manifest = sum
			must(t, ledger.Append(filepath.Join(filepath.Dir(run), ledger.File), []ledger.Entry{was}))
			remove(t, run, "002")
		}, "the ledger history.jsonl has a trial 002 of this run, sealed with the manifest "},
		{"another plan", func(t *testing.T, run string) {
			put(t, filepath.Join(run, "plan.json"), `{"schema":"relapse.dev/plan/v1alpha1","trials":[{"id":"001"}]}`)
		}, "its plan.json is not the one that the run was made by: SHA-256 "},
		{"a trial of another run is added", func(t *testing.T, run string) {
			must(t, os.CopyFS(trials(run, "003"), os.DirFS(trials(writeOther(t), "002"))))
		}, `trials/003 is not listed in index.json: it is no trial of this run: its run is "r2", and this run's "r1"; its plan is "`},
		{"a trial of another run takes the place of one", func(t *testing.T, run string) {
			must(t, os.RemoveAll(trials(run, "002")))
			must(t, os.CopyFS(trials(run, "002"), os.DirFS(trials(writeOther(t), "002"))))
		}, `it is no trial of this run: its run is "r2", and this run's "r1"; its plan is "`},
		{"a trial of another scenario takes the place of one", func(t *testing.T, run string) {
			must(t, os.RemoveAll(trials(run, "002")))
			tr := newTrial()
			tr.plan.ID, tr.run.Digest = "002", "5ce1"
			must(t, os.CopyFS(trials(run, "002"), os.DirFS(trials(tr.write(t), "002"))))
		}, `its scenario is "5ce1", and this run's "5ce0"`},
		{"a trial takes the place of another one of the run", func(t *testing.T, run string) {
			must(t, os.RemoveAll(trials(run, "002")))
			must(t, os.CopyFS(trials(run, "002"), os.DirFS(trials(run, "001"))))
		}, "it is trial 001 in the place of trial 002"},
		{"a copy of a trial is added", func(t *testing.T, run string) {
			must(t, os.CopyFS(trials(run, "003"), os.DirFS(trials(run, "001"))))
		}, "trials/003 is not listed in index.json: the run made no such trial"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := writeTwo(t, filepath.Join(t.TempDir(), "r1-x"))
			if v, err := judge.Run(run); err != nil || v.Verdict != verdict.VerdictBroken {
				t.Fatalf("untouched it is %s, %v", v.Verdict, err)
			}
			c.harm(t, run)
			if v, err := judge.Run(run); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %v; want %q", v.Verdict, err, c.want)
			}
		})
	}
}

func TestAnotherBinaryIsNamed(t *testing.T) {
	run := writeTwo(t, filepath.Join(t.TempDir(), "r1-x"))
	tr := newTrial()
	tr.plan.ID, tr.fixed.world.Digest = "002", digestV
	tr.run.Trials = []plan.Trial{{ID: "001", Pair: "modern"}, {ID: "002", Pair: "modern"}}
	again := filepath.Join(run, "trials", "002")
	must(t, os.RemoveAll(again))
	must(t, os.CopyFS(again, os.DirFS(filepath.Join(tr.write(t), "trials", "002"))))
	_, err := judge.Run(run)
	if want := "; its arm fixed is the binary aaaaaaaaaaaa, and was ffffffffffff"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A run that was killed is judged by what was sealed until then, and is never better than Inconclusive.
func TestCutShort(t *testing.T) {
	for _, c := range []struct {
		name string
		ill  bool
		want verdict.Verdict
		exit int
	}{
		{"what it has is good", false, verdict.VerdictInconclusive, verdict.ExitInconclusive},
		{"what it has is not", true, verdict.VerdictBroken, verdict.ExitFailed},
	} {
		run := filepath.Join(t.TempDir(), "r1-x")
		tr := newTrial()
		tr.run.Trials = []plan.Trial{{ID: "001", Pair: "modern"}, {ID: "002", Pair: "modern"}}
		if c.ill {
			tr.fixed.health = "ill"
		}
		tr.writeTo(t, run)
		x, err := bundle.ReadIndex(run)
		must(t, err)
		x.Complete = false
		x.Trials = append(x.Trials, bundle.IndexedTrial{ID: "002", Pair: "modern"})
		must(t, x.Write(run))
		half, err := bundle.Create(filepath.Join(run, "trials", "002"))
		must(t, err)
		must(t, half.PutPlan([]byte("{}")))
		v, err := judge.Run(run)
		must(t, err)
		if want := "the run was cut short, or isn't over: 1 of 2 trials were sealed; "; v.Verdict != c.want || v.ExitCode != c.exit || !strings.HasPrefix(v.Sentence, want) {
			t.Errorf("%s: %s (%d), %q, want %s (%d), %q", c.name, v.Verdict, v.ExitCode, v.Sentence, c.want, c.exit, want)
		}
	}
}

// The kill came between a trial's sealing and its entry.
func TestSealedAndNotYetEntered(t *testing.T) {
	run := newTrial().write(t)
	x, err := bundle.ReadIndex(run)
	must(t, err)
	x.Complete, x.Trials[0].Manifest = false, ""
	must(t, x.Write(run))
	v, err := judge.Run(run)
	must(t, err)
	if sum, err := bundle.ManifestSum(filepath.Join(run, "trials", "001")); err != nil || v.Index.Trials[0].Manifest != sum || v.Verdict != verdict.VerdictInconclusive {
		t.Errorf("%s, %+v, %v", v.Verdict, v.Index, err)
	}
}

func TestCutShortOpenEndedRun(t *testing.T) {
	run := writeOpen(t)
	remove(t, run, "005")
	x, err := bundle.ReadIndex(run)
	must(t, err)
	x.Complete = false
	must(t, x.Write(run))
	v, err := judge.Run(run)
	must(t, err)
	if want := "the run was cut short, or isn't over: 4 trials were sealed; fixed showed it in none of 3 trials that count, and 4 are needed"; v.ExitCode != verdict.ExitInconclusive || !strings.HasPrefix(v.Sentence, want) {
		t.Errorf("%s (%d), %q, want %q", v.Verdict, v.ExitCode, v.Sentence, want)
	}
}

// A newer relapse's specs, as it writes them.
type (
	written json.RawMessage
	asked   struct {
		check.Check
		written
	}
	injected struct {
		fault.Fault
		written
	}
)

func (w written) MarshalJSON() ([]byte, error) { return w, nil }

// An older relapse would drop what it doesn't know, and ask a newer plan's question more weakly.
func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(tr *trial)
		want   string
	}{
		{"in a check", func(tr *trial) {
			tr.plan.Healed[0].Spec = asked{written: written(`{"artifact":"containers","text":"well","forAtLeast":"5m"}`)}
		}, `check "is well": decoding it as a testHolds: json: unknown field "forAtLeast"`},
		{"in an alternative", func(tr *trial) {
			tr.plan.Exposure[0].AnyOf[1].Spec = asked{written: written(`{"artifact":"configz","text":"stuck","twice":true}`)}
		}, `check "stuck": decoding it as a testHolds: json: unknown field "twice"`},
		{"in a fault", func(tr *trial) {
			tr.plan.Faults = []plan.Fault{{ItemHeader: scenario.ItemHeader{Name: "slow", Kind: "criLatency"}, Spec: injected{written: written(`{"jitter2":"1s"}`)}}}
		}, `fault "slow": decoding it as a criLatency: json: unknown field "jitter2"`},
	} {
		tr := newTrial()
		c.change(tr)
		_, err := judge.Run(tr.write(t))
		for _, want := range []string{"reading plan.json: decoding a plan: trial 001: " + c.want, "; it was written by relapse v1.2.3, and this is relapse ", ", which may be older"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.name, err, want)
			}
		}
	}
}

func TestUnknownFieldOfThePlan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trials", "001")
	w, err := bundle.Create(dir)
	must(t, err)
	must(t, w.PutPlan([]byte(`{"schema":"relapse.dev/plan/v1alpha1","quorum":2,"trials":[{"id":"001"}]}`)))
	must(t, w.SetWorld(bundle.World{StartedAt: time.Now(), Versions: map[string]string{"relapse": "v9"}}))
	must(t, w.Seal())
	want := `reading plan.json: decoding a plan: json: unknown field "quorum"; it was written by relapse v9, and this is relapse `
	if _, err := judge.Run(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestVerdictNamesItsRunAndItsJudge(t *testing.T) {
	run := writeTwo(t, filepath.Join(t.TempDir(), "r1-x"))
	_, files := judgeAndWrite(t, run)
	var v judge.Verdict
	must(t, json.Unmarshal([]byte(files[judge.VerdictFile]), &v))
	x, err := bundle.ReadIndex(run)
	must(t, err)
	if v.Judge == "" || v.Index.Run != "r1" || v.Index.Plan != x.Plan || v.Index.Scenario != "5ce0" || !v.Index.Complete || len(v.Index.Trials) != 2 ||
		v.Index.Trials[1].Manifest != x.Trials[1].Manifest || v.Index.Trials[1].Arms["fixed"] != digestF {
		t.Errorf("judged by %q over %+v, want %+v", v.Judge, v.Index, x)
	}
}

// A newer relapse may record of the world what weakens a trial.
func TestUnknownFieldOfTheWorld(t *testing.T) {
	run := newTrial().write(t)
	dir := filepath.Join(run, "trials", "001")
	resealed(t, dir, bundle.WorldFile, `"startedAt"`, `"throttled": true, "startedAt"`)
	want := `reading world.json, which a newer relapse may have written: json: unknown field "throttled"`
	if _, err := judge.Run(dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// resealed makes a bundle anew with a text of one of its files replaced.
func resealed(t *testing.T, dir, file, old, new string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, file))
	must(t, err)
	changed := strings.Replace(string(b), old, new, 1)
	must(t, os.RemoveAll(dir))
	w, err := bundle.Create(dir)
	must(t, err)
	put(t, filepath.Join(dir, file), changed)
	must(t, w.Seal())
}

// A trial is judged by its own plan, which must be the one that the run's plan.json has: that is what is read and
// signed.
func TestATrialFollowsTheRunsPlan(t *testing.T) {
	failing := plan.Check{CheckHeader: scenario.CheckHeader{Name: "did its work", Kind: "testHolds", Phase: "recovery"}, Spec: &holds{Artifact: bundle.Containers, Text: "never"}}
	for _, c := range []struct {
		name   string
		change func(run *plan.Trial)
		want   string // "" if it is judged
	}{
		{"as planned", func(*plan.Trial) {}, ""},
		{"it lacks a check", func(run *plan.Trial) { run.Healed = append([]plan.Check{failing}, run.Healed...) },
			`trials/001/plan.json is not what the run's plan.json has for this trial: it says "\"name\": \"is well\"," where the run's says "\"name\": \"did its work\","`},
		{"it has another one", func(run *plan.Trial) {
			run.Healed = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "is well", Kind: "testHolds"}, Spec: &holds{Artifact: bundle.Containers, Text: "never"}}}
		}, `it says "\"text\": \"well\"" where the run's says "\"text\": \"never\""`},
		{"it expects something else", func(run *plan.Trial) {
			run.Arms = append([]plan.Arm{}, run.Arms...)
			run.Arms[1].Expected = "Reproduced"
		}, "where the run's says \"\\\"expected\\\": \\\"Reproduced\\\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial()
			whole := tr.plan
			for _, a := range tr.arms() {
				whole.Arms = append(whole.Arms, a.planned)
			}
			c.change(&whole)
			tr.run.Trials = []plan.Trial{whole}
			v, err := judge.Run(tr.write(t))
			switch {
			case c.want == "" && (err != nil || v.Verdict != verdict.Validated):
				t.Errorf("%s, %v; want it Validated", v.Verdict, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s, %v; want %q", v.Verdict, err, c.want)
			}
		})
	}
}
