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

// checkEnvs has for every registered check a spec that the scripted subject meets, and one that it doesn't. It can't be killed for its memory:
// that is for the check's own tests.
var checkEnvs = map[string]struct{ meets, differs string }{
	"callsCutShort": {`{"load":"deletes","atLeast":20,"moreThan":256}`, `{"load":"deletes","atLeast":21}`},
	"churn": {
		`{"resource":"bundledeployments.fleet.cattle.io","rate":0.9,"only":["status.n"],"by":"agent-$(cell)",` + quietBundles + `}`,
		`{"resource":"bundledeployments.fleet.cattle.io","none":true,` + quietBundles + `}`,
	},
	"crashed":         {"", `{"container":"kubelet","message":"nil pointer","frames":["f"]}`}, // it doesn't crash: that is for the check's own tests
	"etcdHealthy":     {`{"below":"3s","for":"1s"}`, `{"below":"1ns","for":"1s"}`},
	"goroutines":      {`{"func":"pleg.(*GenericPLEG).Relist","state":"chan send","dumps":2,"persist":true}`, `{"func":"pleg.(*GenericPLEG).Relist","state":"select","dumps":2}`},
	"healthy":         {`{"path":"/readyz","for":"1s"}`, `{"path":"/livez","for":"1s"}`},
	"killedForMemory": {"", `{"container":"kubelet","func":"f","heapFunc":"f"}`},
	"leakedGoroutines": {
		`{"func":"registry.(*Store).DeleteCollection","snapshots":2,"none":true}`, `{"func":"pleg.(*GenericPLEG).Relist","snapshots":2,"none":true}`,
	},
	// The other arm's node is off.
	"leaseStale":     {`{"nodes":["worker2"],"for":"1s"}`, `{"nodes":["worker"],"for":"1s"}`},
	"logCount":       {`{"component":"kubelet","pattern":"skipping pod","atLeast":1}`, `{"component":"kubelet","pattern":"no such line","atLeast":1}`},
	"logLine":        {`{"pattern":"threshold is (?P<limit>\\S+)\"","equals":{"limit":{"duration":"3m"}}}`, `{"pattern":"no such line"}`},
	"metricAge":      {`{"metric":"seen_seconds","above":{"duration":"5s"}}`, `{"metric":"seen_seconds","above":{"duration":"1h"}}`},
	"metricAbsent":   {`{"metric":"no_such_total"}`, `{"metric":"grows_total"}`},
	"metricIncrease": {`{"metric":"grows_total","by":{"number":3}}`, `{"metric":"stands_total"}`},
	"metricMean":     {`{"metric":"took_seconds","above":{"duration":"1s"},"atLeast":3}`, `{"metric":"took_seconds","above":{"duration":"2s"},"atLeast":3}`},
	"metricRate":     {`{"metric":"grows_total","above":0.1}`, `{"metric":"stands_total","above":0.1}`},
	"metricStill":    {`{"metrics":["stands_total"],"span":"1s"}`, `{"metrics":["stands_total","grows_total"],"span":"1s"}`},
	"nodeReady":      {`{"status":"True","reason":"KubeletReady","hold":"1s"}`, `{"status":"False","hold":"1s"}`},
	"nothingStuck":   {"", ""}, // compares with a baseline, which the scripted subject hasn't
	"objectField": {
		`{"resource":"bundles.fleet.cattle.io","name":"a","namespace":"cell","fields":{"status.n":"0"},"hold":"500ms"}`,
		`{"resource":"bundles.fleet.cattle.io","name":"a","fields":{"status.n":"1"},"hold":"500ms"}`,
	},
	"probeDone":  {`{"probe":"works"}`, `{"probe":"idle"}`},
	"processCPU": {`{"atMost":1}`, `{"above":1}`},
	"quietWorld": {
		`{"resources":["bundles.fleet.cattle.io"],"still":"500ms","for":"1s"}`, `{"resources":["bundledeployments.fleet.cattle.io"],"still":"5s","for":"10s"}`,
	},
	"retainedHeap":     {`{"func":"pleg.(*GenericPLEG).Relist","atLeast":"16Mi","snapshots":2}`, `{"func":"pleg.(*GenericPLEG).Relist","atLeast":"1Gi","snapshots":2}`},
	"unchangedUpdates": {"", ""}, // compares with an API server's count, which the fake cluster hasn't
	"floodDelivered": {
		`{"fault":"flood","moreThan":{"number":7},"since":{"metric":"seen_seconds","plus":{"duration":"5s"}}}`,
		`{"fault":"flood","moreThan":{"number":8},"since":{"metric":"seen_seconds","plus":{"duration":"5s"}}}`,
	},
}

