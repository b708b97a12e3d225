package conformance_test

import (
	"crypto/x509"
	"encoding/pem"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	faults.add(faultCase{name: "led", seams: []string{seams.Webhooks}, lay: func(t *testing.T, w *world) sight {
		layWayProxy(t, w)
		return layWebhooks(t, w)
	}}, "webhook")
}

// newWayProxy starts a proxy that leads nowhere yet.
func newWayProxy(t *testing.T, dir string) *serverSide {
	t.Helper()
	bin, err := connectionProxy()
	if err != nil {
		t.Fatal(err)
	}
	e := &serverSide{of: control.Connections[seams.Webhooks], dir: dir, bin: bin}
	e.startAnew(t)
	return e
}

// startAnew starts the proxy, and ends the one that runs.
func (e *serverSide) startAnew(t *testing.T) {
	t.Helper()
	if e.serving != nil {
		e.serving.Process.Kill()
		e.serving.Wait() // the error is that it was killed
	}
	e.serving = exec.Command(e.bin, "serve", "--connection", e.of.Name, "--control", e.path("sock"))
	if err := controltest.Start(t, e.serving); err != nil {
		t.Fatal(err)
	}
}

// layWayProxy gives the world's control plane a proxy that leads nowhere yet.
func layWayProxy(t *testing.T, w *world) *serverSide {
	e := newWayProxy(t, w.nodes[0].dir)
	w.Node("control-plane").Handle(e.of.BinaryPath(), e.run)
	return e
}

// layWays gives each worker a proxy that leads to an endpoint, as the fault webhook makes it, and a second one.
func layWays(t *testing.T, w *world) servers {
	t.Helper()
	all := servers{}
	for _, n := range w.nodes {
		e := newWayProxy(t, n.dir)
		for _, id := range []string{"other", "main"} {
			record, err := webhook.NewRecord(nil, arm, n.Name())
			if err != nil {
				t.Fatal(err)
			}
			s, err := webhook.Start("127.0.0.1", arm, record)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			ca := s.Client("").CABundle
			way, err := e.control().OpenWay(t.Context(), control.Way{Server: s.Address(), CA: string(ca),
				Arm: control.Arm{ID: id, Owner: "run", Expires: control.Duration(time.Hour)}})
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(ca)
			own, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			e.trust(t, own, nil)
			e.address = way.Listen
		}
		all[n] = e
		n.handle(e.of.BinaryPath(), e.run)
	}
	return all
}

// webhookFault is the fault that the suite tries, and a target that it has for one node.
func webhookFault(t *testing.T, w *world, limit time.Duration) (fault.Fault, fault.Target, *events) {
	t.Helper()
	e, _ := kinds.Lookup(kinds.Fault, "webhook")
	f, err := kinds.Decode[fault.Fault](kinds.Fault, e.Name, []byte(e.Tested))
	if err != nil {
		t.Fatal(err)
	}
	seen := &events{}
	return f, fault.Target{Run: "run", Name: "hook", Arm: arm, Cluster: w.Cluster, Nodes: []cluster.Node{w.nodes[0].Node},
		Expires: limit, Events: event.NewStream(seen), Seams: []string{seams.Webhooks}}, seen
}

// A webhook of a trial with the seam is called through the proxy, which a fault on the connection acts in. With the webhook the
// way ends: lifted, or by its time limit, which an event says. A fault that is lifted later says that there was nothing to
// measure any more, and one that comes too late why it can't be.
func TestAWebhookIsLedThroughItsSeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy := layWayProxy(t, w)
	layWebhooks(t, w)
	ways := func() (open, all []control.WayRecord) {
		t.Helper()
		s, err := proxy.control().State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(slices.Clone(s.Ways), func(w control.WayRecord) bool { return !w.Armed() }), s.Ways
	}
	slow := func() (fault.Fault, fault.Target, *events) {
		f, err := kinds.Decode[fault.Fault](kinds.Fault, "latency", []byte(`{"connection":"apiserver-webhook","latency":"300ms"}`))
		if err != nil {
			t.Fatal(err)
		}
		seen := &events{}
		return f, fault.Target{Run: "run", Name: "slow", Arm: arm, Cluster: w.Cluster, Expires: time.Minute, Events: event.NewStream(seen),
			Nodes: []cluster.Node{w.Node("control-plane")}, Seams: []string{seams.Webhooks}}, seen
	}

	hook, target, _ := webhookFault(t, w, time.Minute)
	if err := hook.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	open, _ := ways()
	if len(open) != 1 || open[0].ID != "hook for conformance-worker" || open[0].Owner != "run" {
		t.Fatalf("the open ways are %+v", open)
	}
	other, _, _ := webhookFault(t, w, time.Minute)
	if err := other.Inject(t.Context(), target); err != nil {
		t.Errorf("injected again, from another process: %v", err)
	}
	if again, all := ways(); len(again) != 1 || len(all) != 2 || again[0].Server == open[0].Server {
		t.Errorf("the ways are %+v", all)
	}
	if err := hook.Inject(t.Context(), target); err == nil || !strings.Contains(err.Error(), "is armed, with parameters of its own") {
		t.Errorf("the first one takes the way of the other: %v", err)
	}
	late, there, seen := slow()
	if err := late.Inject(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if got := seen.message(event.FaultSeen); !strings.Contains(got, "slow: the webhook answers within 3") {
		t.Errorf("it said %q", got)
	}
	if err := other.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if err := hook.Recover(t.Context(), target); err != nil {
		t.Errorf("lifted by the one that no longer had it: %v", err)
	}
	if open, _ := ways(); len(open) != 0 {
		t.Errorf("the webhook is lifted, and open is %+v", open)
	}
	if err := late.Recover(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if got := seen.message(event.FaultGone); !strings.HasPrefix(got, "slow: lifted; nothing was measured, because the proxy leads to no webhook: that of hook for conformance-worker was removed at ") {
		t.Errorf("lifted after the webhook, it said %q", got)
	}

	brief, target, said := webhookFault(t, w, 8*time.Second)
	if err := brief.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	controltest.Eventually(t, "its end", func() string {
		if open, all := ways(); len(open) > 0 || len(all) != 3 || said.message(event.Note) == "" {
			return "there is a way yet, or nothing was said"
		}
		return ""
	})
	want := "hook: the webhook ended by its time limit; its registration is removed; the proxy of apiserver-webhook leads nowhere for it any more"
	if got := said.message(event.Note); got != want {
		t.Errorf("it said %q, want %q", got, want)
	}
	late, there, _ = slow()
	if err := late.Inject(t.Context(), there); err == nil || !strings.Contains(err.Error(), "slow on conformance-control-plane armed and not measured: the proxy leads to no webhook: that of hook for conformance-worker was removed at ") {
		t.Errorf("without a webhook: %v", err)
	}
	if err := late.Recover(t.Context(), there); err != nil {
		t.Error(err)
	}

	lost, target, _ := webhookFault(t, w, time.Minute)
	if err := lost.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	proxy.startAnew(t)
	want = "hook: the webhook for conformance-worker: the proxy of apiserver-webhook was started anew while the webhook was called through it, which ended that"
	if err := lost.Recover(t.Context(), target); err == nil || err.Error() != want {
		t.Errorf("after the proxy was started anew: %v, want %s", err, want)
	}
	if err := lost.Recover(t.Context(), target); err != nil {
		t.Errorf("lifted once more: %v", err)
	}
}
