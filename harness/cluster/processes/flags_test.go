package processes

import (
	"maps"
	"slices"
	"syscall"
	"testing"
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