// ofTheCluster are the checks that are about a cluster, and get the same answer for every arm in it.
var ofTheCluster = []string{"leaseStale"}

// TestChecksOnWhatCollectorsMake runs every collector on the scripted subject, and asks every check live and afterwards.
func TestChecksOnWhatCollectorsMake(t *testing.T) {
	s, w := newSubject(t), newBundle(t)
	if err := w.SetWorld(bundle.World{Run: s.Name()}); err != nil { // nodes are named after it
		t.Fatal(err)
	}
	if err := s.nodes[1].PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	flood(t, s)
	stream := event.NewStream(w)
	stream.Say(event.Phase, check.Fault)
	goesOn(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for _, e := range kinds.Of(kinds.Collector) {
		c, err := kinds.Decode[capture.Collector](kinds.Collector, e.Name, json.RawMessage(collectorEnvs[e.Name].spec))
		if err != nil {
			t.Fatal(err)
		}
		if st, ok := c.(capture.Streamer); ok {
			wg.Go(func() { _ = st.Stream(ctx, s.target(c), w) }) // what it lost shows in the checks
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
	s.Component("worker", "kubelet").Log(s.line(3, skipped))
	scope := check.Scope{Cell: arm, Phase: check.Fault}
	want := map[string]check.Tri{}
	asked := map[string]check.Check{}
	for _, e := range kinds.Of(kinds.Check) {
		env, ok := checkEnvs[e.Name]
		if !ok {
			t.Fatalf("check %s has no entry in checkEnvs: it is not tested", e.Name)
		}
		for spec, tri := range map[string]check.Tri{env.meets: check.Met, env.differs: check.NotMet} {
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
		if f := c.Eval(sealed, check.Scope{Cell: other, Phase: check.Fault}); f.Met != alone {
			t.Errorf("%s, asked of the arm that nobody looked at: %+v, want %s", name, f, alone)
		}
	}
}

// cutShort records a load of the fault phase whose calls were cut short.
func cutShort(t *testing.T, w *bundle.Writer) {
	t.Helper()
	sum := bundle.Load{Name: "deletes", Objects: 1000, Rounds: []bundle.LoadRound{{
		Round: 1, Start: time.Now(), Calls: 20, Cut: &bundle.CutCalls{Open: 20, Deleting: 20, Failed: 20, Left: new(919)},
	}}}
	if _, err := w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Cell: arm}, sum); err != nil {
		t.Fatal(err)
	}
}

// goesOn gives the subject a log line of its fault phase, an endpoint that is not well, and a heap of 24 MiB.
func goesOn(t *testing.T, s *subject) {
	t.Helper()
	layLogs(t, s.nodes[0].Node)
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
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	k.Answer("/debug/pprof/heap", func(string) ([]byte, error) { return b.Bytes(), nil })
}

// flood arms two pods of three containers and inspects them as PLEG does: 8 state changes.
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

// made are the artifacts that some registered collector or probe leaves.
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

// A check answers Unknown where there is nothing, and reads what some collector makes.
func TestEveryCheckOnNothing(t *testing.T) {
	for _, e := range kinds.Of(kinds.Check) {
		t.Run(e.Name, func(t *testing.T) {
			c, err := kinds.Decode[check.Check](kinds.Check, e.Name, specOf(t, e))
			if err != nil {
				t.Fatal(err)
			}
			if u, ok := c.(check.LoadUser); len(c.Reads()) == 0 && (!ok || len(u.NeedsLoads()) == 0) { // a load's summary comes with the load
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
				for _, cell := range []string{arm, bundle.Shared, "nobody"} {
					for _, scope := range []check.Scope{{Cell: cell, Phase: check.Fault}, {Cell: cell, Phase: phase}, {Cell: cell, Phase: phase, After: 1 << 40}} {
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
