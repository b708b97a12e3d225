package faults_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
)

func TestPartitionValidate(t *testing.T) {
	for spec, want := range map[string]string{
		`{"nodes":["control-plane"]}`:                    "",
		`{"component":"kubelet","atMost":"1m"}`:          "",
		`{"nodes":["control-plane"],"component":"etcd"}`: "",
		`{}`:                             "there is nothing to be cut off from (want nodes: [control-plane], or component: kube-apiserver)",
		`{"component":"kube-scheduler"}`: `component is "kube-scheduler" (want one of etcd, kube-apiserver, kubelet, which listen for other nodes)`,
		`{"component":"fleet-agent"}`:    `component is "fleet-agent" (want one of etcd, kube-apiserver, kubelet, which listen for other nodes)`,
		`{"component":"kubelet","nodes":["a"],"atMost":"-1s"}`: "atMost is -1s (want above 0)",
	} {
		got := ""
		if err := newFault(t, "partition", spec).(interface{ Validate() error }).Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
	if needs := newFault(t, "partition", `{"nodes":["b","a"]}`).Needs(); !needs.Network || needs.Exec {
		t.Errorf("it needs %+v", needs)
	}
}

// What a node is cut off from follows from the nodes and the component.
func TestPartitionCutsOff(t *testing.T) {
	const worker, worker2, plane = "relapse-x-worker", "relapse-x-worker2", "relapse-x-control-plane"
	for _, c := range []struct {
		spec string
		on   []string
		said string         // of the first node
		open map[string]int // what the first node still reaches: a node's port
		shut map[string]int
	}{
		{`{"nodes":["control-plane"]}`, []string{"worker"}, "no connection to port 10250 of " + plane + " opens, for 1h0m0s at most",
			map[string]int{worker2: 10250}, map[string]int{plane: 6443}},
		{`{"nodes":["control-plane","worker2"],"atMost":"2m"}`, []string{"worker"},
			"no connection to port 10250 of " + plane + ", port 10250 of " + worker2 + " opens, for 2m0s at most",
			nil, map[string]int{plane: 10250, worker2: 10250}},
		{`{"component":"kube-apiserver","atMost":"2h"}`, []string{"worker", "worker2"}, "no connection to port 6443 of " + plane + " opens, for 1h0m0s at most",
			map[string]int{plane: 10250, worker2: 10250}, map[string]int{plane: 6443}},
		{`{"component":"kubelet","nodes":["worker2"]}`, []string{"control-plane"}, "no connection to port 10250 of " + worker2 + " opens, for 1h0m0s at most",
			map[string]int{worker: 10250, worker2: 80}, map[string]int{worker2: 10250}},
	} {
		t.Run(c.spec, func(t *testing.T) {
			cl, target, said := powered(t, c.on...)
			target.Expires = time.Hour
			f := newFault(t, "partition", c.spec)
			if err := f.Inject(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			first := cl.Node(c.on[0])
			for want, ports := range map[bool]map[string]int{true: c.open, false: c.shut} {
				for node, port := range ports {
					if got, err := first.Reaches(t.Context(), cl.Node(node), port); err != nil || got != want {
						t.Errorf("port %d of %s is reached: %v, %v", port, node, got, err)
					}
				}
			}
			if want := event.FaultSeen + " " + first.Name() + " off: " + c.said; !strings.Contains(said()+"\n", want+"\n") {
				t.Errorf("it said\n%s\nwant %s", said(), want)
			}
			if err := newFault(t, "partition", c.spec).Recover(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			for _, n := range c.on {
				if ever, now := cl.Node(n).Cuts(); ever != 1 || now != 0 {
					t.Errorf("%s was cut off %d times, and %d are left", n, ever, now)
				}
			}
			if !strings.Contains(said(), event.FaultGone+" "+first.Name()+" off: connections to port ") {
				t.Errorf("it said\n%s", said())
			}
		})
	}
}

// A component that isn't there after the partition refuses connections, which shows that packets come through. Before
// the partition, it shows that nothing could be seen to be cut off.
func TestPartitionIsOverWhereConnectionsAreRefused(t *testing.T) {
	cl, target, said := powered(t, "worker")
	target.Expires = time.Minute
	f := newFault(t, "partition", `{"nodes":["control-plane"]}`)
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	cl.Node("worker").OnNetwork(func(_ context.Context, what string) error {
		if what == "reach" {
			return syscall.ECONNREFUSED
		}
		return nil
	})
	if err := f.Recover(t.Context(), target); err != nil || !strings.Contains(said(), "connections to port 10250 of relapse-x-control-plane open") {
		t.Errorf("lifting it: %v; it said %q", err, said())
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("time is up"))
	defer cancel()
	if err := f.Inject(ctx, target); err == nil || !strings.Contains(err.Error(), "before the partition: no connection to port 10250") {
		t.Errorf("injecting it where connections are refused: %v", err)
	}
}

// numb is a node whose cuts do nothing.
type numb struct{ cluster.Node }

func (n numb) Abilities() cluster.NodeAbilities {
	return cluster.NodeAbilities{Network: withoutCut{n.Node.Abilities().Network}}
}

type withoutCut struct{ cluster.Network }

func (withoutCut) Cut(context.Context, string, []cluster.Peer, time.Duration) error { return nil }

// A partition that nobody sees isn't injected, and what never opened can't be seen to be cut off.
func TestPartitionRefuses(t *testing.T) {
	for _, c := range []struct {
		spec, on string
		wrap     func(cluster.Node) cluster.Node
		off      string // a node without power
		want     string
	}{
		{`{"nodes":["db"]}`, "worker", nil, "", "off: relapse-x-worker: the cluster has no node db to be cut off from"},
		{`{"nodes":["worker"]}`, "worker", nil, "", "off: relapse-x-worker: it can't be cut off from itself (want other nodes, or another target)"},
		{`{"nodes":["worker2"],"component":"etcd"}`, "worker", nil, "", "off: relapse-x-worker: node relapse-x-worker2 runs no etcd to be cut off from"},
		{`{"component":"etcd"}`, "control-plane", nil, "", "off: relapse-x-control-plane: no other node runs etcd"},
		{`{"nodes":["control-plane"]}`, "worker", nil, "control-plane",
			"off: relapse-x-worker: before the partition: no connection to port 10250 of relapse-x-control-plane was seen to open: "},
		{`{"nodes":["control-plane"]}`, "worker", func(n cluster.Node) cluster.Node { return numb{n} }, "",
			"off: relapse-x-worker: in the partition: connections to port 10250 of relapse-x-control-plane still open: "},
		{`{"nodes":["control-plane"]}`, "worker", func(cluster.Node) cluster.Node { return powerless{} }, "", "node powerless can't be cut off from others"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			cl, target, said := powered(t, c.on)
			target.Expires = time.Minute
			if c.wrap != nil {
				target.Nodes[0] = c.wrap(target.Nodes[0])
			}
			if c.off != "" {
				if err := cl.Node(c.off).PowerOff(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("time is up"))
			defer cancel()
			err := newFault(t, "partition", c.spec).Inject(ctx, target)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || said() != "" {
				t.Errorf("%v, want %s; it said %q", err, c.want, said())
			}
		})
	}
}
