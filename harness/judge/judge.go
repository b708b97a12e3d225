// Package judge turns the sealed bundles of a run into its verdict, which is the content of verdict.json. The verdict
// follows from the bundles alone: judging again, elsewhere or later, with no cluster, gives the same bytes.
package judge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/harness/version"
	"github.com/kube-relapse/relapse/internal/printing"
)

// Schema is the value of verdict.json's schema field.
const Schema = "relapse.dev/verdict/v1alpha1"

// VerdictFile is the file of a run's directory that has its verdict.
const VerdictFile = "verdict.json"

// trialsDir is the folder of a run's directory that has the bundles of its trials.
const trialsDir = "trials"

// Verdict is the content of verdict.json. Timings are seconds by stage, summed over trials. Deviates lists what weakens
// the run: its options, notes on its trials, and that it was cut short. The fields without a JSON name are for reports
// only.
type Verdict struct {
	Schema    string             `json:"schema"`
	Judge     string             `json:"judge"` // the version of relapse that judged: another one may judge differently
	Scenario  string             `json:"scenario"`
	Verdict   verdict.Verdict    `json:"verdict"`
	ExitCode  int                `json:"exitCode"`
	StartedAt time.Time          `json:"startedAt,omitzero"` // left out if no trial left any evidence
	Seconds   float64            `json:"seconds"`            // from its first trial's beginning to its last one's end
	Seed      int64              `json:"seed"`
	Bug       Bug                `json:"bug"`
	Others    *Others            `json:"others,omitempty"`
	Pairs     []Pair             `json:"pairs"` // what each arm was built from
	Versions  map[string]string  `json:"versions"`
	Digests   map[string]string  `json:"digests"` // arm -> SHA-256 of its binary; arm/1 is what it ran before
	Modelled  []string           `json:"modelled"`
	Deviates  []string           `json:"deviates"`
	Tried     []string           `json:"tried"` // those of Deviates that say what was tried, and what was not
	Arms      []verdict.Arm      `json:"arms"`
	Timings   map[string]float64 `json:"timings"`
	Rates     []Rate             `json:"rates,omitempty"` // k of n over the trials, with its interval
	Until     *Until             `json:"until,omitempty"` // how an open-ended run ended; nil for any other run
	Index     bundle.Index       `json:"index"`           // the run that was judged, and the trials that it had

	Sentence string            `json:"-"`
	Params   map[string]string `json:"-"` // what was set for the run
	NoFaults bool              `json:"-"`
	Trials   []Trial           `json:"-"`

	cut   string // why there are fewer trials than were planned; "" if there are not
	lost  []bundle.LostTrial
	aside []string // what else weakens the run as a whole
}

// Trial is one trial: its verdict, and what reports and the history need beside it.
type Trial struct {
	verdict.Trial
	Dir      string            // of the bundle, relative to the run
	Manifest string            // SHA-256 of its manifest
	Versions map[string]string // of the subject's source, by arm: "v1.34.4", or where it came from
	Provider string            // of the clusters
	Deviates plan.Deviations   // of its plan
	Apart    []string          // what makes it other than the scenario's own; see plan.Apart
	Cores    int               // of the host; 0 if nobody looked
	World    bundle.World
	Events   []event.Event
	Missing  []string    // paths of artifacts that the manifest lists and that are not on disk
	Plan     plan.Trial  // the trial as it was planned
	Evidence bundle.View // the bundle; nil if there is none to read
}

// JSON returns the content of verdict.json.
func (v Verdict) JSON() ([]byte, error) { return JSON(VerdictFile, v) }

