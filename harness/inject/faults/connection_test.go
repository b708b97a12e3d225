package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// proxiedNode is a control plane whose proxy before etcd answers as a test wants. The conformance suite has the real one.
type proxiedNode struct {
	*clustertest.Node

	mu     sync.Mutex
	probes []control.ConnectionProbe // in order; the last one again and again
	asked  []string                  // requests of ctl and what was sent with them
	state  control.ConnectionState
	seen   []event.Event
}

func newProxiedNode(t *testing.T, probes ...control.ConnectionProbe) *proxiedNode {
	t.Helper()
	c := clustertest.New("fault", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}})
	t.Cleanup(c.Close)
	n := &proxiedNode{Node: c.Node("control-plane"), probes: probes}
	n.Handle(control.Connections["etcd"].BinaryPath(), n.run)
	return n
}

func (n *proxiedNode) run(_ context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	in, err := io.ReadAll(stdin)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if argv[1] == "probe" {
		p := n.probes[0]
		n.probes = n.probes[min(1, len(n.probes)-1):]
		return json.Marshal(p)
	}
	action := argv[len(argv)-1]
	n.asked = append(n.asked, strings.TrimSpace(action+" "+string(in)))
	switch action {
	case "disarm":
		return []byte(`{"ids":[]}`), nil
	case "state":
		return json.Marshal(n.state)
	}
	return []byte(`{}`), nil
}

func (n *proxiedNode) target() fault.Target {
	return fault.Target{Run: "run", Name: "item", Arm: "fixed", Nodes: []cluster.Node{n.Node}, Expires: 5 * time.Minute,
		Events: event.NewStream(event.SinkFunc(func(e event.Event) { n.seen = append(n.seen, e) }))}
}

// wants fails unless one event of that type with that text was emitted, and no other.
func (n *proxiedNode) wants(t *testing.T, typ, message string) {
	t.Helper()
	if len(n.seen) != 1 || n.seen[0].Type != typ || n.seen[0].Message != message || n.seen[0].Arm != "fixed" {
		t.Errorf("it said %+v, want %s: %s", n.seen, typ, message)
	}
}

// probe is one with answers of as many milliseconds, through the proxy and past it.
func probe(through []int, direct ...int) control.ConnectionProbe {
	p := control.ConnectionProbe{Healthy: true}
	for _, ms := range through {
		p.Through = append(p.Through, control.Duration(time.Duration(ms)*time.Millisecond))
	}
	for _, ms := range direct {
		p.Direct = append(p.Direct, control.Duration(time.Duration(ms)*time.Millisecond))
	}
	return p
}

// mute is a probe that got no answer through the proxy, because of err.
func mute(err string) control.ConnectionProbe {
	p := probe(nil, 1, 1, 1)
	p.Healthy, p.Err = false, err
	return p
}

func TestLatencyIsMeasured(t *testing.T) {
	slow := probe([]int{870, 950, 1100}, 2, 3, 4)
	for name, short := range map[string]control.ConnectionProbe{
		"one answer came too early":     probe([]int{900, 600, 950}, 2, 2, 2),
		"etcd itself is slow":           probe([]int{900, 900, 900}, 400, 400, 400),
		"only one answer came":          {Healthy: true, Through: slow.Through[:1], Direct: slow.Direct},
		"etcd isn't well":               {Through: slow.Through, Direct: slow.Direct, Err: "503"},
		"the way past it has no answer": {Healthy: true, Through: slow.Through, DirectErr: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newProxiedNode(t, short, slow)
			if err := newFault(t, "latency", `{"connection":"etcd","latency":"1s","jitter":"100ms"}`).Inject(t.Context(), n.target()); err != nil {
				t.Fatal(err)
			}
			if len(n.probes) != 1 {
				t.Error("it took the first probe for the fault")
			}
			n.wants(t, event.FaultSeen, "item: etcd answers within 870ms to 1.1s through the proxy, within 2ms past it")
			if want := []string{`arm-latency {"id":"item","owner":"run","expires":"5m0s","latency":"1s","jitter":"100ms"}`}; !cmp.Equal(n.asked, want) {
				t.Errorf("it asked for %q, want %q", n.asked, want)
			}
		})
	}
}

