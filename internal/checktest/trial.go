// Package checktest is what the tests of checks share: a trial that a test fills with evidence, at times that it names
// in seconds from the start, and questions that are asked of it live and sealed.
package checktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// The arms of the trials in these tests.
const (
	Arm   = "vulnerable"
	Other = "fixed"
)

// The phases of the trials in these tests, in seconds from the start.
const (
	steadyAt   = 0
	baselineAt = 20
	FaultAt    = 40
	liftAt     = 290
	RecoveryAt = 295
	EndAt      = 395
)

// Trial is a bundle that a test fills with evidence, at times that it names in seconds from the start.
type Trial struct {
	T     *testing.T
	W     *bundle.Writer
	Start time.Time

	entered bool // the phases are there
}

// NewTrial makes an empty bundle with the constants of two arms and no phase.
func NewTrial(t *testing.T, start time.Time) *Trial {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]int64{
		"channelCapacity": 1000,
		"relistThreshold": int64(3 * time.Minute),
	}
	tr := &Trial{T: t, W: w, Start: start}
	tr.Must(w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: Arm, Constants: constants}, {Arm: Other, Constants: constants}}}))
	return tr
}

// Must fails the test if there is an error.
func (tr *Trial) Must(err error) {
	tr.T.Helper()
	if err != nil {
		tr.T.Fatal(err)
	}
}

// Phases enters all phases.
func (tr *Trial) Phases() {
	if tr.entered {
		return
	}
	tr.Enter(steadyAt, check.Steady)
	tr.Enter(baselineAt, check.Baseline)
	tr.Enter(FaultAt, check.Fault)
	tr.Enter(liftAt, "lifting")
	tr.Enter(RecoveryAt, check.Recovery)
	tr.Enter(EndAt, bundle.EndPhase)
}

// At returns the time of a second of the trial.
func (tr *Trial) At(seconds float64) time.Time {
	return tr.Start.Add(time.Duration(seconds * float64(time.Second)))
}

// Enter begins a phase.
func (tr *Trial) Enter(seconds float64, phase string) {
	tr.W.Emit(event.Event{Time: tr.At(seconds), Type: event.Phase, Message: phase})
}

// Stream opens a stream of an arm.
func (tr *Trial) Stream(kind bundle.Kind, arm string) *bundle.Stream {
	tr.T.Helper()
	st, err := tr.W.Stream(bundle.Meta{Kind: kind, Arm: arm, Time: tr.Start}, "jsonl")
	tr.Must(err)
	return st
}

// Fail records a capture that failed.
func (tr *Trial) Fail(kind bundle.Kind, arm string, seconds float64, why string) {
	tr.W.Fail(bundle.Meta{Kind: kind, Arm: arm, Time: tr.At(seconds)}, errors.New(why))
}

// Sample writes a metric's values, each asked for at its second and answered 100 ms later.
func (tr *Trial) Sample(
	st *bundle.Stream,
	name string,
	seconds, value float64,
	labels map[string]string,
) {
	tr.T.Helper()
	tr.Must(st.JSON(bundle.MetricSample{Time: tr.At(seconds), Done: tr.At(seconds + 0.1), Name: name, Value: value, Labels: labels}))
}

// Series writes a sample every two seconds of from..to; value is given the second.
func (tr *Trial) Series(
	st *bundle.Stream,
	name string,
	from, to float64,
	value func(float64) float64,
) {
	tr.T.Helper()
	for s := from; s <= to; s += 2 {
		tr.Sample(st, name, s, value(s), nil)
	}
}

// Since is a timestamp metric's value for a moment of the trial.
func (tr *Trial) Since(seconds float64) float64 {
	return float64(tr.At(seconds).UnixNano()) / 1e9
}

// Question is a check asked of a bundle, and the answer that is wanted. Fragments must be found in what they are named
// after; nil means that there must be none.
type Question struct {
	Name     string
	Kind     string
	Spec     string
	Scope    check.Scope
	Fill     func(*Trial)       // what is recorded
	Damage   func(dir string)   // what happens to the sealed bundle; nil if nothing does
	Met      check.Truth        // of the sealed bundle
	Seen     string             // a fragment
	Wanted   string             // a fragment
	Differs  []string           // a fragment each
	Evidence []bundle.Kind      // the kinds of the artifacts named, in order
	From     string             // the arm of that evidence; "" is the scope's, "*" any
	Detail   string             // a fragment
	Code     check.Code         // of an answer that is unknown; "" accepts any
	Figures  map[string]float64 // those that are checked
}

