package event_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/event"
)

func TestLines(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 5, 30, 0, time.UTC)
	for _, tc := range []struct {
		e    event.Event
		want string
	}{
		{event.Event{Type: event.Note, Message: "hello"}, "10:05:30 hello\n"},
		{event.Event{Type: event.Note, Arm: "fixed", Message: "exposure met"}, "10:05:30 [fixed]: exposure met\n"},
		{event.Event{Type: event.Progress, Stage: "build", Message: "3 of 6"}, "10:05:30 build: 3 of 6\n"},
		{event.Event{Type: event.Progress, Stage: "build", Arm: "fixed", Message: "3 of 6"}, "10:05:30 build [fixed]: 3 of 6\n"},
		{event.Event{Type: event.Stage, Stage: "build", Message: "two kubelets"}, "10:05:30 ==> build: two kubelets\n"},
		{event.Event{Type: event.Stage, Stage: "build", Message: "two kubelets", Fields: map[string]any{"expectSeconds": 95.2}}, "10:05:30 ==> build: two kubelets (about 1m35s)\n"},
		{event.Event{Type: event.StageDone, Stage: "build", Message: "done", Fields: map[string]any{"seconds": 12.34}}, "10:05:30 <== build: done (12.3s)\n"},
		{event.Event{Type: event.Phase, Message: "fault"}, "10:05:30 phase fault\n"},
		{event.Event{Type: event.Phase, Arm: "fixed", Message: "fault"}, "10:05:30 phase fault [fixed]\n"},
		{event.Event{Type: event.FaultSeen, Arm: "fixed", Message: "slow: 40ms"}, "10:05:30 fault [fixed]: slow: 40ms\n"},
		{event.Event{Type: event.FaultGone, Message: "slow: gone"}, "10:05:30 fault: slow: gone\n"},
		{event.Event{Type: event.Warning, Message: "late"}, "10:05:30 warning: late\n"},
		{event.Event{Type: event.Failure, Arm: "fixed", Message: "no space left"}, "10:05:30 error [fixed]: no space left\n"},
		{event.Event{Type: event.Capture, Message: "metrics taken"}, ""},
	} {
		var out strings.Builder
		tc.e.Time = at
		(&event.Lines{W: &out}).Emit(tc.e)
		if out.String() != tc.want {
			t.Errorf("%+v is %q, want %q", tc.e, out.String(), tc.want)
		}
	}
}

// What a stage waits for is written at once, and again once a minute; the state of the checks only if it was asked for.
func TestLinesOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, all, quiet strings.Builder
		s := event.NewStream(&event.Lines{W: &out}, &event.Lines{W: &all, Verbose: true}, &event.Lines{W: &quiet, Quiet: true})
		clock := func() string { return time.Now().UTC().Format("15:04:05 ") }
		w := event.Wait{What: "the kubelet to call its PLEG unhealthy", So: 2 * time.Second, Expect: 3 * time.Minute, State: "fixed (late is false: 40 s)"}
		want := clock() + "waiting for the kubelet to call its PLEG unhealthy: 2s of about 3m0s\n"
		s.Waiting(w)
		time.Sleep(59 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
		s.Waiting(w)
		time.Sleep(time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
		w.So = 4 * time.Minute
		want += clock() + "waiting for the kubelet to call its PLEG unhealthy: 4m0s, and about 3m0s is usual\n"
		s.Waiting(w)
		s.Emit(event.Event{Type: event.Stage, Stage: "recovery", Message: "lifting"})
		w.Expect = 0
		want += clock() + "==> recovery: lifting\n" + clock() + "waiting for the kubelet to call its PLEG unhealthy: 4m0s so far\n"
		s.Waiting(w)
		if out.String() != want {
			t.Errorf("it wrote\n%s\nwant\n%s", out.String(), want)
		}
		if wanted := strings.Count(all.String(), " (fixed (late is false: 40 s))\n"); wanted != 3 {
			t.Errorf("the state is written %d times, want 3:\n%s", wanted, all.String())
		}
		s.Say(event.Warning, "late")
		if want := clock() + "warning: late\n"; quiet.String() != want {
			t.Errorf("quiet wrote %q, want %q", quiet.String(), want)
		}
	})
}