// An etcd that isn't slow is a control: nothing is armed, and nothing is called seen.
func TestLatencyOfNothing(t *testing.T) {
	n := newProxiedNode(t, probe([]int{1, 1, 1}, 1, 1, 1))
	f := newFault(t, "latency", `{"connection":"etcd","latency":"0s"}`)
	if err := f.Inject(t.Context(), n.target()); err != nil || len(n.asked) != 0 {
		t.Errorf("it asked for %q, %v", n.asked, err)
	}
	n.wants(t, event.Note, "item: a latency of 0 injects nothing: etcd is as fast as before")
	if said := f.(fault.Modeller).Modelled(); len(said) != 0 {
		t.Errorf("it says that it imitates %q", said)
	}
}

func TestLatencyIsGone(t *testing.T) {
	n := newProxiedNode(t, probe([]int{52, 60, 60}, 1, 1, 1), probe([]int{51, 60, 60}, 2, 1, 1), mute("connection refused"), probe([]int{10, 300, 7}, 1, 2, 3))
	armed := time.Now()
	ended := armed.Add(7 * time.Minute)
	n.state.Arms = []control.ConnectionRecord{{Life: control.Life{Arm: control.Arm{ID: "item", Owner: "run"}, Fault: control.FaultLatency, ArmedAt: armed, EndedAt: &ended, Expired: true}}}
	if err := newFault(t, "latency", `{"connection":"etcd","latency":"1s"}`).Recover(t.Context(), n.target()); err != nil || len(n.probes) != 1 {
		t.Errorf("it left %d probes, %v", len(n.probes), err)
	}
	n.wants(t, event.FaultGone, "item: lifted by its own time limit after 7m0s; etcd answers within 7ms through the proxy, within 1ms past it")
}

func TestOutageIsSeen(t *testing.T) {
	const late, reset = "connecting to 127.0.0.1:12379: no answer within 3s", "connecting to 127.0.0.1:12379: connection reset by peer"
	both := mute(late)
	both.Direct, both.DirectErr = nil, "connection refused"
	fine := probe([]int{1, 1, 1}, 1, 1, 1)
	for _, tc := range []struct {
		spec   string
		probes []control.ConnectionProbe
		seen   string
		asked  string
	}{
		{`{"connection":"etcd"}`, []control.ConnectionProbe{fine, both, mute(reset), mute(late)}, late, `"expires":"1m6s","connections":"keep"}`},
		{`{"connection":"etcd","connections":"reset","atMost":"20s"}`, []control.ConnectionProbe{fine, both, mute(reset)}, reset, `"expires":"20s","connections":"reset"}`},
	} {
		n := newProxiedNode(t, tc.probes...)
		if err := newFault(t, "outage", tc.spec).Inject(t.Context(), n.target()); err != nil || len(n.probes) != 1 {
			t.Errorf("%s: it left %d probes, %v", tc.spec, len(n.probes), err)
		}
		n.wants(t, event.FaultSeen, "item: etcd doesn't answer through the proxy ("+tc.seen+"), and within 1ms past it")
		if len(n.asked) != 1 || !strings.HasPrefix(n.asked[0], "arm-outage ") || !strings.HasSuffix(n.asked[0], tc.asked) {
			t.Errorf("%s: it asked for %q", tc.spec, n.asked)
		}
	}
}

// A proxy that knows nothing of what it was armed with was started anew, and the fault ended then. Another process has
// armed nothing, and can't tell.
func TestProxyThatWasStartedAnew(t *testing.T) {
	fine := probe([]int{1, 1, 1}, 1, 1, 1)
	n := newProxiedNode(t, fine, mute("no answer within 3s"), fine)
	f, target := newFault(t, "outage", `{"connection":"etcd"}`), n.target()
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	want := "item: the proxy of fault-control-plane was started anew while the fault was in force, which ended it"
	if err := f.Recover(t.Context(), target); err == nil || err.Error() != want {
		t.Errorf("lifting it: %v, want %s", err, want)
	}
	if err := newFault(t, "outage", `{"connection":"etcd"}`).Recover(t.Context(), target); err != nil {
		t.Errorf("lifted by another: %v", err)
	}
}

