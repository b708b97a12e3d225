package collectors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// logNode is a node whose /var/log/pods is a folder of the test's, where what is to be executed runs for real.
type logNode struct {
	node
	cluster.Execer
	t        *testing.T
	root     string
	steps    []func() error // before each look one; its error is the node's. After the last, done is called
	done     func()
	pad      string // after each line's number
	programs string // a folder of programs that come before the machine's, if set
}

func (n *logNode) Abilities() cluster.NodeAbilities { return cluster.NodeAbilities{Commands: n} }

func (n *logNode) Look(ctx context.Context, _ []byte, argv ...string) ([]byte, error) {
	if len(n.steps) == 0 {
		n.done()
		return nil, errors.New("it is over")
	}
	step := n.steps[0]
	n.steps = n.steps[1:]
	if err := step(); errors.Is(err, errBusy) {
		return nil, errBusy
	} else if err != nil {
		n.t.Error(err)
	}
	i := slices.Index(argv, "/var/log/pods")
	if i < 0 {
		n.t.Errorf("it looks elsewhere than in /var/log/pods: %q", argv)
		return nil, errors.New("not here")
	}
	argv[i] = n.root
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if n.programs != "" {
		cmd.Env = append(os.Environ(), "PATH="+n.programs+":"+os.Getenv("PATH"))
	}
	out, err := cmd.Output()
	if said.Len() > 0 {
		n.t.Errorf("it complains: %s", said.String())
	}
	return out, err
}

// errBusy is what a step returns for a command that fails.
var errBusy = errors.New("the engine is busy")

// path is a log file of the API server's pod.
func (n *logNode) path(file string) string {
	return filepath.Join(n.root, "kube-system_kube-apiserver-cp_0a1b", "kube-apiserver", file)
}

// t0 is before all lines of a test; line n is n milliseconds later.
var t0 = time.Now().Add(-time.Hour).UTC().Truncate(time.Second)

func cri(n int, rest string) string {
	return t0.Add(time.Duration(n)*time.Millisecond+time.Nanosecond).Format(time.RFC3339Nano) + " " + rest
}

// add appends lines to a file, each with its number as the text.
func (n *logNode) add(file string, from, to int) error {
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(cri(i, fmt.Sprintf("stderr F line %d%s\n", i, n.pad)))
	}
	return n.put(file, b.String())
}

func (n *logNode) put(file, text string) error {
	f, err := os.OpenFile(n.path(file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// compress does it as the kubelet does: beside it, under another name at first.
func (n *logNode) compress(file string) error {
	b, err := os.ReadFile(n.path(file))
	if err != nil {
		return err
	}
	cmd := exec.Command("gzip", "-c")
	cmd.Stdin = bytes.NewReader(b)
	z, err := cmd.Output()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(n.path(file+".tmp"), z, 0o640), os.Rename(n.path(file+".tmp"), n.path(file+".gz")),
		os.Remove(n.path(file)))
}

func (n *logNode) rename(from, to string) error { return os.Rename(n.path(from), n.path(to)) }
func (n *logNode) remove(file string) error     { return os.Remove(n.path(file)) }

func newLogNode(t *testing.T) *logNode {
	t.Helper()
	n := &logNode{t: t, root: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(n.path("0.log")), 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

// collect runs the collector for the node's steps and returns the only artifact with its lines.
func (n *logNode) collect(spec string) (bundle.Artifact, []bundle.LogLine) {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	defer cancel()
	n.done = cancel
	return collectLogs(ctx, n.t, n, spec)
}

// collectLogs runs the collector on a node until ctx ends.
func collectLogs(ctx context.Context, t *testing.T, n cluster.Node, spec string) (bundle.Artifact, []bundle.LogLine) {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := kinds.Decode[capture.Collector](kinds.Collector, "componentLogs", json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(capture.Streamer).Stream(ctx, capture.Target{Arm: "fixed", Node: n, Component: &component{}},
		w); err != nil {
		t.Fatal(err)
	}
	all := w.View().Artifacts(bundle.Query{Kind: bundle.Logs, Component: "kube-apiserver"})
	if len(all) != 1 {
		t.Fatalf("it left %d artifacts: %+v", len(all), all)
	}
	r, err := w.View().Open(all[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var lines []bundle.LogLine
	for d := json.NewDecoder(r); ; {
		var l bundle.LogLine
		if err := d.Decode(&l); err == io.EOF {
			return all[0], lines
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
}

const often = `{"components":["kube-apiserver"],"interval":"1ms"}`

// numbered wants lines from..to, each once, in order, and no gap.
func numbered(t *testing.T, a bundle.Artifact, lines []bundle.LogLine, from, to int) {
	t.Helper()
	for i, l := range lines {
		want := bundle.LogLine{Time: t0.Add(time.Duration(from+i)*time.Millisecond + time.Nanosecond), File: l.File,
			Text: fmt.Sprintf("line %d", from+i)}
		if l.Text = strings.TrimRight(l.Text, "."); l != want {
			t.Fatalf("line %d of %d is %+v, want %+v", i, len(lines), l, want)
		}
	}
	if len(lines) != to-from {
		t.Errorf("%d lines, want %d", len(lines), to-from)
	}
	if len(a.Coverage.Gaps) > 0 {
		t.Errorf("it has the gaps %+v", a.Coverage.Gaps)
	}
}

// folderNode is a node that runs no commands and has its log files here.
type folderNode struct {
	node
	root string
}

func (n *folderNode) Abilities() cluster.NodeAbilities {
	return cluster.NodeAbilities{LogFolder: func() string { return n.root }}
}

func TestLogsInAFolderHere(t *testing.T) {
	n := newLogNode(t)
	if err := errors.Join(n.add("0.log", 0, 10), n.add("1.log", 10, 20)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	a, lines := collectLogs(ctx, t, &folderNode{root: n.root}, often)
	numbered(t, a, lines, 0, 20)
}
