package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

const withV = `{"action":"restart","component":"kubelet","flags":{"v":4},"ready":"2s"}`

// A restart with flags ends two processes, and says of each before it acts: one for the flags, and one to take them.
func TestProcessFlags(t *testing.T) {
	cl, target, said := powered(t, "worker")
	target.Arm, target.Writer = "fixed", newWriter(t)
	kubelet := cl.Component("worker", "kubelet")
	f := newFault(t, "process", withV)
	if r := f.(fault.Restarter); !r.Restarts("kubelet") {
		t.Error("it doesn't say that it makes the kubelet another process")
	}
	if err := f.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds what the first did
		if err := f.Inject(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if args, err := kubelet.Arguments(t.Context()); err != nil || !slices.Equal(args, []string{"--v=4"}) || len(endsOf(t, target.Writer)) != 1 {
			t.Errorf("it runs with %q, %v, and recorded %+v", args, err, endsOf(t, target.Writer))
		}
	}
	for range 2 {
		if err := newFault(t, "process", withV).Recover(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if args, err := kubelet.Arguments(t.Context()); err != nil || len(args) != 0 {
			t.Errorf("lifted, it runs with %q, %v", args, err)
		}
	}
	ends := endsOf(t, target.Writer)
	if len(ends) != 2 || ends[0].PID != 100 || ends[1].PID != 101 || ends[0].Counted || ends[1].Withdrawn {
		t.Errorf("it recorded %+v, want the processes 100 and 101", ends)
	}
	for _, want := range []string{event.FaultSeen + " relapse-x-worker off: the process 100 of kubelet was ended for a restart, and process 101 runs with --v=4",
		event.FaultSeen + " relapse-x-worker off: the process 101 of kubelet runs with --v=4",
		event.FaultGone + " relapse-x-worker off: the process 102 of kubelet answers on /healthz"} {
		if !strings.Contains(said()+"\n", want+"\n") {
			t.Errorf("it said\n%s\nwant %s", said(), want)
		}
	}
}

// deaf is a component that restarts without the flags that it was given.
type deaf struct{ *clustertest.Component }

func (d deaf) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Restart: d.Restart, Flags: d}
}
func (d deaf) RestartWith(ctx context.Context, _ map[string]string) error { return d.Restart(ctx) }

func TestProcessFlagsThatHaveNoEffect(t *testing.T) {
	cl, target, _ := powered(t, "worker")
	kubelet := cl.Component("worker", "kubelet")
	target.Cluster = fixedCluster{cl, deaf{kubelet}}
	for _, c := range []struct{ name, want string }{
		{"not given", "no process was seen to run with --v=4: within 2s; the last probe: "},
		{"there already", "process 102 runs with --v=4 already: other flags are wanted"},
		{"not here", "it can't be restarted with other flags here"},
	} {
		switch c.name {
		case "there already": // as if it had been made with them
			if err := kubelet.RestartWith(t.Context(), map[string]string{"v": "4"}); err != nil {
				t.Fatal(err)
			}
			target.Cluster = fixedCluster{cl, own{kubelet}}
		case "not here":
			target.Cluster = fixedCluster{cl, steady{kubelet, cluster.ComponentAbilities{}}}
		}
		err := newFault(t, "process", withV).Inject(t.Context(), target)
		if want := "off: the kubelet of relapse-x-worker: " + c.want; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", c.name, err, want)
		}
	}
}

// own is a component whose flags are all its own.
type own struct{ *clustertest.Component }

func (o own) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Restart: o.Restart, Flags: o}
}
func (own) Added(context.Context) (map[string]string, error) { return nil, nil }

// A subject that ends at once with its flags gets its own back all the same.
func TestProcessFlagsOfOneThatEndsAtOnce(t *testing.T) {
	cl, target, _ := powered(t, "worker")
	target.Arm, target.Writer = "fixed", newWriter(t)
	kubelet := cl.Component("worker", "kubelet")
	if err := newFault(t, "process", withV).Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	r := restless(kubelet)
	target.Cluster = fixedCluster{cl, r}
	r.looks.Store(0)
	if err := newFault(t, "process", withV).Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if args, err := kubelet.Arguments(t.Context()); err != nil || len(args) != 0 {
		t.Errorf("lifted, it runs with %q, %v", args, err)
	}
	if ends := endsOf(t, target.Writer); len(ends) != 3 || ends[1].Withdrawn || !ends[2].Withdrawn || ends[1].PID != ends[2].PID {
		t.Errorf("it recorded %+v, want an end of its own that is withdrawn", ends)
	}
}

// replaced is a component whose process ends of itself right after the first look, and whose supervisor starts another
// one at once.
type replaced struct {
	*clustertest.Component
	looks *atomic.Int32
}

func restless(k *clustertest.Component) replaced { return replaced{k, new(atomic.Int32)} }

func (r replaced) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Restart: r.Restart, Flags: r.Component}
}

func (r replaced) Identity(ctx context.Context, digest bool) (cluster.Identity, error) {
	id, err := r.Component.Identity(ctx, digest)
	if r.looks.Add(1) == 1 {
		err = errors.Join(err, r.Component.Signal(ctx, os.Kill, cluster.Identity{}))
	}
	return id, err
}

// A process that its supervisor has started after another had ended of itself is not taken for that other: it lives, and
// the record of an end is withdrawn.
func TestProcessThatWasReplacedMeanwhile(t *testing.T) {
	for _, spec := range []string{`{"action":"kill","component":"kubelet"}`, `{"action":"restart","component":"kubelet"}`, withV} {
		cl, target, _ := powered(t, "worker")
		target.Arm, target.Writer = "fixed", newWriter(t)
		kubelet := cl.Component("worker", "kubelet")
		target.Cluster = fixedCluster{cl, restless(kubelet)}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("time is up"))
		err := newFault(t, "process", spec).Inject(ctx, target)
		cancel()
		if want := "off: the kubelet of relapse-x-worker: process 100 had ended of itself: no process"; fmt.Sprint(err) != want {
			t.Errorf("%s: it ended with %v, want %s", spec, err, want)
		}
		if id, err := kubelet.Identity(t.Context(), false); err != nil || id.PID != 101 || id.Restarts != 1 {
			t.Errorf("%s: it is %+v, %v; want the process that its supervisor started", spec, id, err)
		}
		if ends := endsOf(t, target.Writer); len(ends) != 2 || ends[0].Withdrawn || !ends[1].Withdrawn || ends[0].PID != 100 || ends[1].PID != 100 {
			t.Errorf("%s: it recorded %+v, want an end that is withdrawn", spec, ends)
		}
	}
}
