package event

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Lines writes one plain line with a timestamp for each event, for CI. It leaves out captures, which are in the bundle.
type Lines struct{ W io.Writer }

// Emit writes e.
func (l Lines) Emit(e Event) {
	if e.Type == Capture {
		return
	}
	fmt.Fprintf(l.W, "%s %s\n", e.Time.Format("15:04:05"), describe(e))
}

// describe returns an event in words.
func describe(e Event) string {
	arm := ""
	if e.Arm != "" {
		arm = " [" + e.Arm + "]"
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
	s, _ := e.Fields["expectSeconds"].(float64)
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

func seconds(e Event) time.Duration {
	s, _ := e.Fields["seconds"].(float64)
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond)
}

// Terminal writes lines as Lines does. Below them it redraws one line every second, with the running stage, how long
// the stage has taken and how much longer it will probably take. Close ends the redrawing.
type Terminal struct {
	w     io.Writer
	mu    sync.Mutex
	stage Event
	note  string
	drawn bool
	stop  chan struct{}
	done  chan struct{}
}

// NewTerminal starts a display on w, which must be a terminal that understands carriage return and the ANSI sequence
// for erasing a line.
func NewTerminal(w io.Writer) *Terminal {
	t := &Terminal{w: w, stop: make(chan struct{}), done: make(chan struct{})}
	go t.redraw()
	return t
}

// Emit writes e above the live line. Progress changes the live line only.
func (t *Terminal) Emit(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Type {
	case Capture:
		return
	case Progress:
		t.note = e.Message
		t.draw()
		return
	case Stage:
		t.stage, t.note = e, ""
	case StageDone:
		if t.stage.Stage == e.Stage {
			t.stage, t.note = Event{}, ""
		}
	}
	t.erase()
	fmt.Fprintf(t.w, "%s %s\n", e.Time.Local().Format("15:04:05"), describe(e))
	t.draw()
}

// Close erases the live line and stops.
func (t *Terminal) Close() error {
	close(t.stop)
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	return nil
}

func (t *Terminal) redraw() {
	defer close(t.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			t.mu.Lock()
			t.draw()
			t.mu.Unlock()
		}
	}
}

func (t *Terminal) draw() {
	if t.stage.Stage == "" {
		return
	}
	so := time.Since(t.stage.Time).Round(time.Second)
	line := fmt.Sprintf("  %s  %s", t.stage.Stage, so)
	if d := expected(t.stage); d > 0 {
		if left := d - so; left > 0 {
			line += fmt.Sprintf(", about %s to go", left)
		} else {
			line += fmt.Sprintf(", %s longer than usual", -left)
		}
	}
	if t.note != "" {
		line += "  " + t.note
	}
	fmt.Fprintf(t.w, "\r\x1b[2K%s", oneLine(line))
	t.drawn = true
}

// oneLine cuts text to one line of a terminal, because wrapped text can't be erased again.
func oneLine(text string) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	return string(runes[:min(len(runes), 110)])
}

func (t *Terminal) erase() {
	if t.drawn {
		fmt.Fprint(t.w, "\r\x1b[2K")
		t.drawn = false
	}
}