func TestOutageIsGone(t *testing.T) {
	n := newProxiedNode(t, mute("no answer within 3s"), probe([]int{1, 2, 1}, 1, 1, 1))
	if err := newFault(t, "outage", `{"connection":"etcd"}`).Recover(t.Context(), n.target()); err != nil || len(n.probes) != 1 {
		t.Errorf("it left %d probes, %v", len(n.probes), err)
	}
	n.wants(t, event.FaultGone, "item: not armed; etcd answers within 2ms through the proxy")
}

// 64k bytes per second let 32000 bytes through in half a second.
func TestBandwidthIsMeasured(t *testing.T) {
	broken := mute("connection refused")
	for name, short := range map[string]control.ConnectionProbe{
		"it came too early":             probe([]int{390}, 2),
		"etcd itself is slow":           probe([]int{500}, 260),
		"it didn't come":                broken,
		"the way past it has no answer": {Healthy: true, Through: probe([]int{500}).Through, DirectErr: "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newProxiedNode(t, short, probe([]int{480}, 3))
			if err := newFault(t, "bandwidth", `{"connection":"etcd","rate":"64k"}`).Inject(t.Context(), n.target()); err != nil {
				t.Fatal(err)
			}
			if len(n.probes) != 1 {
				t.Error("it took the first probe for the fault")
			}
			n.wants(t, event.FaultSeen, "item: 32000 bytes of etcd take 480ms through the proxy, 3ms past it")
			if want := []string{`arm-bandwidth {"id":"item","owner":"run","expires":"5m0s","rate":64000}`}; !cmp.Equal(n.asked, want) {
				t.Errorf("it asked for %q, want %q", n.asked, want)
			}
		})
	}
	n := newProxiedNode(t, probe([]int{480}, 3), probe([]int{249}, 3))
	if err := newFault(t, "bandwidth", `{"connection":"etcd","rate":"64k"}`).Recover(t.Context(), n.target()); err != nil || len(n.probes) != 1 {
		t.Errorf("it left %d probes, %v", len(n.probes), err)
	}
	n.wants(t, event.FaultGone, "item: not armed; 32000 bytes of etcd take 249ms through the proxy, 3ms past it")
}

