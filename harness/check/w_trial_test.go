package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// The arms of the trials in these tests.
const (
	arm   = "vulnerable"
	other = "fixed"
)

// The phases of the trials in these tests, in seconds from the start.
const (
	steadyAt   = 0
	baselineAt = 20
	faultAt    = 40
	liftAt     = 290
	recoveryAt = 295
	endAt      = 395
)

// trial is a bundle that a test fills with evidence, at times that it names in seconds from the start.
type trial struct {
	t     *testing.T
	w     *bundle.Writer
	start time.Time

	entered bool // the phases are there
}

// newTrial makes an empty bundle with the constants of two arms and no phase.
func newTrial(t *testing.T, start time.Time) *trial {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]int64{"channelCapacity": 1000, "relistThreshold": int64(3 * time.Minute)}
	tr := &trial{t: t, w: w, start: start}
	tr.must(w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: arm, Constants: constants}, {Arm: other, Constants: constants}}}))
	return tr
}

func (tr *trial) must(err error) {
	tr.t.Helper()
	if err != nil {
		tr.t.Fatal(err)
	}
}

// phases enters all phases.
func (tr *trial) phases() {
	if tr.entered {
		return
	}
	tr.enter(steadyAt, check.Steady)
	tr.enter(baselineAt, check.Baseline)
	tr.enter(faultAt, check.Fault)
	tr.enter(liftAt, "lifting")
	tr.enter(recoveryAt, check.Recovery)
	tr.enter(endAt, bundle.EndPhase)
}

func (tr *trial) at(seconds float64) time.Time {
	return tr.start.Add(time.Duration(seconds * float64(time.Second)))
}

func (tr *trial) enter(seconds float64, phase string) {
	tr.w.Emit(event.Event{Time: tr.at(seconds), Type: event.Phase, Message: phase})
}

func (tr *trial) stream(kind bundle.Kind, arm string) *bundle.Stream {
	tr.t.Helper()
	st, err := tr.w.Stream(bundle.Meta{Kind: kind, Arm: arm, Time: tr.start}, "jsonl")
	tr.must(err)
	return st
}

// fail records a capture that failed.
func (tr *trial) fail(kind bundle.Kind, arm string, seconds float64, why string) {
	tr.w.Fail(bundle.Meta{Kind: kind, Arm: arm, Time: tr.at(seconds)}, errors.New(why))
}

// sample writes a metric's values, each asked for at its second and answered 100 ms later.
func (tr *trial) sample(st *bundle.Stream, name string, seconds, value float64, labels map[string]string) {
	tr.t.Helper()
	tr.must(st.JSON(bundle.MetricSample{Time: tr.at(seconds), Done: tr.at(seconds + 0.1), Name: name, Value: value, Labels: labels}))
}

// series writes a sample every two seconds of from..to; value is given the second.
func (tr *trial) series(st *bundle.Stream, name string, from, to float64, value func(float64) float64) {
	tr.t.Helper()
	for s := from; s <= to; s += 2 {
		tr.sample(st, name, s, value(s), nil)
	}
}

// since is a timestamp metric's value for a moment of the trial.
func (tr *trial) since(seconds float64) float64 {
	return float64(tr.at(seconds).UnixNano()) / 1e9
}

// question is a check asked of a bundle, and the answer that is wanted. Fragments must be found in what they are named after; nil means
// that there must be none.
type question struct {
	name     string
	kind     string
	spec     string
	scope    check.Scope
	fill     func(*trial)     // what is recorded
	damage   func(dir string) // what happens to the sealed bundle; nil if nothing does
	met      check.Truth      // of the sealed bundle
	seen     string           // a fragment
	wanted   string           // a fragment
	differs  []string         // a fragment each
	evidence []bundle.Kind    // the kinds of the artifacts named, in order
	from     string           // the arm of that evidence; "" is the scope's, "*" any
	detail   string           // a fragment
}