// JSON encodes a value as a document for people and programs. name is how an error calls the document.
func JSON(name string, value any) ([]byte, error) {
	var out bytes.Buffer
	if err := printing.WriteJSON(&out, value); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// LastLine returns the line that ends a run's output. CI under make reads it, because under make every failure is exit
// 2.
func (v Verdict) LastLine() string { return LastLine(v.Verdict, v.ExitCode) }

// LastLine returns the line that ends a run's output, also for a verdict without a report, such as Error.
func LastLine(v verdict.Verdict, exit int) string {
	return fmt.Sprintf("relapse: %s (exit %d)", v, exit)
}

// Run judges a run's directory (trials/001 and so on), or a single trial's, from the bundles alone. It writes nothing. A
// single trial of an open-ended run is Inconclusive, unless it ends its run against the build. An error is a failure of
// relapse or a *bundle.DamageError. Both mean verdict Error, exit 4, and no verdict.json.
func Run(dir string) (Verdict, error) {
	from, err := openBundles(dir)
	if err != nil {
		return Verdict{}, fmt.Errorf("judging %s: %w", dir, err)
	}
	v := Verdict{
		Schema:   Schema,
		Judge:    version.Relapse(),
		Versions: map[string]string{},
		Digests:  map[string]string{},
		Pairs:    []Pair{},
		Modelled: []string{},
		Deviates: []string{},
		Tried:    []string{},
		Arms:     []verdict.Arm{},
		Timings:  map[string]float64{},
	}
	for _, d := range from.dirs {
		if err := v.add(d, &from); err != nil {
			return Verdict{}, fmt.Errorf("judging %s: %w", d, err)
		}
	}
	if len(v.Trials) == 0 { // all were lost
		v.describe(*from.plan)
	}
	v.Seconds = took(v.Trials)
	v.conclude()
	if err := v.sum(from); err != nil {
		return Verdict{}, fmt.Errorf("judging %s: %w", dir, err)
	}
	v.cut = from.cut
	for _, t := range from.index.Beyond {
		v.aside = append(v.aside, t.String())
	}
	redacted := from.index.Redacted
	if from.plan != nil {
		v.Index = from.index
	} else {
		redacted = v.Trials[0].World.Redacted
	}
	if redacted != nil {
		v.aside = append(v.aside, redacted.String())
	}
	v.weaken(from.index.Lost)
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

// add judges one bundle and adds it to the verdict as a trial.
func (v *Verdict) add(dir string, from *bundles) error {
	b, err := bundle.Open(dir)
	if err != nil {
		return err
	}
	p, err := readPlan(b)
	if err != nil {
		return err
	}
	if err := from.bind(filepath.Base(dir), b, p); err != nil {
		return err
	}
	if from.plan == nil {
		from.alone = &p
	}
	judged, err := verdict.Judge(b, p.Trials[0])
	if err != nil {
		return err
	}
	b.Forget()
	t := Trial{
		Trial:    judged,
		Dir:      path.Join(trialsDir, filepath.Base(dir)),
		Manifest: b.ManifestSum(),
		World:    b.World(),
		Events:   b.Timeline(),
		Cores:    cores(b),
		Missing:  missing(b),
		Plan:     p.Trials[0],
		Evidence: b,
	}
	t.Deviates, t.Apart = p.Trials[0].Deviates, p.Apart(&p.Trials[0])
	t.Versions, t.Provider = sourcesOf(p.Trials[0]), cmp.Or(p.Provider, providers.Kind)
	if len(v.Trials) == 0 {
		v.describe(p)
		v.StartedAt = t.World.StartedAt
		v.Index = bundle.Index{Schema: bundle.IndexSchema, Run: t.World.Run, Plan: t.World.Plan,
			Scenario: t.World.Scenario, Relapse: t.World.Versions["relapse"]}
	}
	v.Index.Trials = append(v.Index.Trials, indexed(t))
	if p.Scenario != v.Scenario {
		return fmt.Errorf("it is a trial of %s among trials of %s", p.Scenario, v.Scenario)
	}
	v.Trials = append(v.Trials, t)
	if !slices.ContainsFunc(v.Pairs, func(one Pair) bool { return one.Name == t.Pair }) {
		v.Pairs = append(v.Pairs, pairOf(b, p.Trials[0], t.Dir))
	}
	v.Arms = append(v.Arms, judged.Arms...)
	v.resolved(t, p.Trials[0])
	return nil
}

// describe takes from a plan what the run is about.
func (v *Verdict) describe(p plan.Plan) {
	v.Scenario, v.Seed, v.Bug = p.Scenario, p.Seed, Bug{Title: p.Title, Links: p.Links}
	if len(p.Others) > 0 {
		v.Others = &Others{Subject: p.Trials[0].Subject, Scenarios: p.Others}
	}
	v.Params, v.NoFaults = p.Params, p.Trials[0].NoFaults
}

// readPlan decodes the plan in a bundle, which must have exactly one trial.
func readPlan(b *bundle.Sealed) (plan.Plan, error) {
	raw := b.PlanJSON()
	if raw == nil {
		return plan.Plan{}, fmt.Errorf(
			"its %s is gone: there is nothing to judge by",
			bundle.PlanFile,
		)
	}
	p, err := plan.Read(raw)
	if err != nil {
		return plan.Plan{}, fromOtherVersion(fmt.Errorf("reading %s: %w", bundle.PlanFile, err),
			b.World().Versions["relapse"])
	}
	if len(p.Trials) != 1 {
		return plan.Plan{}, fmt.Errorf(
			"reading %s: a bundle's plan has one trial, this has %d",
			bundle.PlanFile,
			len(p.Trials),
		)
	}
	return *p, nil
}

// resolved merges versions, digests, notes and timings that became known when a trial ran. If trials disagree about a
// value, the later value is stored under its key with @ and the id of its trial added.
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
	for _, c := range p.Arms {
		for _, w := range t.World.Arms {
			if w.Arm == c.Name {
				put(v.Digests, c.Name, w.Digest)
				for i, b := range w.Before {
					put(v.Digests, bundle.EarlierName(c.Name, i), b.Digest)
				}
			}
		}
	}
	v.Modelled = union(v.Modelled, p.Modelled, t.World.Modelled)
	v.Deviates, v.Tried = union(v.Deviates, t.weakens()), union(v.Tried, t.Tried)
	for _, e := range t.Events {
		if s, ok := e.Fields["seconds"].(float64); ok && e.Type == event.StageDone && e.Stage != "" {
			v.Timings[e.Stage] += s
		}
	}
}

// weakens lists what weakens what the trial shows: how its plan and its world deviate, and the notes on it.
func (t Trial) weakens() []string {
	deviates := slices.Concat(t.Deviates.Texts(), t.World.Deviates)
	if t.Plan.NoFaults && len(deviates) == 0 {
		deviates = []string{"no faults were injected"}
	}
	return union(deviates, t.Notes)
}

// SameProgram reports whether two arms are known to run the same binary, or the same binaries one after the other.
func (v Verdict) SameProgram(a, b string) bool {
	for i := 0; ; i++ {
		before := v.Digests[bundle.EarlierName(a, i)]
		if before != v.Digests[bundle.EarlierName(b, i)] {
			return false
		}
		if before == "" {
			return v.Digests[a] != "" && v.Digests[a] == v.Digests[b]
		}
	}
}

// BinaryDigests returns the SHA-256 of each arm's binary, by the arm's name; arm/1 is what the arm ran before.
func (t Trial) BinaryDigests() map[string]string { return t.World.ArmDigests() }

// indexed returns the entry that an index has for a trial.
func indexed(t Trial) bundle.IndexedTrial {
	return bundle.IndexedTrial{
		ID:       t.ID,
		Pair:     t.Pair,
		Arms:     t.BinaryDigests(),
		Manifest: t.Manifest,
	}
}

// missing returns the paths of the artifacts that a bundle's manifest lists and that are not on disk.
func missing(b *bundle.Sealed) []string {
	var out []string
	for _, a := range b.Artifacts(bundle.Query{}) {
		if a.Missing {
			out = append(out, a.Path)
		}
	}
	return out
}

// cores returns how many cores the host had by the first sample of it that can be read, 0 if there is none.
func cores(b *bundle.Sealed) int {
	for _, a := range b.Artifacts(bundle.Query{Kind: bundle.Host}) {
		r, err := b.Open(a)
		if err != nil {
			continue
		}
		var first bundle.HostSample
		err = json.NewDecoder(r).Decode(&first)
		r.Close()
		if err == nil {
			return first.Cores
		}
	}
	return 0
}