// On a terminal the time that a wait has lasted goes on in place.
func TestTerminalOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		term := event.NewTerminal(&out, event.TerminalOptions{Width: func() int { return 41 }})
		defer term.Close()
		s := event.NewStream(term)
		s.Emit(event.Event{Type: event.Stage, Stage: "fault", Message: "x"})
		out.take()
		s.Waiting(event.Wait{What: "the load to end", So: 5 * time.Second, Expect: time.Minute, State: "unseen"})
		if got, want := out.take(), "<  fault  waiting for the load to end: 5s"; got != want {
			t.Errorf("it wrote %q, want %q", got, want)
		}
		time.Sleep(1500 * time.Millisecond) // fake time: moves the synctest bubble's clock, waits for nothing
		synctest.Wait()
		if got, want := out.take(), "<  fault  waiting for the load to end: 6s"; got != want {
			t.Errorf("a second later it wrote %q, want %q", got, want)
		}
	})
}

// messages is a sink.
type messages []string

func (m *messages) Emit(e event.Event) { *m = append(*m, e.Message) }

func TestStreamAttachAndDetach(t *testing.T) {
	var first, second, third messages
	s := event.NewStream(&first)
	s.Say(event.Note, "a")
	detach := s.Attach(&second)
	alsoFunc := s.Attach(event.SinkFunc(third.Emit)) // functions can't be compared
	s.Say(event.Note, "b")
	detach()
	s.Say(event.Note, "c")
	detach()
	alsoFunc()
	s.Say(event.Note, "d")
	got := [][]string{first, second, third}
	if d := cmp.Diff([][]string{{"a", "b", "c", "d"}, {"b"}, {"b", "c"}}, got); d != "" {
		t.Errorf("the sinks got (-want +got):\n%s", d)
	}
}

// One sink that is attached twice is two sinks, each taken off by itself.
func TestStreamAttachTwice(t *testing.T) {
	var m messages
	s := event.NewStream()
	detach := s.Attach(&m)
	s.Attach(&m)
	s.Say(event.Note, "a")
	detach()
	s.Say(event.Note, "b")
	if d := cmp.Diff(messages{"a", "a", "b"}, m); d != "" {
		t.Errorf("the sink got (-want +got):\n%s", d)
	}
}

func TestStreamStamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []event.Event
		s := event.NewStream(event.SinkFunc(func(e event.Event) { seen = append(seen, e) }))
		began := time.Now()
		time.Sleep(1500 * time.Millisecond) // fake time: moves the synctest bubble's clock, waits for nothing
		back := s.Emit(event.Event{Type: event.Note, Arm: "fixed", Message: "x", Time: began.Add(time.Hour), Mono: 7})
		if len(seen) != 1 || cmp.Diff(back, seen[0]) != "" {
			t.Fatalf("returned %+v, passed on %+v", back, seen)
		}
		if back.Mono != 1500*time.Millisecond || !back.Time.Equal(began.Add(1500*time.Millisecond)) || back.Time.Location() != time.UTC {
			t.Errorf("stamped %s and %s, want 1.5s and %s in UTC", back.Mono, back.Time, began.Add(1500*time.Millisecond))
		}
		if strings.Contains(back.Time.String(), "m=") {
			t.Errorf("%s still has its monotonic part, which a timeline read back has not", back.Time)
		}
	})
}

func TestNilStreamDrops(t *testing.T) {
	var s *event.Stream
	if e := s.Say(event.Note, "x"); e.Message != "x" || e.Time.IsZero() {
		t.Errorf("it returned %+v", e)
	}
}

// Sinks are handed one event at a time, in the order of their monotonic times.
// A sink that reacts to an event can wait until those behind it have it, too.
func TestStreamSettles(t *testing.T) {
	var s *event.Stream
	s.Settle() // as all that a nil stream does, it does nothing
	behind, seen := atomic.Int32{}, make(chan int32)
	s = event.NewStream(
		event.SinkFunc(func(event.Event) {
			go func() {
				s.Settle()
				seen <- behind.Load()
			}()
		}),
		event.SinkFunc(func(event.Event) {
			for range 1000 { // the goroutine above has time to be first
				runtime.Gosched()
			}
			behind.Add(1)
		}),
	)
	for want := range int32(20) {
		s.Say(event.Note, "hello")
		if got := <-seen; got != want+1 {
			t.Fatalf("settled after %d events of the sink behind, want %d", got, want+1)
		}
	}
}

