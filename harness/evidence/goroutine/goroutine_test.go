package goroutine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func read(t *testing.T, text string) *goroutine.Dump {
	t.Helper()
	d, err := goroutine.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func fixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The dumps in testdata were written by one small program under Go 1.26.8, with GODEBUG=tracebacklabels=1, or with
// GOTRACEBACK=system, or with GODEBUG=tracebackancestors=2. Only the paths were shortened.

func TestStates(t *testing.T) {
	d := read(t, fixture(t, "states.debug2"))
	relist := []goroutine.Frame{{Func: "main.(*pleg).Relist", File: "/src/main.go", Line: 4}}
	want := []goroutine.Group{
		{State: "chan send", Count: 3, Frames: relist, CreatedBy: "main.main",
			CreatedAt: goroutine.Frame{File: "/src/main.go", Line: 7}, IDs: []uint64{21, 22, 23}},
		{State: "chan send", Count: 1, Frames: relist, CreatedBy: "main.main.func7",
			CreatedAt: goroutine.Frame{File: "/src/main.go", Line: 14}, IDs: []uint64{6},
			Labels: map[string]string{"req": "a \"b\"\n]:é\ufffd"}},
	}
	if diff := cmp.Diff(want, d.Find(goroutine.Match{Func: "main.(*pleg).Relist", State: "chan send"})); diff != "" {
		t.Errorf("blocked in Relist (-want +got):\n%s", diff)
	}
	if d.Format != goroutine.Stacks || d.Total != 11 || counted(d) != 11 || d.Truncated {
		t.Errorf("got %v, total %d, counted %d, truncated %t; want debug=2, 11, 11, false",
			d.Format, d.Total, counted(d), d.Truncated)
	}
	for state, want := range map[string]int{"running": 1, "select": 1, "select (no cases)": 1, "chan send (nil chan)": 1,
		"chan receive": 1, "sync.Mutex.Lock": 1, "IO wait": 1, "chan send": 4, "chan": 0} {
		if got := d.Count(goroutine.Match{State: state}); got != want {
			t.Errorf("%d goroutines in %q; want %d", got, state, want)
		}
	}
	if locked := d.Find(goroutine.Match{State: "chan receive"}); locked[0].Locked != 1 {
		t.Errorf("the receiver has Locked %d; want 1", locked[0].Locked)
	}
}

func TestProfileHasNoStates(t *testing.T) {
	d := read(t, fixture(t, "states.debug1"))
	if d.Format != goroutine.Profile || d.Format.HasStates() || d.Total != 11 || counted(d) != 11 || d.Truncated {
		t.Errorf("got %v, total %d, counted %d, truncated %t", d.Format, d.Total, counted(d), d.Truncated)
	}
	// The same line is on two addresses, once under a label: one group, whose members have no label in common.
	got := d.Find(goroutine.Match{Func: "main.(*pleg).Relist"})
	want := []goroutine.Group{{Count: 4, Frames: []goroutine.Frame{{Func: "main.(*pleg).Relist", File: "/src/main.go", Line: 4}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in Relist (-want +got):\n%s", diff)
	}
	if n := d.Count(goroutine.Match{State: "chan send"}); n != 0 {
		t.Errorf("%d goroutines in a state that debug=1 doesn't tell", n)
	}
}

func TestPanic(t *testing.T) {
	d := read(t, fixture(t, "panic.system"))
	main := d.Groups[0]
	if main.State != "running" || main.Frames[0].Func != "panic" || main.Frames[3] != (goroutine.Frame{Func: "main.main", File: "/src/main.go", Line: 18}) {
		t.Errorf("the first group is %+v; want main.main panicking at line 18", main)
	}
	// GOTRACEBACK=system shows the runtime's frames: here the blocked call is not the first.
	send := goroutine.Match{Func: "main.(*pleg).Relist", State: "chan send"}
	if got := d.Count(send); got != 4 {
		t.Errorf("%d goroutines send in Relist; want 4", got)
	}
	send.Depth = 1
	if got := d.Count(send); got != 0 {
		t.Errorf("%d goroutines have Relist on top; want 0, runtime.gopark is there", got)
	}
	if n := d.Count(goroutine.Match{Func: "runtime.chansend", State: "chan send"}); n != 4 {
		t.Errorf("%d goroutines in runtime.chansend; want 4", n)
	}
}

func TestAncestorsAreNotFrames(t *testing.T) {
	d := read(t, fixture(t, "panic.ancestors"))
	if n := d.Count(goroutine.Match{Func: "runtime/pprof.Do"}); n != 0 {
		t.Errorf("%d goroutines in pprof.Do; want 0: only an ancestor was there", n)
	}
	if n := d.Count(goroutine.Match{Func: "main.(*pleg).Relist", State: "chan send"}); n != 4 {
		t.Errorf("%d goroutines send in Relist; want 4", n)
	}
}

// blocker is what the goroutines of the live test hang in.
type blocker struct {
	c    chan int
	wait sync.WaitGroup
}

func (b *blocker) Send()    { defer b.wait.Done(); b.c <- 1 }
func (b *blocker) Receive() { defer b.wait.Done(); runtime.LockOSThread(); <-b.c }
func (b *blocker) Select() {
	defer b.wait.Done()
	select {
	case b.c <- 1:
	case <-make(chan bool):
	}
}

func TestLive(t *testing.T) {
	send, receive, sel := &blocker{c: make(chan int)}, &blocker{c: make(chan int)}, &blocker{c: make(chan int)}
	for _, s := range []struct {
		b  *blocker
		n  int
		do func()
	}{{send, 7, send.Send}, {receive, 2, receive.Receive}, {sel, 3, sel.Select}} {
		s.b.wait.Add(s.n)
		for range s.n {
			go s.do()
		}
	}
	defer func() {
		close(receive.c)
		for range 7 {
			<-send.c
		}
		for range 3 {
			<-sel.c
		}
		for _, b := range []*blocker{send, receive, sel} {
			b.wait.Wait()
		}
	}()
	const typ = "goroutine_test.(*blocker)."
	wants := []struct {
		m goroutine.Match
		n int
	}{
		{goroutine.Match{Func: typ + "Send", State: "chan send", Depth: 1}, 7},
		{goroutine.Match{Func: typ + "send", State: "chan send", FoldCase: true}, 7},
		{goroutine.Match{Func: typ + "Receive", State: "chan receive"}, 2},
		{goroutine.Match{Func: typ + "Select", State: "select"}, 3},
	}
	stacks := func() *goroutine.Dump { return live(t, 2) }
	deadline := time.Now().Add(10 * time.Second)
	for d := stacks(); ; d = stacks() {
		missing := ""
		for _, w := range wants {
			if got := d.Count(w.m); got != w.n {
				missing += fmt.Sprintf("%+v: %d; want %d\n", w.m, got, w.n)
			}
		}
		if missing == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(missing)
		}
		runtime.Gosched()
	}
	one, two := live(t, 1), stacks()
	for _, w := range wants {
		w.m.State = ""
		if a, b := one.Count(w.m), two.Count(w.m); a != b || a != w.n {
			t.Errorf("%+v: %d in debug=1, %d in debug=2; want %d in both", w.m, a, b, w.n)
		}
	}
	if one.Total != counted(one) || one.Truncated || two.Truncated || one.Total != two.Total {
		t.Errorf("totals: debug=1 %d (counted %d), debug=2 %d; truncated %t, %t",
			one.Total, counted(one), two.Total, one.Truncated, two.Truncated)
	}
	if g := two.Find(wants[2].m); g[0].Locked != 2 || !strings.HasSuffix(g[0].CreatedBy, "goroutine_test.TestLive") {
		t.Errorf("receivers: locked %d, created by %s", g[0].Locked, g[0].CreatedBy)
	}
}

// counted returns the sum of the groups' counts.
func counted(d *goroutine.Dump) int {
	n := 0
	for _, g := range d.Groups {
		n += g.Count
	}
	return n
}

func live(t *testing.T, debug int) *goroutine.Dump {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, debug); err != nil {
		t.Fatal(err)
	}
	return read(t, b.String())
}

func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"states.debug1", "states.debug2", "panic.system", "panic.ancestors"} {
		d := read(t, fixture(t, name))
		var b bytes.Buffer
		if err := d.Write(&b); err != nil {
			t.Fatal(err)
		}
		d.Arena = 0 // what is written has no arguments
		if again := read(t, b.String()); !reflect.DeepEqual(d, again) {
			t.Errorf("%s: written and read again (-first +second):\n%s", name, cmp.Diff(d, again))
		}
	}
}