func TestConnectionFaultsValidate(t *testing.T) {
	for _, tc := range []struct{ kind, spec, want string }{
		{"latency", `{"connection":"etcd","latency":"1s","jitter":"500ms","correlation":"0"}`, ""},
		{"latency", `{"connection":"etcd","latency":"0s"}`, ""},
		{"latency", `{"connection":"etcd"}`, `latency is "" (want a duration with its unit: 250ms, 1.5s)`},
		{"latency", `{"connection":"etcd","latency":"5"}`, `latency is "5" (want a duration with its unit: 250ms, 1.5s)`},
		{"latency", `{"connection":"etcd","latency":"1s","jitter":"5"}`, `jitter is "5" (want a duration with its unit: 250ms, 1.5s)`},
		{"latency", `{"connection":"etcd","latency":"-1s"}`, "latency is -1s (want 0s, or whole milliseconds from 10ms on: less can't be told from none)"},
		{"latency", `{"connection":"etcd","latency":"9ms"}`, "latency is 9ms (want 0s, or whole milliseconds from 10ms on: less can't be told from none)"},
		{"latency", `{"connection":"etcd","latency":"1500us"}`, "latency is 1.5ms (want"},
		{"latency", `{"connection":"etcd","latency":"1s","jitter":"501ms"}`, "jitter is 501ms (want whole milliseconds, at most half of the latency of 1s: with more an answer could come as if undelayed)"},
		{"latency", `{"connection":"etcd","latency":"9s","jitter":"2s"}`, "latency and jitter are 11s together (want at most 10s)"},
		{"latency", `{"connection":"etcd","latency":"1s","correlation":"25"}`, `correlation is "25": the proxy draws each delay by itself and knows none (leave it out)`},
		{"latency", `{"connection":"etcd","latency":"1s","correlation":"much"}`, `correlation is "much": the proxy draws`},
		{"latency", `{"connection":"etcd","latency":"1s","reorder":{"reorder":"25","gap":1}}`, "reorder is set: the proxy stands in a stream of bytes, which has an order (leave it out)"},
		{"outage", `{"connection":"etcd"}`, ""},
		{"outage", `{"connection":"etcd","connections":"reset","atMost":"69s"}`, ""},
		{"latency", `{"latency":"1s"}`, `connection is "" (want one of apiserver-webhook, `},
		{"bandwidth", `{"connection":"etcd","rate":"64k"}`, ""},
		{"bandwidth", `{"connection":"etcd","rate":"1M"}`, ""},
		{"bandwidth", `{"rate":"1M"}`, `connection is "" (want one of apiserver-webhook, `},
		{"bandwidth", `{"connection":"etcd"}`, `rate is "" (want whole thousands of bytes per second, from 1k to 1M: more can't be told from no limit)`},
		{"bandwidth", `{"connection":"etcd","rate":"1500"}`, `rate is "1500" (want`},
		{"bandwidth", `{"connection":"etcd","rate":"2M"}`, `rate is "2M" (want`},
		{"bandwidth", `{"connection":"etcd","rate":"500m"}`, `rate is "500m" (want`},
		{"outage", `{"connection":"dns"}`, `connection is "dns" (want one of apiserver-webhook, `},
		{"outage", `{"connection":"etcd","connections":"lost"}`, `connections is "lost" (want keep or reset)`},
		{"outage", `{"connection":"etcd","atMost":"70s"}`, "atMost is 1m10s (want above 0 and below 1m10s, or kube-apiserver's liveness probe restarts it)"},
		{"outage", `{"connection":"etcd","atMost":"0s"}`, "atMost is 0s (want above 0 and below 1m10s"},
	} {
		err := newFault(t, tc.kind, tc.spec).(interface{ Validate() error }).Validate()
		if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && !strings.Contains(got, tc.want) {
			t.Errorf("%s %s: %s, want %q", tc.kind, tc.spec, got, tc.want)
		}
	}
}

func TestConnectionFaultsNeed(t *testing.T) {
	for kind, spec := range map[string]string{"latency": `{"connection":"etcd","latency":"1s"}`, "outage": `{"connection":"etcd"}`,
		"bandwidth": `{"connection":"etcd","rate":"64k"}`} {
		f := newFault(t, kind, spec)
		if d := cmp.Diff(fault.Needs{Seams: []string{"etcd"}}, f.Needs()); d != "" {
			t.Errorf("%s needs (-want +got):\n%s", kind, d)
		}
		if said := f.(fault.Modeller).Modelled(); len(said) != 1 || !strings.Contains(said[0], "a proxy") {
			t.Errorf("%s says that it imitates %q", kind, said)
		}
	}
}

// Only a component that elects a leader can lose its lease, and a kubelet isn't one. A webhook has to be there to be cut off.
func TestWhatAConnectionsClientLoses(t *testing.T) {
	for of, want := range map[string]string{"kubelet-apiserver": "", "kube-proxy-apiserver": "", "apiserver-webhook": "", "etcd": "",
		"scheduler-apiserver": "kube-scheduler"} {
		f := newFault(t, "outage", `{"connection":"`+of+`","atMost":"1m"}`)
		if got := f.(fault.LeaseLoser).LosesLease(); got != want {
			t.Errorf("an outage of %s takes the lease of %q, want %q", of, got, want)
		}
		if got := f.Needs().Webhook; got != (of == "apiserver-webhook") {
			t.Errorf("%s needs a webhook: %v", of, got)
		}
	}
}

// newFault makes a fault from a spec.
func newFault(t *testing.T, kind, spec string) fault.Fault {
	t.Helper()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, kind, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestUnknownKind(t *testing.T) {
	want := `unknown fault kind "earthquake": want one of [`
	if _, err := kinds.Decode[fault.Fault](kinds.Fault, "earthquake", nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
