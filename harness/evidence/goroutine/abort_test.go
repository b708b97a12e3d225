package goroutine_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// aborted is what a real server of the incident listener-busy-wait printed on SIGABRT, with the runtime's own frames.
func aborted(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open("testdata/abort-" + name + ".txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// asLogged is the text as a node's runtime writes it to the log file of a container, with one line in two parts.
func asLogged(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		at := fmt.Sprintf("2026-11-22T17:21:40.%09dZ stderr ", i)
		if i == 40 && len(line) > 4 {
			fmt.Fprintf(&b, "%sP %s\n", at, line[:4])
			line = line[4:]
		}
		fmt.Fprintf(&b, "%sF %s\n", at, line)
	}
	return b.String()
}

// What an aborted server leaves names the one goroutine that waits for nothing first, among more than 200, also in the
// log file of its pod.
func TestTheGoroutineThatSpinsIsNamedFirstInWhatAnAbortLeaves(t *testing.T) {
	spins := goroutine.Match{Func: "dynamiclistener.(*listener).WrapExpiration.func1", Depth: 2}
	for _, state := range []string{"running", "runnable"} {
		for as, text := range map[string]string{"printed": aborted(t, state), "logged": asLogged(aborted(t, state))} {
			d, err := goroutine.Read(bytes.NewReader([]byte(text)))
			if err != nil {
				t.Fatal(err)
			}
			first := d.Ranked()[0]
			if d.Total < 200 || d.Truncated || first.State != state || first.Count != 1 || !spins.Chooses(first) {
				t.Errorf("%s, %s: of %d goroutines (truncated: %v) the first is %+v", state, as, d.Total, d.Truncated, first)
			}
			if n := len(d.Groups); d.Ranked()[n-1].Count < 150 {
				t.Errorf("%s, %s: the last is %+v, want the idle workers", state, as, d.Ranked()[n-1])
			}
		}
	}
	d, err := goroutine.Read(strings.NewReader(aborted(t, "sleeping")))
	if err != nil {
		t.Fatal(err)
	}
	if first := d.Ranked()[0]; first.Ready() || d.Total < 200 {
		t.Errorf("of a server whose %d goroutines all wait the first is %+v", d.Total, first)
	}
	if n := d.Count(goroutine.Match{Func: spins.Func, State: "sleep"}); n != 1 {
		t.Errorf("%d of its goroutines sleep in the loop, want 1", n)
	}
}
