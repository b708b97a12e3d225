package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/docker"
)

// here is a node whose engine's client runs what it is told on this machine. Each exec is noted in a file, a line each.
func here(t *testing.T) (n *Node, execs func() []string) {
	t.Helper()
	dir := t.TempDir()
	const client = `#!/bin/sh
shift # exec
while :; do
	case $1 in
	--env) export "$2"; shift 2 ;;
	--interactive) shift ;;
	*) break ;;
	esac
done
shift # the node
echo "$@" | head -n 1 >>DIR/execs
if [ -e DIR/off ]; then echo "container is not running" >&2; exit 1; fi
exec "$@"
`
	path := filepath.Join(dir, "docker")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(client, "DIR", dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{p: &Provider{docker: &docker.Client{Path: path}}}
	n = &Node{c: c, name: "relapse-a-worker"}
	t.Cleanup(func() {
		for _, s := range c.shells.free[n.name] {
			s.end()
			<-s.over
		}
	})
	return n, func() []string {
		b, err := os.ReadFile(filepath.Join(dir, "execs"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

// Whatever a command prints, by whatever arguments, a look has it exactly, and all looks one after the other take one
// shell.
func TestLooksShareAShell(t *testing.T) {
	n, execs := here(t)
	for _, tc := range []struct {
		name  string
		stdin []byte
		argv  []string
		out   string
		err   string
	}{
		{name: "words", argv: []string{"echo", "two  blanks", "$HOME", "it's", `"\n"`, "a\nb"},
			out: "two  blanks $HOME it's \"\\n\" a\nb\n"},
		{name: "nothing", argv: []string{"true"}},
		{name: "no newline at the end", argv: []string{"printf", "abc"}, out: "abc"},
		{name: "newlines at the end", argv: []string{"printf", `a\n\n\n`}, out: "a\n\n\n"},
		{name: "bytes", argv: []string{"printf", `a\000b\377`}, out: "a\x00b\xff"},
		{name: "input", stdin: []byte(`{"a": "it's", "b": "%s \\n"}`), argv: []string{"cat"},
			out: `{"a": "it's", "b": "%s \\n"}`},
		{name: "no input", argv: []string{"cat"}},
		{name: "a script", argv: []string{"sh", "-c", "for x in \"$@\"; do\n echo \"<$x>\"\ndone", "sh", "a b", "c"},
			out: "<a b>\n<c>\n"},
		{name: "much", argv: []string{"sh", "-c", "yes | head -c 3000000"}, out: strings.Repeat("y\n", 1500000)},
		{name: "what looks like an end", argv: []string{"echo", "exit status 0"}, out: "exit status 0\n"},
		{name: "a failure", argv: []string{"sh", "-c", "echo some; echo why >&2; exit 3"}, out: "some\n",
			err: `executing ["sh" "-c" "echo some; echo why >&2; exit 3"] on node relapse-a-worker: exit status 3: why; it printed: some`},
		{name: "no such command", argv: []string{"no-such-command"}, err: "exit status 127: sh: "},
		{name: "one that ends its shell", argv: []string{"sh", "-c", "kill -KILL $$"}, err: "exit status 137"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := n.Look(t.Context(), tc.stdin, tc.argv...)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%v, want %q", err, tc.err)
			}
			if string(out) != tc.out {
				t.Errorf("it printed %.80q of %d bytes, want %.80q of %d", out, len(out), tc.out, len(tc.out))
			}
		})
	}
	if got := execs(); len(got) != 1 || got[0] != "sh" {
		t.Errorf("the engine executed %q, want one shell", got)
	}
}

// Looks at the same time don't wait for each other: each has a shell, and those for which there is none are executed. Each
// of these looks ends once all of them run.
func TestLooksAtTheSameTime(t *testing.T) {
	n, execs := here(t)
	const many = 2 * mostShells
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, script := t.TempDir(), `touch "$1/$2"; until [ "$(ls "$1" | wc -l)" -ge "$3" ]; do sleep 0.05; done; echo "$2"`
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			out, err := n.Look(ctx, nil, "sh", "-c", script, "sh", run, fmt.Sprint(i), fmt.Sprint(many))
			if err != nil || string(out) != fmt.Sprintln(i) {
				t.Errorf("look %d printed %q, %v", i, out, err)
			}
		})
	}
	all.Wait()
	if got := execs(); len(got) != many {
		t.Errorf("the engine executed %q, want %d commands", got, many)
	}
	if got := len(n.c.shells.free[n.name]); got != mostShells {
		t.Errorf("%d shells are left for the next looks, want %d", got, mostShells)
	}
}

