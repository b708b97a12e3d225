package collectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// A file that vanished before it was read to its end is a gap: from where it was read to the first line that is there
// again.
func TestLogsThatVanish(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps func(n *logNode) []func() error
		want  string // the gap's end: "" none, "line" the first line that is there again, "now" the look that missed it
	}{
		{"rotated away", func(n *logNode) []func() error {
			return []func() error{
				func() error { return n.add("0.log", 10, 20) },
				func() error {
					return errors.Join(n.add("0.log", 0, 10), n.remove("0.log"), n.add("0.log", 7200_000, 7200_010))
				},
			}
		}, "line"},
		{"gone for good", func(n *logNode) []func() error {
			return []func() error{func() error { return n.add("0.log", 10, 20) }, func() error { return n.remove("0.log") }}
		}, "now"},
		{"gone at the end", func(n *logNode) []func() error {
			return []func() error{func() error { return n.add("0.log", 10, 20) }, func() error { return nil },
				func() error { return nil },
				func() error { return n.remove("0.log") }}
		}, "now"},
		{"read to its end before", func(n *logNode) []func() error {
			return []func() error{
				func() error { return errors.Join(n.add("0.log", 10, 20), n.add("1.log", 20, 30)) },
				func() error { return n.remove("0.log") },
			}
		}, ""},
		{"back at once", func(n *logNode) []func() error {
			return []func() error{
				func() error { return n.add("0.log", 10, 20) },
				func() error { return n.rename("0.log", "0.hidden") },
				func() error { return n.rename("0.hidden", "0.log") },
			}
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := newLogNode(t)
			n.steps = tc.steps(n)
			if tc.name != "gone at the end" {
				n.steps = append(n.steps, func() error { return nil }, func() error { return nil }, func() error { return nil })
			}
			began := time.Now()
			a, lines := n.collect(often)
			if tc.want == "" {
				if len(a.Coverage.Gaps) > 0 {
					t.Errorf("it has the gaps %+v", a.Coverage.Gaps)
				}
				return
			}
			if len(a.Coverage.Gaps) != 1 {
				t.Fatalf("it has the gaps %+v, want one", a.Coverage.Gaps)
			}
			g := a.Coverage.Gaps[0]
			if want := "kube-system_kube-apiserver-cp_0a1b/kube-apiserver/0.log vanished before it was read to its end"; g.Reason != want {
				t.Errorf("the reason is %q, want %q", g.Reason, want)
			}
			if g.From.Before(began) || g.From.After(time.Now()) {
				t.Errorf("the gap begins at %s, want when the file was last read, since %s", g.From, began)
			}
			if again := lines[len(lines)-10].Time; tc.want == "line" && !g.To.Equal(again) || tc.want == "now" &&
				g.To.After(time.Now()) || !g.To.After(g.From) {
				t.Errorf("the gap ends at %s; the first line that is there again is of %s", g.To, again)
			}
		})
	}
}

// Streams don't speak for a time in which nothing could be read, and say why.
func TestLogsThatCantBeRead(t *testing.T) {
	for _, tc := range []struct{ name, said, want string }{ // said at one look after the other, the last again and again
		{"the node is off", "", "the node is off"},
		{"there is none", "E\n", "there is no log file of kube-apiserver"},
		{"no runtime's file", "U kube-apiserver a/0.log begins with no time of the container runtime\nE\n",
			"a/0.log begins with no time of the container runtime"},
		{"cut", "F kube-apiserver 2026-11-21T12:00:00Z 0 9 9 a/0.log\nx",
			`reading log files: the node printed what the script can't: "F kube-apiserver 2026-11-21T12:00:00Z 0 9 9 a/0.log" and what is left of it: unexpected EOF`},
		{"out of place", "F kube-apiserver 2026-11-21T12:00:00Z 5 9 0 a/0.log\n\nE\n",
			`reading log files: the node printed what the script can't: a/0.log from byte 5, and it had been read to byte 0`},
		{"shrunk", "F kube-apiserver 1999-11-21T12:00:00Z 0 4 4 a/0.log\nabcd\nE\n|F kube-apiserver 1999-11-21T12:00:00Z 4 0 0 a/0.log\n\nE\n", "a/0.log has 0 bytes, of which 4 were read"},
		{"nonsense", "sh: not found\n", `reading log files: the node printed what the script can't: "sh: not found"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
				if err != nil {
					t.Fatal(err)
				}
				c, err := kinds.Decode[capture.Collector](kinds.Collector, "componentLogs",
					json.RawMessage(`{"components":["kube-apiserver"]}`))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
				defer cancel()
				began := time.Now()
				n := &execNode{said: strings.Split(tc.said, "|")}
				if err := c.(capture.Streamer).Stream(ctx, capture.Target{Arm: "fixed", Node: n, Component: &component{}},
					w); err != nil {
					t.Fatal(err)
				}
				a := w.View().Artifacts(bundle.Query{})[0]
				want := fmt.Sprintf("[{%s %s %s}]", began.UTC(), began.UTC().Add(59*time.Second), tc.want)
				if got := fmt.Sprint(a.Coverage.Gaps); got != want || !a.Coverage.Last.Before(began.Add(time.Second)) {
					t.Errorf("it covers %+v\nwant the gap %s", a.Coverage, want)
				}
			})
		})
	}
}

// execNode prints what it is told to, or fails.
type execNode struct {
	node
	cluster.Execer
	said []string
}

func (n *execNode) Abilities() cluster.NodeAbilities { return cluster.NodeAbilities{Commands: n} }

func (n *execNode) Look(context.Context, []byte, ...string) ([]byte, error) {
	said := n.said[0]
	if len(n.said) > 1 {
		n.said = n.said[1:]
	}
	if said == "" {
		return nil, errors.New("the node is off")
	}
	return []byte(said), nil
}

func TestComponentLogsRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`{"components":[]}`:                   "components is empty (want at least one)",
		`{"components":["etcd","etcd"]}`:      `components has "etcd" twice`,
		`{"components":["*"]}`:                `components has "*" (want the name of a container: a-z, 0-9 and -)`,
		`{"components":["a; reboot"]}`:        `components has "a; reboot" (want the name of a container: a-z, 0-9 and -)`,
		`{"components":["../../etc/shadow"]}`: `components has "../../etc/shadow" (want the name of a container: a-z, 0-9 and -)`,
		`{"interval":"0s"}`:                   "interval is 0s (want above 0)",
	} {
		c, err := kinds.Decode[capture.Collector](kinds.Collector, "componentLogs", json.RawMessage(spec))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.(interface{ Validate() error }).Validate(); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", spec, err, want)
		}
	}
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := kinds.Decode[capture.Collector](kinds.Collector, "componentLogs", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = c.(capture.Streamer).Stream(t.Context(), capture.Target{Arm: "fixed", Node: node{}, Component: &component{}}, w)
	want := "reading files on worker: it runs no commands"
	if a := w.View().Artifacts(bundle.Query{}); err == nil || err.Error() != want || len(a) != 1 || a[0].Error != want {
		t.Errorf("got %v and %+v, want %s", err, a, want)
	}
}
