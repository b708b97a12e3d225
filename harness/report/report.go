// Package report judges the bundles of a run and writes the verdict down: verdict.json, junit.xml, report.md with a chart of each trial,
// and a text for the terminal. Everything that it writes is a function of the bundles alone, byte for byte: judging again, elsewhere, later, with no
// cluster, gives the same files.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Schema is the value of verdict.json's schema field.
const Schema = "relapse.dev/verdict/v1alpha1"

// The files that Write leaves in a run's directory.
const (
	VerdictFile = "verdict.json"
	JUnitFile   = "junit.xml"
	ReportFile  = "report.md"
	trialsDir   = "trials"
)

// Verdict is verdict.json. Timings are seconds by stage, summed over trials; Deviates are the options that weaken the run.
// What follows Timings goes to the other reports only.
type Verdict struct {
	Schema    string             `json:"schema"`
	Scenario  string             `json:"scenario"`
	Verdict   verdict.Verdict    `json:"verdict"`
	ExitCode  int                `json:"exitCode"`
	StartedAt time.Time          `json:"startedAt"`
	Seed      int64              `json:"seed"`
	Versions  map[string]string  `json:"versions"`
	Digests   map[string]string  `json:"digests"` // arm -> SHA-256 of its binary
	Modelled  []string           `json:"modelled"`
	Deviates  []string           `json:"deviates"`
	Arms      []verdict.Arm      `json:"arms"`
	Timings   map[string]float64 `json:"timings"`
	Rates     []Rate             `json:"rates,omitempty"` // k of n over the trials, with its interval
	Until     *Until             `json:"until,omitempty"` // how an open-ended run ended; nil for one of a fixed number of trials

	Title    string            `json:"-"`
	Sentence string            `json:"-"`
	Params   map[string]string `json:"-"` // what was set for the run
	NoFaults bool              `json:"-"`
	Trials   []Trial           `json:"-"`
}

// Trial is what the reports say of one trial beside the verdict.
type Trial struct {
	verdict.Trial
	Dir      string            // of the bundle, relative to the run
	Versions map[string]string // of the subject's source, by arm: "v1.34.4", or where it came from
	World    bundle.World
	Events   []event.Event
	Streams  []bundle.Artifact // with their coverage
	Failed   []bundle.Artifact // captures that failed and files that are missing or can't be read
	Censuses []Census
	Loads    []Load
	Spans    []Spans
	Figures  []Figure
	Clocks   []Clock // of the arms in which the fault phase began
	Lanes    []Lane  // of all arms
	Stacks   []Stacks
	Flames   []Flames
}

// JSON is the content of verdict.json.
func (v Verdict) JSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", VerdictFile, err)
	}
	return out.Bytes(), nil
}

// LastLine is the line that ends a run's output. CI that runs under make, where every failure is 2, reads it.
func (v Verdict) LastLine() string { return LastLine(v.Verdict, v.ExitCode) }

// LastLine is the same for a verdict that has no report, such as Error.
func LastLine(v verdict.Verdict, exit int) string {
	return fmt.Sprintf("relapse: %s (exit %d)", v, exit)
}

// JudgeRun judges a run's directory (trials/001 and so on), or a single trial's, from the bundles alone. It writes nothing. An error is
// a failure of ours or a *bundle.DamageError: either means verdict Error, exit 4, and no verdict.json.
func JudgeRun(dir string) (Verdict, error) {
	dirs, err := bundles(dir)
	if err != nil {
		return Verdict{}, fmt.Errorf("judging %s: %w", dir, err)
	}
	v := Verdict{
		Schema: Schema, Versions: map[string]string{}, Digests: map[string]string{},
		Modelled: []string{}, Deviates: []string{}, Arms: []verdict.Arm{}, Timings: map[string]float64{},
	}
	for _, d := range dirs {
		if err := v.add(d); err != nil {
			return Verdict{}, fmt.Errorf("judging %s: %w", d, err)
		}
	}
	v.conclude()
	if err := v.sum(dir); err != nil {
		return Verdict{}, fmt.Errorf("judging %s: %w", dir, err)
	}
	return v, nil
}

