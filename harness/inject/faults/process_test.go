package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
)

func TestProcessValidate(t *testing.T) {
	for spec, want := range map[string]string{
		`{"action":"replace","component":"kubelet","build":2}`:   "",
		`{"action":"replace","component":"kubelet","build":1}`:   "build is 1, with the action replace (want 2 or more, with replace)",
		`{"action":"restart","component":"kubelet","build":2}`:   "build is 2, with the action restart (want 2 or more, with replace)",
		`{"action":"stop","component":"kubelet","atMost":"10m"}`: "",
		`{"action":"stop","component":"etcd"}`:                   "",
		`{"action":"kill","component":"etcd","ready":"299s"}`:    "",
		`{"action":"kill","component":"etcd","ready":"5m"}`:      "ready is 5m0s (want below 5m0s, in which all faults have to be lifted)",
		`{"action":"restart","component":"kube-proxy"}`:          "",
		`{"component":"etcd"}`:                                   `action is "" (want one of stop, kill, restart, replace)`,
		`{"action":"continue","component":"etcd"}`:               `action is "continue" (want one of stop, kill, restart, replace)`,
		`{"action":"kill","component":"etc"}`: `component is "etc" (want one of cloud-controller-manager, etcd, ` +
			"kube-apiserver, kube-controller-manager, kube-proxy, kube-scheduler, kubelet, relapse-lbaas)",
		`{"action":"stop","component":"etcd","atMost":"0s"}`:                    "atMost is 0s (want above 0)",
		`{"action":"restart","component":"etcd","ready":"-1s"}`:                 "ready is -1s (want above 0)",
		`{"action":"stop","component":"etcd","atMost":"70s"}`:                   "atMost is 1m10s (want below 1m10s, or the liveness probe of etcd restarts it)",
		`{"action":"kill","component":"kubelet","atMost":"10s"}`:                "atMost has no effect on the action kill (want it left out)",
		`{"action":"restart","component":"etcd","flags":{"log-level":"debug"}}`: "",
		`{"action":"restart","component":"kubelet","flags":{"v":4}}`:            "",
		`{"action":"restart","component":"kubelet","flags":{}}`:                 "flags are empty (want a flag, or flags left out)",
		`{"action":"kill","component":"kubelet","flags":{"v":4}}`:               "flags have no effect on the action kill (want restart, or flags left out)",
		`{"action":"restart","component":"kubelet","flags":{"--v":4}}`: `flags: "--v" is no flag's name (want it without ` +
			"dashes in front and without a value: v)",
		`{"action":"restart","component":"kube-proxy","flags":{"v":4}}`: "flags: kube-proxy takes none (want one of " +
			"cloud-controller-manager, etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet)",
		`{"action":"stop","component":"kubelet","ready":"10s"}`: "ready has no effect on the action stop (want it left out)",
	} {
		got := ""
		if err := newFault(t, "process", spec).(interface{ Validate() error }).Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

// A kill and a restart say before they act which process they end, and are injected once it is gone.
func TestProcessEnds(t *testing.T) {
	for _, c := range []struct {
		action, said string
		restarts     int
	}{
		{"kill", "the process 100 of kubelet was killed, and process 101 is in its place", 1},
		{"restart", "the process 100 of kubelet was ended for a restart, and process 101 is in its place", 0},
	} {
		t.Run(c.action, func(t *testing.T) {
			cl, target, said := powered(t, "worker", "worker2")
			target.Arm, target.Writer = "fixed", newWriter(t)
			f := newFault(t, "process", fmt.Sprintf(`{"action":%q,"component":"kubelet"}`, c.action))
			if r := f.(fault.Restarter); !r.Restarts("kubelet") || r.Restarts("etcd") {
				t.Error("it doesn't say that it makes the kubelet another process, and only the kubelet")
			}
			if err := errors.Join(f.Inject(t.Context(), target), f.Recover(t.Context(), target)); err != nil {
				t.Fatal(err)
			}
			for _, node := range []string{"relapse-x-worker", "relapse-x-worker2"} {
				id, err := cl.Component(node, "kubelet").Identity(t.Context(), false)
				if err != nil || id.PID != 101 || id.Restarts != c.restarts {
					t.Errorf("the kubelet of %s is %+v, %v", node, id, err)
				}
				for _, want := range []string{event.FaultSeen + " " + node + " off: " + c.said,
					event.FaultGone + " " + node + " off: the process 101 of kubelet answers on /healthz"} {
					if !strings.Contains(said()+"\n", want+"\n") {
						t.Errorf("it said\n%s\nwant %s", said(), want)
					}
				}
			}
			ends := endsOf(t, target.Writer)
			if len(ends) != 2 {
				t.Fatalf("it recorded %+v, want a process of each node", ends)
			}
			for _, e := range ends {
				if e.Fault != "off" || e.PID != 100 || e.StartTicks != 100 || e.Restarts != 0 ||
					e.Counted != (c.action == "kill") || e.ReadySeconds != 180 {
					t.Errorf("it recorded %+v", e)
				}
			}
		})
	}
}

// What was killed before can be killed again, and lifting what was never injected only asks whether it is ready.
func TestProcessKilledAgain(t *testing.T) {
	cl, target, _ := powered(t, "worker")
	f := newFault(t, "process", `{"action":"kill","component":"kubelet"}`)
	if err := f.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Inject(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	if id, err := cl.Component("worker", "kubelet").Identity(t.Context(), false); err != nil || id.Restarts != 2 {
		t.Errorf("it is %+v, %v", id, err)
	}
}

// A component that doesn't come back is a failure of the fault, but for the subject, of which it is an answer.
func TestProcessNotReadyAgain(t *testing.T) {
	cl, target, said := powered(t, "worker")
	cl.Component("worker", "kubelet").Answer("/healthz", func(string) ([]byte, error) { return nil, errors.New("500 not well") })
	f := newFault(t, "process", `{"action":"restart","component":"kubelet","ready":"1s"}`)
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	err := f.Recover(t.Context(), target)
	if want := "off: the kubelet of relapse-x-worker: it was not ready again within 1s: asking the kubelet of relapse-x-worker: " +
		"GET /healthz: 500 not well"; err == nil || err.Error() != want {
		t.Errorf("it ended with %v\nwant %s", err, want)
	}
	target.Subject = "kubelet"
	if err := f.Recover(t.Context(), target); err != nil {
		t.Errorf("the subject isn't ready, and the fault failed: %v", err)
	}
	if want := event.Warning + " relapse-x-worker off: kubelet, the subject, was not ready within 1s, and is judged as it is: "; !strings.Contains(said(), want) {
		t.Errorf("it said\n%s\nwant %s", said(), want)
	}
}

// A kubelet is asked through the API server. If that is the subject, its silence is an answer about it.
func TestProcessAskedThroughTheSubject(t *testing.T) {
	cl, target, said := powered(t, "worker")
	cl.Component("worker", "kubelet").Answer("/healthz", func(string) ([]byte, error) { return nil, errors.New("503 no proxy") })
	target.Subject = "kube-apiserver"
	f := newFault(t, "process", `{"action":"restart","component":"kubelet","ready":"1s"}`)
	if err := errors.Join(f.Inject(t.Context(), target), f.Recover(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	if want := event.Warning + " relapse-x-worker off: kubelet, which is asked through kube-apiserver, the subject, did not answer within 1s, and the subject is judged as it is: "; !strings.Contains(said(), want) {
		t.Errorf("it said\n%s\nwant %s", said(), want)
	}
	target.Cluster = fixedCluster{cl, gone{cl.Component("worker", "kubelet")}}
	if err := f.Recover(t.Context(), target); err == nil || !strings.Contains(err.Error(), "it was not ready again within 1s") {
		t.Errorf("of a kubelet that isn't there: %v", err)
	}
}

// gone is a component without a process.
type gone struct{ cluster.Component }

func (gone) Identity(context.Context, bool) (cluster.Identity, error) { return cluster.Identity{}, nil }

// fled is a component whose process ends of itself before a signal comes.
type fled struct{ cluster.Component }

func (fled) Signal(context.Context, os.Signal, cluster.Identity) error {
	return fmt.Errorf("killing it: %w", cluster.ErrNoProcess)
}

// A kill that found no process ended none, and its record is withdrawn.
func TestProcessThatHadEnded(t *testing.T) {
	cl, target, _ := powered(t, "worker")
	target.Arm, target.Writer = "fixed", newWriter(t)
	target.Cluster = fixedCluster{cl, fled{cl.Component("worker", "kubelet")}}
	err := newFault(t, "process", `{"action":"kill","component":"kubelet"}`).Inject(t.Context(), target)
	if want := "off: the kubelet of relapse-x-worker: killing it: no process"; err == nil || err.Error() != want {
		t.Errorf("it ended with %v, want %s", err, want)
	}
	ends := endsOf(t, target.Writer)
	if len(ends) != 2 || ends[0].Withdrawn || !ends[1].Withdrawn || ends[0].PID != ends[1].PID || ends[0].StartTicks != ends[1].StartTicks {
		t.Errorf("it recorded %+v, want an end that is withdrawn", ends)
	}
}

// An end that failed ended nothing while the process is still there: if it ends later, that is not the fault's doing.
func TestProcessThatCouldNotBeEnded(t *testing.T) {
	cl, target, _ := powered(t, "worker")
	target.Arm, target.Writer = "fixed", newWriter(t)
	target.Cluster = fixedCluster{cl, steady{cl.Component("worker", "kubelet"), cluster.ComponentAbilities{
		Restart: func(context.Context) error { return errors.New("the node doesn't answer") }}}}
	err := newFault(t, "process", `{"action":"restart","component":"kubelet"}`).Inject(t.Context(), target)
	if want := "off: the kubelet of relapse-x-worker: the node doesn't answer"; err == nil || err.Error() != want {
		t.Errorf("it ended with %v, want %s", err, want)
	}
	if ends := endsOf(t, target.Writer); len(ends) != 2 || ends[0].Withdrawn || !ends[1].Withdrawn {
		t.Errorf("it recorded %+v, want an end that is withdrawn", ends)
	}
}

// steady is a component that outlives what is done to it.
type steady struct {
	cluster.Component
	can cluster.ComponentAbilities
}

func (s steady) Abilities() cluster.ComponentAbilities { return s.can }
func (s steady) Identity(context.Context, bool) (cluster.Identity, error) {
	return cluster.Identity{PID: 7, StartTicks: 70}, nil
}

// fixedCluster has one component.
type fixedCluster struct {
	cluster.Cluster
	one cluster.Component
}

func (c fixedCluster) Components(string) []cluster.Component { return []cluster.Component{c.one} }

func TestProcessThatStays(t *testing.T) {
	cl, target, _ := powered(t, "worker")
	stays := func(context.Context) error { return nil }
	for _, c := range []struct {
		action string
		can    cluster.ComponentAbilities
		want   string
	}{
		{"restart", cluster.ComponentAbilities{}, "it can't be restarted here"},
		{"stop", cluster.ComponentAbilities{}, "it can't be stopped here, or seen to be stopped"},
		{"restart", cluster.ComponentAbilities{Restart: stays}, "process 7 was to end and was not seen to: "},
	} {
		target.Cluster = fixedCluster{cl, steady{cl.Components("kubelet")[1], c.can}}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("time is up"))
		err := newFault(t, "process", fmt.Sprintf(`{"action":%q,"component":"kubelet"}`, c.action)).Inject(ctx, target)
		cancel()
		if want := "off: the kubelet of relapse-x-worker: " + c.want; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", c.action, err, want)
		}
	}
	target.Cluster = cl
	if err := newFault(t, "process", `{"action":"kill","component":"etcd"}`).Inject(t.Context(), target); err == nil ||
		err.Error() != "off: node relapse-x-worker runs no etcd" {
		t.Errorf("of a node without it: %v", err)
	}
}

func newWriter(t *testing.T) *bundle.Writer {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func endsOf(t *testing.T, w *bundle.Writer) (all []bundle.EndedByFault) {
	t.Helper()
	for _, a := range w.View().Artifacts(bundle.Query{Kind: bundle.EndedProcess, Arm: "fixed"}) {
		r, err := w.View().Open(a)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(r)
		r.Close()
		var e bundle.EndedByFault
		if err := errors.Join(err, json.Unmarshal(raw, &e)); err != nil || a.Component != "kubelet" {
			t.Fatalf("%+v: %v", a, err)
		}
		all = append(all, e)
	}
	return all
}
