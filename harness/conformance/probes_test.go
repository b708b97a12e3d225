package conformance_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// probeCase is what a probe asks for beyond what every cluster in memory does. Both functions may be nil.
type probeCase struct {
	// lay adds to the cluster what the probe needs.
	lay func(*testing.T, *loaded)
	// idle ends the work that lay and the API server do for the probe.
	idle func(*testing.T, *loaded)
}

// refuses says why a probe's case can't be one of a kind.
func (probeCase) refuses(e kinds.Entry) string {
	if !isProbe(e) {
		return "it is no probe, and its case is a loadCase: no suite would use what a probe needs"
	}
	return ""
}

// isProbe tells whether a kind of load is a probe.
func isProbe(e kinds.Entry) bool {
	return slices.Contains(e.New().(load.Load).Makes(), bundle.WorkProbe)
}

// idle makes a cluster that reports that it is healthy but does no work: nothing is bound, run or given an address.
func (s *loaded) idle() {
	for _, n := range s.Nodes() {
		s.API().IdleKubelet(n.Name(), true)
	}
	s.API().IdleScheduler(true)
	s.API().IdleServices(true)
}

// probesWork is the conformance suite of probes: a subject that works, one that doesn't, and a context that ended
// before the probe began.
func probesWork(t *testing.T, e kinds.Entry) {
	pc := probes.only(t, e.Name)
	over, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		idle  bool
		ended string
	}{
		{"works", t.Context(), false, bundle.ProbeDone},
		{"works not", t.Context(), true, bundle.ProbeFailed},
		{"over before", over, false, bundle.ProbeCut},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := newLoaded(t), newBundle(t)
			if pc.lay != nil {
				pc.lay(t, s)
			}
			l, err := kinds.Decode[load.Load](kinds.Load, e.Name, json.RawMessage(e.Tested))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a run that is resumed prepares again
				if err := l.Prepare(t.Context(), s.target()); err != nil {
					t.Fatal(err)
				}
			}
			if c.idle {
				s.idle()
			}
			if c.idle && pc.idle != nil {
				pc.idle(t, s)
			}
			if err := controltest.Soon(t, "the probe's end", run(c.ctx, l, s, w)); err != nil {
				t.Fatal(err)
			}
			p := probeLeft(t, w)
			if p.Name != "item" || p.Ended != c.ended || p.Work == "" || len(p.Steps) == 0 || (p.Why == "") != (c.ended == bundle.ProbeDone) {
				t.Errorf("recorded as %+v, want it %s", p, c.ended)
			}
			for i, st := range p.Steps {
				if last := i == len(p.Steps)-1; st.Asked.Before(p.Start) || c.ended == bundle.ProbeDone && st.Seen.Before(st.Asked) || last && st.Seen.IsZero() != (c.ended != bundle.ProbeDone) {
					t.Errorf("step %d is %+v", i, st)
				}
			}
		})
	}
}

// probeLeft reads a probe's record, which must be the probe's only artifact.
func probeLeft(t *testing.T, w *bundle.Writer) (p bundle.ProbeRecord) {
	t.Helper()
	left := w.View().Artifacts(bundle.Query{Arm: arm})
	if len(left) != 1 || left[0].Kind != bundle.WorkProbe || left[0].Error != "" {
		t.Fatalf("it left %+v", left)
	}
	r, err := w.View().Open(left[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}