func TestStreamOrder(t *testing.T) {
	var mono []time.Duration
	s := event.NewStream(event.SinkFunc(func(e event.Event) { mono = append(mono, e.Mono) }))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				s.Say(event.Note, "x")
			}
		})
	}
	wg.Wait()
	if len(mono) != 1600 {
		t.Fatalf("%d of 1600 events came through", len(mono))
	}
	for i := 1; i < len(mono); i++ {
		if mono[i] < mono[i-1] {
			t.Fatalf("event %d is of %s, the one before it of %s", i, mono[i], mono[i-1])
		}
	}
}

// screen is a terminal's stream of bytes.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// take returns what was written since, with what erases a line as <.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return strings.ReplaceAll(s.b.String(), "\r\x1b[2K", "<")
}

func TestTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		term := event.NewTerminal(&out, event.TerminalOptions{})
		s := event.NewStream(term)
		clock := func() string { return time.Now().Local().Format("15:04:05") }
		want := func(what, want string) {
			t.Helper()
			synctest.Wait()
			if got := out.take(); got != want {
				t.Errorf("%s, it wrote %q, want %q", what, got, want)
			}
		}
		s.Say(event.Note, "hello")
		want("without a stage", clock()+" hello\n")
		s.Emit(event.Event{Type: event.Stage, Stage: "build", Message: "two kubelets", Fields: map[string]any{"expectSeconds": 3.0}})
		want("at a stage's begin", clock()+" ==> build: two kubelets (about 3s)\n<  build  0s, about 3s to go")
		time.Sleep(1100 * time.Millisecond) // fake time: moves the synctest bubble's clock, waits for nothing
		want("a second later", "<  build  1s, about 2s to go")
		s.Say(event.Progress, "linking")
		want("with progress", "<  build  1s, about 2s to go  linking")
		s.Say(event.Capture, "metrics taken")
		want("of a capture", "")
		s.Say(event.Warning, "slow")
		want("a line above the live one", "<"+clock()+" warning: slow\n<  build  1s, about 2s to go  linking")
		time.Sleep(3 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
		want("longer than expected", "<  build  2s, about 1s to go  linking<  build  3s, 0s longer than usual  linking<  build  4s, 1s longer than usual  linking")
		s.Emit(event.Event{Type: event.StageDone, Stage: "another", Message: "done"})
		want("another stage's end", "<"+clock()+" <== another: done (0s)\n<  build  4s, 1s longer than usual  linking")
		s.Emit(event.Event{Type: event.StageDone, Stage: "build", Message: "done", Fields: map[string]any{"seconds": 4.1}})
		want("at the stage's end", "<"+clock()+" <== build: done (4.1s)\n")
		time.Sleep(2 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
		want("with nothing under way", "")
		s.Emit(event.Event{Type: event.Stage, Stage: "fault", Message: "…"})
		out.take()
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		want("closed", "<")
	})
}

// The live line must fit its terminal: what is wrapped can't be erased. Cutting must leave text that is text.
func TestTerminalCutsTheLiveLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		term := event.NewTerminal(&out, event.TerminalOptions{})
		defer term.Close()
		s := event.NewStream(term)
		s.Emit(event.Event{Type: event.Stage, Stage: "fault", Message: "x"})
		out.take()
		for n := range 4 { // a cut lands inside a character of two bytes in one of them
			s.Say(event.Progress, fmt.Sprint(strings.Repeat("a", n), strings.Repeat("µ", 200)))
			got := strings.TrimPrefix(out.take(), "<")
			if strings.Contains(got, "\ufffd") || !strings.HasSuffix(got, "µ") || len([]rune(got)) > 110 {
				t.Errorf("the live line is %q", got)
			}
		}
	})
}
