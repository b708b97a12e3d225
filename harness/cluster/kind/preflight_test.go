package kind

import (
	"errors"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/internal/host"
)

// What fails is an error with the next step, what may not work later is a warning, and all else goes unsaid.
func TestProblems(t *testing.T) {
	ok := host.Check{Name: "memory", Status: host.OK, Seen: "8.0 GiB available"}
	warn := host.Check{Name: "disk of the cache", Status: host.Warn, Seen: "5.0 GiB free", Wanted: "10.0 GiB free",
		Remedy: "relapse cache prune"}
	none := host.Check{Name: "engine", Status: host.Fail, Seen: "no docker\ncommand", Wanted: "a daemon",
		Remedy: "install Docker"}
	bounded := host.Check{Name: "privileged nodes", Status: host.Fail, Seen: "bounded", Wanted: "one that runs",
		Remedy: "relapse doctor --fix"}
	for _, tc := range []struct {
		name            string
		checks          []host.Check
		err, hint, said string
	}{
		{"all is well", []host.Check{ok}, "", "", ""},
		{"a warning", []host.Check{ok, warn}, "", "",
			"disk of the cache: 5.0 GiB free, wanted 10.0 GiB free; relapse cache prune"},
		{"no engine", []host.Check{none, ok},
			"this host can't run it yet:\n  engine: no docker command, wanted a daemon; install Docker",
			"relapse doctor shows all checks", ""},
		{"two", []host.Check{none, bounded},
			"this host can't run it yet:\n  engine: no docker command, wanted a daemon; install Docker\n" +
				"  privileged nodes: bounded, wanted one that runs; relapse doctor --fix", "relapse doctor --fix mends", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var said string
			p := &Provider{events: event.NewStream(event.SinkFunc(func(e event.Event) { said += e.Message }))}
			err := p.problems(tc.checks)
			var unfit *cluster.HostError
			if tc.err == "" {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.As(err, &unfit) || err.Error() != tc.err || !strings.HasPrefix(unfit.Hint, tc.hint) {
				t.Errorf("%v, want %s with the hint %s", err, tc.err, tc.hint)
			}
			if said != tc.said {
				t.Errorf("it says %q, want %q", said, tc.said)
			}
		})
	}
}

// A node is started from the image that it names, else from the one that was prepared for its version.
func TestNodesWithoutAnImage(t *testing.T) {
	p, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p.images["v1.34.4"] = host.NodeImage{Ref: "relapse/node:prepared"}
	nodes := []cluster.NodeSpec{{Name: "control-plane"}, {Name: "worker", Image: "given"}}
	for version, want := range map[string]string{"v1.34.4": "relapse/node:prepared given", "v1.25.3": " given"} {
		got := p.imaged(cluster.Topology{Version: version, Nodes: nodes}).Nodes
		if has := got[0].Image + " " + got[1].Image; has != want {
			t.Errorf("%s: the nodes are started from %q, want %q", version, has, want)
		}
	}
	if nodes[0].Image != "" {
		t.Error("the caller's topology was changed")
	}
}
