package event

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Lines writes one plain line with a timestamp for each event, for CI. It leaves out captures, which are in the bundle.
// What a stage waits for is written when it changes, and once a minute.
type Lines struct {
	W       io.Writer
	Quiet   bool // only warnings and failures
	Verbose bool // also what each check that is waited for saw

	wait map[string]Event // the wait that was written last, by what begins its line
}

// waitEvery is how often a wait is written.
const waitEvery = time.Minute

// Emit writes e.
func (l *Lines) Emit(e Event) {
	switch {
	case e.Type == Capture, l.Quiet && !slices.Contains([]string{Warning, FaultMissed, LoadMissed, Failure}, e.Type):
		return
	case e.Type == Stage:
		clear(l.wait)
	case isWait(e):
		of, _, _ := strings.Cut(e.Message, "waiting for ") // each of several trials at once has its own
		if last, ok := l.wait[of]; ok && last.Message == e.Message && e.Time.Sub(last.Time) < waitEvery {
			return
		}
		if l.wait == nil {
			l.wait = map[string]Event{}
		}
		l.wait[of] = e
	}
	fmt.Fprintf(l.W, "%s %s%s\n", e.Time.Format("15:04:05"), describe(e), state(e, l.Verbose))
}

func isWait(e Event) bool {
	_, ok := e.Fields[waited]
	return ok
}

// state returns what the checks that are waited for saw, or "" if that isn't wanted.
func state(e Event, wanted bool) string {
	if s, _ := e.Fields["state"].(string); wanted && s != "" {
		return " (" + s + ")"
	}
	return ""
}

// lasting says how long a wait has lasted, with the time since its event, and how long it will probably last.
func lasting(e Event, since time.Duration) string {
	so := (secondsField(e, waited) + since).Round(time.Second)
	switch expect := expected(e); {
	case expect <= 0:
		return fmt.Sprintf("%s so far", so)
	case so <= expect:
		return fmt.Sprintf("%s of about %s", so, expect)
	default:
		return fmt.Sprintf("%s, and about %s is usual", so, expect)
	}
}

// describe returns an event in words.
func describe(e Event) string {
	arm := ""
	if e.Arm != "" {
		arm = " [" + e.Arm + "]"
	}
	if isWait(e) {
		return e.Message + ": " + lasting(e, 0)
	}
	switch e.Type {
	case Stage:
		return fmt.Sprintf("==> %s: %s%s", e.Stage, e.Message, expects(e))
	case StageDone:
		return fmt.Sprintf("<== %s: %s (%s)", e.Stage, e.Message, seconds(e))
	case Phase:
		return fmt.Sprintf("phase %s%s", e.Message, arm)
	case FaultSeen, FaultGone:
		return fmt.Sprintf("fault%s: %s", arm, e.Message)
	case Warning, FaultMissed, LoadMissed:
		return fmt.Sprintf("warning%s: %s", arm, e.Message)
	case Failure:
		return fmt.Sprintf("error%s: %s", arm, e.Message)
	}
	return strings.TrimSpace(e.Stage+arm) + sepColon(e) + e.Message
}

func sepColon(e Event) string {
	if e.Stage == "" && e.Arm == "" {
		return ""
	}
	return ": "
}

func expects(e Event) string {
	if d := expected(e); d > 0 {
		return fmt.Sprintf(" (about %s)", d)
	}
	return ""
}

func expected(e Event) time.Duration {
	return secondsField(e, "expectSeconds").Round(time.Second)
}

func seconds(e Event) time.Duration { return secondsField(e, "seconds").Round(100 * time.Millisecond) }

func secondsField(e Event, name string) time.Duration {
	s, _ := e.Fields[name].(float64)
	return time.Duration(s * float64(time.Second))
}
