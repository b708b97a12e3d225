package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// comparing lists the checks that need something that the scripted subject lacks: a baseline, an API server's count,
// or sizes.
var comparing = []string{"nothingStuck", "unchangedUpdates", "costGrowth", "goroutinesBack", "heapBack", "cpuBack"}

// ofTheCluster lists the checks that are about a cluster, and give the same answer for every arm in it.
var ofTheCluster = []string{"leaseStale"}

// TestChecksOnWhatCollectorsMake runs every collector on the scripted subject, and evaluates every check live and
// afterwards.
func TestChecksOnWhatCollectorsMake(t *testing.T) {
	s, w := newSubject(t), newBundle(t)
	if err := w.SetWorld(bundle.World{Run: s.Name(), // nodes are named after it
		Arms: []bundle.ArmWorld{{Arm: arm, Flags: []string{"-race"}}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.nodes[1].PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	flood(t, s)
	stream := event.NewStream(w)
	stream.Say(event.Phase, check.Fault)
	audit := goesOn(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for _, e := range kinds.Of(kinds.Collector) {
		c, err := kinds.Decode[capture.Collector](kinds.Collector, e.Name, json.RawMessage(collectorEnvs[e.Name].spec))
		if err != nil {
			t.Fatal(err)
		}
		if st, ok := c.(capture.Streamer); ok {
			wg.Go(func() { _ = st.Stream(ctx, s.target(c), w) }) // what a stream lost shows in the checks
		}
		if sn, ok := c.(capture.Snapshotter); ok {
			for range 2 {
				if err := sn.Snapshot(ctx, s.target(c), w); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s.probed(t, w, stream)
	cutShort(t, w)
	s.churns(ctx, &wg)
	asksInVain(ctx, &wg, audit)
	s.Component("worker", "kubelet").Log(s.line(3, skipped))
	scope := check.Scope{Arm: arm, Phase: check.Fault}
	want := map[string]check.Truth{}
	asked := map[string]check.Check{}
	for _, e := range kinds.Of(kinds.Check) {
		if e.Meets == "" && e.Differs == "" && !slices.Contains(comparing, e.Name) {
			t.Errorf("check %s says neither what meets it nor what doesn't: it is not tested", e.Name)
		}
		for spec, tri := range map[string]check.Truth{e.Meets: check.True, e.Differs: check.False} {
			if spec == "" {
				continue
			}
			c, err := kinds.Decode[check.Check](kinds.Check, e.Name, json.RawMessage(spec))
			if err != nil {
				t.Fatal(err)
			}
			asked[e.Name+" "+spec], want[e.Name+" "+spec] = c, tri
		}
	}
	for name, c := range asked {
		eventually(t, name, func() string {
			if f := c.Eval(w.View(), scope); f.Met != want[name] {
				return fmt.Sprintf("%+v, want %s", f, want[name])
			}
			return ""
		})
	}
	stream.Say(event.Phase, bundle.EndPhase)
	cancel()
	wg.Wait()
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range asked {
		if f := c.Eval(sealed, scope); f.Met != want[name] || len(f.Evidence) == 0 {
			t.Errorf("%s, sealed: %+v, want %s with its evidence", name, f, want[name])
		}
		alone := check.Unknown
		if kind, _, _ := strings.Cut(name, " "); slices.Contains(ofTheCluster, kind) {
			alone = want[name]
		}
		if f := c.Eval(sealed, check.Scope{Arm: other, Phase: check.Fault}); f.Met != alone {
			t.Errorf("%s, asked of the arm that nobody looked at: %+v, want %s", name, f, alone)
		}
	}
}

// cutShort records a load of the fault phase whose calls were cut short.
func cutShort(t *testing.T, w *bundle.Writer) {
	t.Helper()
	sum := bundle.Load{Name: "deletes", Objects: 1000, Codes: map[string]int{"504": 20}, Rounds: []bundle.LoadRound{{
		Round: 1, Start: time.Now(), Calls: 20, Cut: &bundle.CutCalls{Open: 20, Deleting: 20, Failed: 20, Left: new(919)},
	}}}
	if _, err := w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm}, sum); err != nil {
		t.Fatal(err)
	}
}

// goesOn gives the subject a log line of its fault phase, an endpoint that isn't healthy, a heap of 24 MiB, and a CPU
// profile of one stack. It returns the path of the subject's audit log.
func goesOn(t *testing.T, s *subject) (audit string) {
	t.Helper()
	audit = layLogs(t, s.nodes[0].Node)
	k := s.Component("worker", "kubelet")
	k.Answer("/livez", func(string) ([]byte, error) {
		return nil, &cluster.StatusError{Path: "/livez", Code: 500, Status: "500 Internal Server Error"}
	})
	f := &profile.Function{ID: 1, Name: "k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		Sample:     []*profile.Sample{{Value: []int64{3, 24 << 20}, Location: []*profile.Location{l}}},
		Location:   []*profile.Location{l}, Function: []*profile.Function{f},
	}
	spent := p.Copy()
	spent.SampleType, spent.DurationNanos = []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, 1e6
	for path, p := range map[string]*profile.Profile{"/debug/pprof/heap": p, "/debug/pprof/profile": spent} {
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		k.Answer(path, func(string) ([]byte, error) { return b.Bytes(), nil })
	}
	return audit
}

// flood arms a flood of two pods with three containers each, and inspects the pods as PLEG does: 8 state changes.
func flood(t *testing.T, s *subject) {
	t.Helper()
	ctx, n := t.Context(), s.nodes[0]
	armed := control.Arm{ID: "flood", Owner: "run", Expires: control.Duration(time.Minute)}
	if _, err := n.client().ArmFlood(ctx, armed, control.Flood{Pods: 2, ContainersPerPod: 3, State: control.StateExited, Seed: "s"}); err != nil {
		t.Fatal(err)
	}
	pods, err := n.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if !reported(p.Id) {
			continue
		}
		if _, err := n.cri.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.Id}); err != nil {
			t.Fatal(err)
		}
		list, err := n.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{
			Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": p.Metadata.Uid}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Containers {
			if !reported(c.Id) {
				continue // this runtime ignores filters
			}
			if _, err := n.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// made lists the kinds of artifacts that some registered collector or probe makes.
func made() []bundle.Kind {
	var out []bundle.Kind
	for _, e := range kinds.Of(kinds.Collector) {
		out = append(out, e.New().(capture.Collector).Makes()...)
	}
	for _, e := range kinds.Of(kinds.Load) {
		if makes := e.New().(load.Load).Makes(); slices.Contains(makes, bundle.WorkProbe) {
			out = append(out, makes...)
		}
	}
	return out
}

// A check without any evidence answers Unknown, and a check reads only what some collector or probe makes.
func TestEveryCheckOnNothing(t *testing.T) {
	for _, e := range kinds.Of(kinds.Check) {
		t.Run(e.Name, func(t *testing.T) {
			c, err := kinds.Decode[check.Check](kinds.Check, e.Name, specOf(t, e))
			if err != nil {
				t.Fatal(err)
			}
			if u, ok := c.(check.Needer); len(c.Reads()) == 0 && (!ok || len(u.Needs().Loads) == 0) { // a load's summary comes with the load
				t.Error("it reads nothing")
			}
			for _, k := range c.Reads() {
				if !slices.Contains(made(), k) {
					t.Errorf("it reads %s, which no collector or probe makes", k)
				}
			}
			w := newBundle(t)
			for _, phase := range []string{"", check.Steady, check.Baseline, check.Fault, check.Recovery} {
				if phase != "" {
					w.Emit(phaseEvent(phase))
				}
				for _, arm := range []string{arm, bundle.Shared, "nobody"} {
					for _, scope := range []check.Scope{{Arm: arm, Phase: check.Fault}, {Arm: arm, Phase: phase}, {Arm: arm, Phase: phase, After: 1 << 40}} {
						f := c.Eval(w.View(), scope)
						if f.Met != check.Unknown || f.Seen == "" || f.Wanted == "" || len(f.Evidence) > 0 {
							t.Errorf("over an empty bundle in phase %q, asked %+v, it says %+v; want unknown, and what is missing", phase, scope, f)
						}
					}
				}
			}
		})
	}
}