// A look whose time is over ends with its command, and the next one has another shell.
func TestALookThatTakesTooLong(t *testing.T) {
	n, execs := here(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // on a busy machine its shell takes a while
	defer cancel()
	began := time.Now()
	if _, err := n.Look(ctx, nil, "sleep", "271.82"); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), `["sleep" "271.82"]`) {
		t.Errorf("it ended with %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it returned after %s", took)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // a process that was killed may end a moment later
		out, err := n.Look(t.Context(), nil, "pgrep", "-f", "^sleep 271.82")
		if err != nil { // pgrep's way of saying that there is none
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the command is still running as %q", out)
		}
	}
	if got := execs(); len(got) != 3 || !strings.HasPrefix(got[1], "sh -c for p in $(grep ") || got[2] != "sh" {
		t.Errorf("the engine executed %q, want a shell, what kills the command, and another shell", got)
	}
}

// A shell that broke is no failed look, and a node that is off is one, with the engine's reason. Once it is back looks
// have a shell again.
func TestLooksAtANodeThatGoesOff(t *testing.T) {
	n, execs := here(t)
	off := filepath.Join(filepath.Dir(n.c.p.docker.Path), "off")
	look := func() (string, error) {
		out, err := n.Look(t.Context(), nil, "echo", "alive")
		return string(out), err
	}
	if out, err := look(); err != nil || out != "alive\n" {
		t.Fatalf("%q, %v", out, err)
	}
	n.c.shells.free[n.name][0].end()
	if out, err := look(); err != nil || out != "alive\n" {
		t.Errorf("after its shell broke: %q, %v", out, err)
	}
	if err := os.WriteFile(off, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range n.c.shells.free[n.name] {
		s.end()
		<-s.over
	}
	for range mostShells + 1 {
		if out, err := look(); err == nil || !strings.Contains(err.Error(), "container is not running") {
			t.Errorf("while it is off: %q, %v", out, err)
		}
	}
	if err := os.Remove(off); err != nil {
		t.Fatal(err)
	}
	before := len(execs())
	for range 3 {
		if out, err := look(); err != nil || out != "alive\n" {
			t.Errorf("once it is back: %q, %v", out, err)
		}
	}
	if got := execs()[before:]; len(got) != 1 {
		t.Errorf("once it is back the engine executed %q, want one shell", got)
	}
}

// A component that is asked on its node's loopback, or which process it is, is asked by looks.
func TestComponentsAreLookedAt(t *testing.T) {
	n, execs := here(t)
	n.role = cluster.ControlPlane
	n.c.Machines = []*Node{n}
	dir := t.TempDir() // this machine may run one of its own, so that nothing is looked for here
	for name, script := range map[string]string{"curl": `echo "$@"`, "pgrep": "exit 1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for range 3 {
		k := n.c.Components("kube-scheduler")[0]
		body, err := k.Get(t.Context(), "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil ||
			!strings.HasPrefix(string(said), "--insecure --cert /dev/fd/") || !strings.HasSuffix(string(said), " https://127.0.0.1:10259/metrics\n") {
			t.Errorf("asked by curl %s, %v", said, err)
		}
		if id, err := k.Identity(t.Context(), false); err != nil || id.PID != 0 {
			t.Errorf("it is %+v, %v", id, err)
		}
	}
	if got := execs(); len(got) != 1 {
		t.Errorf("the engine executed %q, want one shell", got)
	}
}
