package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[check.Check]{Name: "testHolds", Doc: "Looks for a text in the phase's snapshots.",
		New: func() check.Check { return &holds{} }})
	kinds.Register(kinds.Check, kinds.Kind[check.Check]{Name: "testPanics", Doc: "Panics.", New: func() check.Check { return panics{} }})
}

// holds is met when every snapshot of a kind in the scope's phase has a text, and unknown when there is none.
type holds struct {
	Artifact bundle.Kind `json:"artifact"`
	Text     string      `json:"text"`
	Shared   bool        `json:"shared"`
	Ended    int         `json:"ended"` // the second at which it saw the subject's process end; 0 is never
}

func (h *holds) Reads() []bundle.Kind { return []bundle.Kind{h.Artifact} }

func (h *holds) Eval(v bundle.View, s check.Scope) check.Finding {
	f := check.Finding{Wanted: h.Text, Seen: "no snapshot"}
	if h.Ended > 0 {
		f.Ended = at(h.Ended)
	}
	w, ok := s.Window(v)
	if !ok {
		f.Seen = "the phase never began"
		return f
	}
	q := bundle.Query{Kind: h.Artifact, Arm: s.Arm, From: w.Start, To: w.End}
	if h.Shared {
		q.Arm = bundle.Shared
	}
	for _, a := range v.Artifacts(q) {
		r, err := v.Open(a)
		if err != nil {
			f.Met, f.Seen = check.Unknown, "a snapshot is missing"
			return f
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return f
		}
		f.Evidence = append(f.Evidence, a.Path)
		f.Met, f.Seen = check.Of(bytes.Contains(b, []byte(h.Text))), strings.TrimSpace(string(b))
		if f.Met == check.True {
			f.Detail = strings.TrimSpace(string(b))
		} else {
			return f
		}
	}
	return f
}

type panics struct{}

func (panics) Reads() []bundle.Kind                        { return nil }
func (panics) Eval(bundle.View, check.Scope) check.Finding { panic("nil map") }

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

// arm is what happens to one arm in a made-up trial. Phases: steady 0 s, baseline 20 s, fault 40 s, recovery 60 s, end
// 80 s.
type arm struct {
	planned        plan.Arm
	world          bundle.ArmWorld
	steady         string // content of the steady snapshot; "" takes none
	exposed        string
	before, after  string // goroutines in baseline and recovery
	health         string
	identity       func(second int) (bundle.IdentitySample, bool)
	nodes          func(s *bundle.Stream) // nil records no node conditions
	sharedEvidence bool                   // its goroutines are recorded as belonging to no arm
	more           func(w *bundle.Writer) // records what else there is; may be nil
}

const (
	digestV = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestF = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
)

// same is one process with one digest throughout.
func same(digest string) func(int) (bundle.IdentitySample, bool) {
	return func(int) (bundle.IdentitySample, bool) {
		return bundle.IdentitySample{PID: 7, StartTicks: 99, SHA256: digest}, true
	}
}

func newArm(name, role, digest, after, health, expected string) *arm {
	src := scenario.Source{Module: "k8s.io/kubernetes", Version: "v1.34.4", Package: "cmd/kubelet"}
	if role == scenario.Vulnerable {
		src.Mutations = []scenario.Mutation{{Kind: "selectToSend", Sites: 1}}
	}
	return &arm{
		planned: plan.Arm{Arm: scenario.Arm{Name: name, Role: role, Source: src}, Node: name + "-node", Expected: expected},
		world: bundle.ArmWorld{Arm: name, Digest: digest, Graph: "graph1", Flags: []string{"-trimpath"}, GoVersion: "go1.26.0",
			Constants: map[string]int64{"capacity": 1000}},
		steady: "ok", exposed: "slow", before: "goroutine 1 [select]", after: after, health: health, identity: same(digest),
	}
}

// trial is a made-up trial of a vulnerable and a fixed arm in which the cure works.
type trial struct {
	vulnerable, fixed *arm
	only              *arm
	third             *arm // a further arm; may be nil
	plan              plan.Trial
	run               plan.Plan // the run's own; a trial of it with an id and a pair only is like this one, and without trials this is its only one
	world             bundle.World
	emit              []event.Event
	phases            []string // one every 20 s
}

func newTrial() *trial {
	c := func(name string, kind bundle.Kind, text string) plan.Check {
		return plan.Check{CheckHeader: scenario.CheckHeader{Name: name, Kind: "testHolds", After: &metav1.Duration{}}, Spec: &holds{Artifact: kind, Text: text}}
	}
	blocked := c("is blocked", bundle.Goroutines2, "chan send")
	blocked.Phase = check.Recovery // as a plan has it
	return &trial{
		vulnerable: newArm("vulnerable", scenario.Vulnerable, digestV, "goroutine 9 [chan send]", "", "Reproduced"),
		fixed:      newArm("fixed", scenario.Fixed, digestF, "goroutine 9 [select]", "well", "NotReproduced"),
		plan: plan.Trial{ID: "001", Pair: "modern", Modelled: []string{"containers are only reported"},
			Steady:    []plan.Check{c("is steady", bundle.Metrics, "ok")},
			Exposure:  []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "was hit", After: &metav1.Duration{}}, AnyOf: []plan.Check{c("slow", bundle.Configz, "slow"), c("stuck", bundle.Configz, "stuck")}}},
			Signature: []plan.Check{blocked},
			Healed:    []plan.Check{c("is well", bundle.Containers, "well")},
		},
		run:   plan.Plan{Schema: plan.Schema, Scenario: "x", Title: "An illness", Seed: 42, Digest: "5ce0"},
		world: bundle.World{StartedAt: t0, Run: "r1", Versions: map[string]string{"go": "go1.26.0", "relapse": "v1.2.3"}},

		phases: []string{"steady", "baseline", "fault", "recovery", "end"},
	}
}