// IsTrial reports whether dir is a single trial's bundle, sealed or not, rather than a run.
func IsTrial(dir string) bool {
	for _, name := range []string{bundle.ManifestFile, bundle.TimelineFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// bundles lists the trials below a run's directory. All trials that the run's plan names must be there.
func bundles(dir string) ([]string, error) {
	if IsTrial(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, trialsDir))
	if err != nil {
		return nil, fmt.Errorf("listing its trials: %w", err)
	}
	var out, names []string
	for _, e := range entries {
		if !e.IsDir() {
			return nil, fmt.Errorf("%s/%s is no trial's directory", trialsDir, e.Name())
		}
		names = append(names, e.Name())
		out = append(out, filepath.Join(dir, trialsDir, e.Name()))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it holds no trial")
	}
	b, err := os.ReadFile(filepath.Join(dir, bundle.PlanFile))
	if os.IsNotExist(err) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	var p plan.Plan
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("reading %s: %w", bundle.PlanFile, err)
	}
	for _, t := range p.Trials {
		if !slices.Contains(names, t.ID) {
			return nil, fmt.Errorf("its plan has a trial %s and there is no bundle of it", t.ID)
		}
	}
	return out, nil
}

// add judges one bundle.
func (v *Verdict) add(dir string) error {
	b, err := bundle.Open(dir)
	if err != nil {
		return err
	}
	p, err := readPlan(b)
	if err != nil {
		return err
	}
	judged, err := verdict.Judge(b, p.Trials[0])
	if err != nil {
		return err
	}
	t := Trial{Trial: judged, Dir: path.Join(trialsDir, filepath.Base(dir)), World: b.World(), Events: b.Timeline()}
	gather(&t, b)
	t.draw(b, p.Trials[0])
	t.Versions = sourcesOf(p.Trials[0])
	if len(v.Trials) == 0 {
		v.Scenario, v.Title, v.Seed, v.StartedAt = p.Scenario, p.Title, p.Seed, t.World.StartedAt
		v.Params, v.NoFaults = p.Params, p.Trials[0].NoFaults
	}
	if p.Scenario != v.Scenario {
		return fmt.Errorf("it is a trial of %s among trials of %s", p.Scenario, v.Scenario)
	}
	v.Trials = append(v.Trials, t)
	v.Arms = append(v.Arms, judged.Arms...)
	v.resolved(t, p.Trials[0])
	return nil
}

// readPlan decodes the plan in a bundle: a plan of exactly one trial.
func readPlan(b *bundle.Sealed) (plan.Plan, error) {
	var p plan.Plan
	raw := b.PlanJSON()
	if raw == nil {
		return p, fmt.Errorf("its %s is gone: there is nothing to judge by", bundle.PlanFile)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("reading %s: %w", bundle.PlanFile, err)
	}
	if p.Schema != plan.Schema {
		return p, fmt.Errorf("reading %s: schema is %q, want %q", bundle.PlanFile, p.Schema, plan.Schema)
	}
	if len(p.Trials) != 1 {
		return p, fmt.Errorf("reading %s: a bundle's plan has one trial, this has %d", bundle.PlanFile, len(p.Trials))
	}
	return p, nil
}

// resolved merges what was resolved at run time. Where trials disagree, the later one's value stands under the trial's name too.
func (v *Verdict) resolved(t Trial, p plan.Trial) {
	put := func(m map[string]string, key, value string) {
		if have, ok := m[key]; ok && have != value {
			key += "@" + t.ID
		}
		m[key] = value
	}
	for _, k := range slices.Sorted(maps.Keys(t.World.Versions)) {
		put(v.Versions, k, t.World.Versions[k])
	}
	for _, c := range p.Cells {
		for _, w := range t.World.Cells {
			if w.Cell == c.Name {
				put(v.Digests, c.Arm.Name, w.Digest)
			}
		}
	}
	deviates := slices.Concat(p.Deviates, t.World.Deviates)
	if p.NoFaults && len(deviates) == 0 {
		deviates = []string{"no faults were injected"}
	}
	v.Modelled = union(v.Modelled, p.Modelled, t.World.Modelled)
	v.Deviates = union(v.Deviates, deviates, t.Notes)
	for _, e := range t.Events {
		if s, ok := e.Fields["seconds"].(float64); ok && e.Type == event.StageDone && e.Stage != "" {
			v.Timings[e.Stage] += s
		}
	}
}

// union keeps the first of equal sentences, in order.
func union(lists ...[]string) []string {
	out := []string{}
	for _, s := range slices.Concat(lists...) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// conclude sums up over trials: the verdict is that of the first trial with the exit code that outranks the others.
func (v *Verdict) conclude() {
	var exits []int
	for _, t := range v.Trials {
		exits = append(exits, t.Exit)
	}
	v.ExitCode = verdict.Combine(exits)
	for _, t := range v.Trials {
		if t.Exit == v.ExitCode {
			v.Verdict, v.Sentence = t.Verdict, t.Sentence
			break
		}
	}
	if n := len(v.Trials); n > 1 {
		alike := 0
		for _, t := range v.Trials {
			if t.Verdict == v.Verdict {
				alike++
			}
		}
		v.Sentence = fmt.Sprintf("%d of %d trials are %s; %s", alike, n, v.Verdict, v.Sentence)
	}
}