// ask evaluates a question live and sealed: the two must agree, unless the bundle was damaged in between.
func ask(t *testing.T, q question) {
	t.Helper()
	tr := newTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	q.fill(tr)
	c, err := kinds.Decode[check.Check](kinds.Check, q.kind, json.RawMessage(q.spec))
	tr.must(err)
	live := c.Eval(tr.w.View(), q.scope)
	tr.must(tr.w.Seal())
	if q.damage != nil {
		q.damage(tr.w.Dir())
	}
	sealed, err := bundle.Open(tr.w.Dir())
	tr.must(err)
	f := c.Eval(sealed, q.scope)
	if d := cmp.Diff(live, f); d != "" && q.damage == nil {
		t.Errorf("the live answer (-) is not the sealed one (+):\n%s", d)
	}
	q.compare(t, f, sealed)
}

func (q question) compare(t *testing.T, f check.Finding, v bundle.View) {
	t.Helper()
	if f.Met != q.met {
		t.Errorf("it is %s, want %s", f.Met, q.met)
	}
	for _, part := range []struct{ what, got, want string }{
		{"seen", f.Seen, q.seen}, {"wanted", f.Wanted, q.wanted}, {"detail", f.Detail, q.detail},
	} {
		if !strings.Contains(part.got, part.want) || part.got == "" && part.what != "detail" {
			t.Errorf("%s is %q, want %q in it", part.what, part.got, part.want)
		}
	}
	if len(f.Differs) != len(q.differs) {
		t.Errorf("differs is %q, want %q", f.Differs, q.differs)
	}
	for i := range min(len(f.Differs), len(q.differs)) {
		if !strings.Contains(f.Differs[i], q.differs[i]) {
			t.Errorf("differs is %q, want %q in it", f.Differs[i], q.differs[i])
		}
	}
	byPath := map[string]bundle.Artifact{}
	for _, a := range v.Artifacts(bundle.Query{}) {
		byPath[a.Path] = a
	}
	var kinds []bundle.Kind
	from := q.scope.Arm
	if q.from != "" {
		from = q.from
	}
	for _, path := range f.Evidence {
		a, ok := byPath[path]
		if !ok || from != "*" && a.Arm != from && !(a.Arm == bundle.Shared && (a.Kind == bundle.Objects || a.Kind == bundle.Host)) { // nodes, pods and the host are every arm's
			t.Errorf("the evidence %q is no artifact of arm %s", path, from)
		}
		kinds = append(kinds, a.Kind)
	}
	if d := cmp.Diff(q.evidence, kinds); d != "" {
		t.Errorf("the evidence has other kinds (-want +got):\n%s", d)
	}
	if t.Failed() {
		t.Logf("the finding: %+v", f)
	}
}

// remove deletes the files of a kind from a bundle.
func remove(t *testing.T, kind bundle.Kind) func(dir string) {
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

// run asks every question as a test of its own. set completes each.
func run(t *testing.T, questions []question, set func(*question)) {
	t.Helper()
	for _, q := range questions {
		t.Run(q.name, func(t *testing.T) {
			set(&q)
			ask(t, q)
		})
	}
}

// times is the kind repeated, as for evidence of several artifacts.
func times(n int, kind bundle.Kind) []bundle.Kind {
	var out []bundle.Kind
	for range n {
		out = append(out, kind)
	}
	return out
}

// refused wants a spec to be refused, by Validate and by Eval.
func refused(t *testing.T, kind, spec, want string) {
	t.Helper()
	ask(t, question{kind: kind, spec: spec, scope: check.Scope{Arm: arm, Phase: check.Fault}, fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: want})
}

// removeFirst deletes the first file of a kind from a bundle.
func removeFirst(kind bundle.Kind) func(dir string) {
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

// both records what several do. The phases are entered once.
func both(fill ...func(*trial)) func(*trial) {
	return func(tr *trial) {
		for i, f := range fill {
			if i > 0 {
				tr.entered = true
			}
			f(tr)
		}
	}
}