func (tr *trial) arms() []*arm {
	if tr.only != nil {
		return []*arm{tr.only}
	}
	if tr.third != nil {
		return []*arm{tr.vulnerable, tr.fixed, tr.third}
	}
	return []*arm{tr.vulnerable, tr.fixed}
}

// listed are trials of a run's plan by their ids, all of one pair.
func listed(ids ...string) (out []plan.Trial) {
	for _, id := range ids {
		out = append(out, plan.Trial{ID: id, Pair: "modern"})
	}
	return out
}

// write leaves the trial as a sealed bundle in a run's directory and returns that.
func (tr *trial) write(t *testing.T) string {
	t.Helper()
	run := filepath.Join(t.TempDir(), "20260304-050607-x")
	tr.writeTo(t, run)
	return run
}

func (tr *trial) writeTo(t *testing.T, run string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := bundle.Create(filepath.Join(run, "trials", tr.plan.ID))
	must(err)
	tr.plan.Arms = nil
	for _, a := range tr.arms() {
		tr.plan.Arms = append(tr.plan.Arms, a.planned)
		tr.world.Arms = append(tr.world.Arms, a.world)
	}
	if len(tr.run.Trials) == 0 {
		tr.run.Trials = []plan.Trial{{ID: tr.plan.ID, Pair: tr.plan.Pair}}
	}
	for i, t := range tr.run.Trials {
		if t.Arms == nil {
			like := tr.plan
			like.ID, like.Pair = t.ID, t.Pair
			tr.run.Trials[i] = like
		}
	}
	one := tr.run
	one.Trials = []plan.Trial{tr.plan}
	b, err := json.Marshal(one)
	must(err)
	must(w.PutPlan(b))
	tr.world.Scenario = tr.run.Digest
	tr.world.Plan, err = plan.Sum(&tr.run)
	must(err)
	must(w.SetWorld(tr.world))
	for i, p := range tr.phases {
		w.Emit(event.Event{Time: at(20 * i), Mono: time.Duration(i) * 20 * time.Second, Type: event.Phase, Message: p})
	}
	w.Emit(event.Event{Time: at(80), Type: event.StageDone, Stage: "fault", Fields: map[string]any{"seconds": 20.5}})
	for _, e := range tr.emit {
		w.Emit(e)
	}
	for _, a := range tr.arms() {
		a.record(t, w)
	}
	must(w.Seal())
	tr.enter(t, run)
}

// enter leaves the run's plan, and the trial in its index, as a run does.
func (tr *trial) enter(t *testing.T, run string) {
	t.Helper()
	raw, err := plan.Encode(&tr.run)
	must(t, err)
	put(t, filepath.Join(run, bundle.PlanFile), string(raw))
	x, err := bundle.ReadIndex(run)
	if errors.Is(err, fs.ErrNotExist) {
		x, err = bundle.Index{Run: tr.world.Run, Plan: tr.world.Plan, Scenario: tr.world.Scenario, Relapse: "v1.2.3", Complete: true}, nil
	}
	must(t, err)
	sum, err := bundle.ManifestSum(filepath.Join(run, "trials", tr.plan.ID))
	must(t, err)
	entry := bundle.IndexedTrial{ID: tr.plan.ID, Pair: tr.plan.Pair, Arms: map[string]string{}, Manifest: sum}
	for _, a := range tr.arms() {
		entry.Arms[a.planned.Name] = a.world.Digest
	}
	x.Trials = append(x.Trials, entry)
	must(t, x.Write(run))
}

func (a *arm) record(t *testing.T, w *bundle.Writer) {
	t.Helper()
	snap := func(kind bundle.Kind, second int, text string) {
		if text == "" {
			return
		}
		m := bundle.Meta{Kind: kind, Arm: a.planned.Name, Time: at(second)}
		if a.sharedEvidence && kind == bundle.Goroutines2 {
			m.Arm = bundle.Shared
		}
		if _, err := w.Write(m, "txt", strings.NewReader(text+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	snap(bundle.Metrics, 5, a.steady)
	snap(bundle.Goroutines2, 25, a.before)
	snap(bundle.Configz, 45, a.exposed)
	snap(bundle.Goroutines2, 65, a.after)
	snap(bundle.Containers, 70, a.health)
	s, err := w.Stream(bundle.Meta{Kind: bundle.Identity, Arm: a.planned.Name, Time: t0}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for sec := 0; sec <= 80; sec += 5 {
		if one, ok := a.identity(sec); ok {
			one.Time = at(sec)
			if err := s.JSON(one); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a.more != nil {
		a.more(w)
	}
	if a.nodes == nil {
		return
	}
	n, err := w.Stream(bundle.Meta{Kind: bundle.Nodes, Arm: a.planned.Name, Time: t0}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	a.nodes(n)
}

// removeArtifact deletes the files of a trial whose names contain part.
func removeArtifact(t *testing.T, run, part string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(run, "trials", "001", "artifacts", "*"+part+"*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", part, files, err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}