// Open evaluates a question live and sealed: the two must agree, unless the bundle was damaged in between.
func Open(t *testing.T, q Question) {
	t.Helper()
	tr := NewTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	q.Fill(tr)
	c, err := kinds.Decode[check.Check](kinds.Check, q.Kind, json.RawMessage(q.Spec))
	tr.Must(err)
	live := c.Eval(tr.W.View(), q.Scope)
	tr.Must(tr.W.Seal())
	if q.Damage != nil {
		q.Damage(tr.W.Dir())
	}
	sealed, err := bundle.Open(tr.W.Dir())
	tr.Must(err)
	f := c.Eval(sealed, q.Scope)
	if d := cmp.Diff(live, f); d != "" && q.Damage == nil {
		t.Errorf("the live answer (-) is not the sealed one (+):\n%s", d)
	}
	q.compare(t, f, sealed)
}

func (q Question) compare(t *testing.T, f check.Finding, v bundle.View) {
	t.Helper()
	if f.Met != q.Met {
		t.Errorf("it is %s, want %s", f.Met, q.Met)
	}
	if (f.Met == check.Unknown) != slices.Contains(check.Codes, f.Code) || q.Code != "" && f.Code != q.Code {
		t.Errorf("it is %s with the code %q, want %q, and a code if and only if it is unknown", f.Met, f.Code, q.Code)
	}
	for name, want := range q.Figures {
		if got, ok := f.Figures[name]; !ok || got != want {
			t.Errorf("the figure %s is %v, want %v", name, got, want)
		}
	}
	for _, part := range []struct{ what, got, want string }{
		{"seen", f.Seen, q.Seen}, {"wanted", f.Wanted, q.Wanted}, {"detail", f.Detail, q.Detail},
	} {
		if !strings.Contains(part.got, part.want) || part.got == "" && part.what != "detail" {
			t.Errorf("%s is %q, want %q in it", part.what, part.got, part.want)
		}
	}
	if len(f.Differs) != len(q.Differs) {
		t.Errorf("differs is %q, want %q", f.Differs, q.Differs)
	}
	for i := range min(len(f.Differs), len(q.Differs)) {
		if !strings.Contains(f.Differs[i], q.Differs[i]) {
			t.Errorf("differs is %q, want %q in it", f.Differs[i], q.Differs[i])
		}
	}
	byPath := map[string]bundle.Artifact{}
	for _, a := range v.Artifacts(bundle.Query{}) {
		byPath[a.Path] = a
	}
	var kinds []bundle.Kind
	from := q.Scope.Arm
	if q.From != "" {
		from = q.From
	}
	for _, path := range f.Evidence {
		a, ok := byPath[path]
		if !ok || from != "*" && a.Arm != from && !(a.Arm == bundle.Shared && (a.Kind == bundle.Objects || a.Kind == bundle.Host)) { // nodes, pods and the host are every arm's
			t.Errorf("the evidence %q is no artifact of arm %s", path, from)
		}
		kinds = append(kinds, a.Kind)
	}
	if d := cmp.Diff(q.Evidence, kinds); d != "" {
		t.Errorf("the evidence has other kinds (-want +got):\n%s", d)
	}
	if t.Failed() {
		t.Logf("the finding: %+v", f)
	}
}

// Remove deletes the files of a kind from a bundle.
func Remove(t *testing.T, kind bundle.Kind) func(dir string) {
	return func(dir string) {
		found, err := filepath.Glob(filepath.Join(dir, "artifacts", fmt.Sprintf("*-%s-*", kind)))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no file of kind %s to remove: %v", kind, err)
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Run asks every question as a test of its own. set completes each.
func Run(t *testing.T, questions []Question, set func(*Question)) {
	t.Helper()
	for _, q := range questions {
		t.Run(q.Name, func(t *testing.T) {
			set(&q)
			Open(t, q)
		})
	}
}

// Times is the kind repeated, as for evidence of several artifacts.
func Times(n int, kind bundle.Kind) []bundle.Kind {
	var out []bundle.Kind
	for range n {
		out = append(out, kind)
	}
	return out
}

// Refused wants a spec to be refused, by Validate and by Eval.
func Refused(t *testing.T, kind, spec, want string) {
	t.Helper()
	Open(t, Question{Kind: kind, Spec: spec, Scope: check.Scope{Arm: Arm, Phase: check.Fault}, Fill: func(tr *Trial) { tr.Phases() }, Met: check.Unknown, Seen: want})
}

// RemoveFirst deletes the first file of a kind from a bundle.
func RemoveFirst(kind bundle.Kind) func(dir string) {
	return func(dir string) {
		found, err := filepath.Glob(filepath.Join(dir, "artifacts", fmt.Sprintf("*-%s-*", kind)))
		if err == nil {
			err = os.Remove(found[0])
		}
		if err != nil {
			panic(err)
		}
	}
}

// Both records what several do. The phases are entered once.
func Both(fill ...func(*Trial)) func(*Trial) {
	return func(tr *Trial) {
		for i, f := range fill {
			if i > 0 {
				tr.entered = true
			}
			f(tr)
		}
	}
}
