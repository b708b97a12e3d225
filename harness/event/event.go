// Package event is the stream of everything that happens during a run. Its sinks are the timeline on disk, the
// terminal's progress display and the plain lines for CI.
package event

import (
	"sync"
	"time"
)

// Types of events. Everything that a verdict relies on (phases, faults seen injected and lifted) has its own type.
const (
	Note        = "note"        // something a person wants to know
	Stage       = "stage"       // a stage of the run began (Fields: expectSeconds)
	StageDone   = "stageDone"   // a stage ended (Fields: seconds)
	Progress    = "progress"    // where a stage stands
	Phase       = "phase"       // a phase was seen to begin, for Arm or, when empty, for all
	FaultSeen   = "faultSeen"   // a fault's effect was observed
	FaultGone   = "faultGone"   // a fault's lift was observed
	FaultMissed = "faultMissed" // a planned fault never came in Arm, which is the reason (Fields: fault)
	LoadMissed  = "loadMissed"  // a planned load never ran in Arm, which is the reason, or not before its phase's deadline (Fields: load)
	Capture     = "capture"     // a snapshot was taken or failed
	Warning     = "warning"     // something is off but the run goes on
	Failure     = "failure"     // something of relapse failed
)

// Event is one thing that happened. Mono is the monotonic time since the stream began. It orders events even if the
// wall clock is changed in between.
type Event struct {
	Time    time.Time      `json:"time"`
	Mono    time.Duration  `json:"monoNanos"`
	Type    string         `json:"type"`
	Stage   string         `json:"stage,omitempty"`
	Arm     string         `json:"arm,omitempty"`
	Message string         `json:"message"`
	Fields  map[string]any `json:"fields,omitempty"`
}

// Sink receives events, one at a time, in order. It must not block for long.
type Sink interface{ Emit(Event) }

// SinkFunc adapts a function to a Sink.
type SinkFunc func(Event)

// Emit calls f.
func (f SinkFunc) Emit(e Event) { f(e) }

// Stream stamps events and hands them to its sinks. The zero value is not usable; a nil *Stream drops everything.
type Stream struct {
	mu    sync.Mutex
	start time.Time
	sinks []Sink
}

// NewStream returns a stream whose monotonic clock starts now.
func NewStream(sinks ...Sink) *Stream { return &Stream{start: time.Now(), sinks: sinks} }

// Attach adds a sink for later events and returns a function that removes it.
func (s *Stream) Attach(k Sink) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	box := &boxed{k}
	s.sinks = append(s.sinks, box)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, have := range s.sinks {
			if have == Sink(box) {
				s.sinks = append(s.sinks[:i:i], s.sinks[i+1:]...)
				return
			}
		}
	}
}

// boxed gives every sink an identity, even functions, which can't be compared.
type boxed struct{ Sink }

// Emit stamps e with the wall and monotonic time, passes it on and returns it.
func (s *Stream) Emit(e Event) Event {
	if s == nil {
		e.Time = time.Now()
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // under the lock, so that the order of the times is the order of the sinks
	e.Mono = now.Sub(s.start)
	e.Time = now.Round(0).UTC()
	for _, k := range s.sinks {
		k.Emit(e)
	}
	return e
}

// Settle returns when every sink has what was emitted before. It waits for ever within a sink.
func (s *Stream) Settle() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
}

// Wait is what a stage waits for.
type Wait struct {
	What   string        // as in "waiting for …": the kubelet to call its PLEG unhealthy
	So     time.Duration // how long it has waited so far
	Expect time.Duration // how long it will probably wait in all; 0 if nobody knows
	State  string        // what each check that is open saw last, for whoever knows the checks
}

// Waiting emits what a stage waits for. Displays show the time as well, as it goes on.
func (s *Stream) Waiting(w Wait) Event {
	return s.Emit(Event{Type: Progress, Message: "waiting for " + w.What, Fields: map[string]any{
		waited: w.So.Seconds(), "expectSeconds": w.Expect.Seconds(), "state": w.State}})
}

// waited is the field of an event of Waiting that other events don't have.
const waited = "waitedSeconds"

// Say emits an event that has only a type and a message.
func (s *Stream) Say(
	typ, message string,
) Event {
	return s.Emit(Event{Type: typ, Message: message})
}

// Stage announces a stage of the run, with what it does and how long it will probably take. It returns the function
// that ends the stage.
func (s *Stream) Stage(name, what string, expect time.Duration) (done func(error)) {
	began := time.Now()
	s.Emit(Event{
		Type:    Stage,
		Stage:   name,
		Message: what,
		Fields:  map[string]any{"expectSeconds": expect.Seconds()},
	})
	return func(err error) {
		msg := "done"
		if err != nil {
			msg = "not done: " + err.Error()
		}
		s.Emit(Event{Type: StageDone, Stage: name, Message: msg,
			Fields: map[string]any{"seconds": time.Since(began).Seconds()}})
	}
}
