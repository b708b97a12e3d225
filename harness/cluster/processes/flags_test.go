package processes

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// A component runs with the flags that it was given last, after a restart that nobody asked for, too, and with its own
// once they are taken away.
func TestAComponentRunsWithFlags(t *testing.T) {
	s := supervise(t, map[string]string{"etcd": "while :; do sleep 0.1; done"})
	s.order(t, orderStart+"etcd")
	one := s.until(t, "etcd", runs)
	k := &Component{n: &Node{c: &Cluster{name: "relapse-x", home: s.home}}, name: "etcd", process: "etcd"}
	f := k.Abilities().Flags
	if f == nil {
		t.Fatal("etcd takes no flags")
	}
	own, err := f.Arguments(t.Context())
	if err != nil || len(own) != 2 {
		t.Fatalf("it runs with %q, %v", own, err)
	}
	for _, c := range []struct {
		flags map[string]string
		added []string
		died  bool
	}{
		{map[string]string{"log-level": "debug"}, []string{"--log-level=debug"}, false},
		{map[string]string{"log-level": "debug"}, []string{"--log-level=debug"}, true},
		{map[string]string{"b": "c d", "a": ""}, []string{"--a=", "--b=c d"}, false},
		{nil, nil, false},
		{nil, nil, false},
	} {
		if c.died {
			err = one.signal(syscall.SIGKILL)
		} else {
			err = f.RestartWith(t.Context(), c.flags)
		}
		if err != nil {
			t.Fatal(err)
		}
		starts := one.Starts + 1
		one = s.until(t, "etcd", func(st state) bool { return runs(st) && st.Starts == starts })
		if got, err := f.Arguments(t.Context()); err != nil || !slices.Equal(got, slices.Concat(own, c.added)) {
			t.Errorf("with %v it runs with %q, %v; want %q added", c.flags, got, err, c.added)
		}
		if got, err := f.Added(t.Context()); err != nil || !maps.Equal(got, c.flags) {
			t.Errorf("it says that it was given %v, %v; want %v", got, err, c.flags)
		}
	}
	if k := (&Component{n: k.n, name: proxyName("etcd"), process: proxyName("etcd")}); k.Abilities().Flags != nil {
		t.Error("the program of a seam takes flags")
	}
}

// Programs that would open a port of a fixed number are told not to, so that several clusters can be on one host. The
// scenario's own flags go before ours.
func TestProgramsOfOldVersionsOpenNoInsecurePort(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := cluster.NodeSpec{Name: "control-plane", Role: cluster.ControlPlane, Programs: map[string]string{}}
	for _, name := range component.Names(component.StaticPods) {
		spec.Programs[name] = program
	}
	for _, c := range []struct {
		version string
		asked   map[string]map[string]string
		want    string
	}{
		{"v1.19.16", nil, "kube-apiserver --insecure-port=0, kube-controller-manager --port=0, kube-scheduler --port=0"},
		{"v1.20.0", nil, "kube-controller-manager --port=0, kube-scheduler --port=0"},
		{"v1.22.17", nil, "kube-scheduler --port=0"},
		{"v1.22.17", map[string]map[string]string{"kube-scheduler": {"port": "10251"}}, "kube-scheduler --port=10251"},
		{"v1.23.17", nil, ""},
		{"v1.36.3", nil, ""},
	} {
		one := spec
		one.Args = c.asked
		home := t.TempDir()
		if _, err := layOut(home, "relapse-x", cluster.Topology{Version: c.version, Nodes: []cluster.NodeSpec{one}}, one); err != nil {
			t.Fatal(err)
		}
		var list []process
		if err := readJSON(filepath.Join(home, processesFile), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range list {
			for _, arg := range p.Args {
				if strings.HasPrefix(arg, "--port=") || strings.HasPrefix(arg, "--insecure-port=") {
					got = append(got, p.Name+" "+arg)
				}
			}
		}
		slices.Sort(got)
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("in a cluster of %s: %q, want %q", c.version, got, c.want)
		}
	}
}
