package conformance_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// idle makes a cluster that reports that it is healthy but does no work: nothing is bound, run, given an address or
// deleted.
func (s *loaded) idle() {
	for _, n := range s.Nodes() {
		s.API().IdleKubelet(n.Name(), true)
	}
	s.API().IdleScheduler(true)
	s.API().IdleServices(true)
	s.answers(false)
	s.script(func(w http.ResponseWriter, r *http.Request) bool {
		ours := r.Method == http.MethodDelete && path.Base(r.URL.Path) == "configmaps"
		if ours {
			w.WriteHeader(http.StatusOK)
		}
		return ours
	})
}

// probesWork is the conformance suite of probes: a subject that works, one that doesn't, and a context that ended
// before the probe began.
func probesWork(t *testing.T, e kinds.Entry) {
	over, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		world func(*loaded)
		ended string
	}{
		{"works", t.Context(), func(*loaded) {}, bundle.ProbeDone},
		{"works not", t.Context(), (*loaded).idle, bundle.ProbeFailed},
		{"over before", over, func(*loaded) {}, bundle.ProbeCut},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := newLoaded(t), newBundle(t)
			l, err := kinds.Decode[load.Load](kinds.Load, e.Name, json.RawMessage(e.Tested))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // a run that is resumed prepares again
				if err := l.Prepare(t.Context(), s.target()); err != nil {
					t.Fatal(err)
				}
			}
			c.world(s)
			if err := soon(t, "the probe's end", run(c.ctx, l, s, w)); err != nil {
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

// probed probes the subject twice: once successfully, and once while the subject's kubelet is idle.
func (s *subject) probed(t *testing.T, w *bundle.Writer, events *event.Stream) {
	t.Helper()
	node := s.nodes[0].Node
	for _, name := range []string{"works", "idle"} {
		l, err := kinds.Decode[load.Load](kinds.Load, "podProbe", json.RawMessage(`{"timeout":"500ms","tries":1}`))
		if err != nil {
			t.Fatal(err)
		}
		to := load.Target{Run: "run", Name: name, Arm: arm, Cluster: s.Cluster, Nodes: []cluster.Node{node}, Events: events}
		if err := l.Prepare(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		s.API().IdleKubelet(node.Name(), name == "idle")
		if err := l.Run(t.Context(), to, w); err != nil {
			t.Fatal(err)
		}
	}
	s.API().IdleKubelet(node.Name(), false)
}
