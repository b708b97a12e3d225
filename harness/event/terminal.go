package event

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Terminal writes lines as Lines does. Below them it redraws one line every second: the running stage, and either what
// it waits for or how long it has taken and will probably take. Close ends the redrawing.
type Terminal struct {
	w       io.Writer
	options TerminalOptions

	mu    sync.Mutex
	stage Event
	note  Event // the last progress of the stage
	drawn bool
	stop  chan struct{}
	done  chan struct{}
}

// TerminalOptions say how a terminal shows events. The zero value is a terminal of 110 columns.
type TerminalOptions struct {
	Width   func() int // how many columns the terminal has now; nil if nobody knows
	Verbose bool       // each wait is also written as a line, with what the checks saw
}

// NewTerminal starts a display on w, which must be a terminal that understands carriage return and the ANSI sequence
// for erasing a line.
func NewTerminal(w io.Writer, o TerminalOptions) *Terminal {
	t := &Terminal{w: w, options: o, stop: make(chan struct{}), done: make(chan struct{})}
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
		if t.note = e; !t.options.Verbose || !isWait(e) {
			t.draw()
			return
		}
	case Stage:
		t.stage, t.note = e, Event{}
	case StageDone:
		if t.stage.Stage == e.Stage {
			t.stage, t.note = Event{}, Event{}
		}
	}
	t.erase()
	fmt.Fprintf(
		t.w,
		"%s %s%s\n",
		e.Time.Local().Format("15:04:05"),
		describe(e),
		state(e, t.options.Verbose),
	)
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
	fmt.Fprintf(t.w, "\r\x1b[2K%s", t.oneLine(t.line()))
	t.drawn = true
}

// line returns what is shown of the running stage.
func (t *Terminal) line() string {
	if isWait(t.note) {
		return fmt.Sprintf(
			"  %s  %s: %s",
			t.stage.Stage,
			t.note.Message,
			lasting(t.note, time.Since(t.note.Time)),
		)
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
	if t.note.Message != "" {
		line += "  " + t.note.Message
	}
	return line
}

// oneLine cuts text to one line of the terminal, because wrapped text can't be erased again.
func (t *Terminal) oneLine(text string) string {
	width := 0
	if t.options.Width != nil {
		width = t.options.Width() - 1 // in the last column some terminals wrap
	}
	if width <= 0 {
		width = 110
	}
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	return string(runes[:min(len(runes), width)])
}

func (t *Terminal) erase() {
	if t.drawn {
		fmt.Fprint(t.w, "\r\x1b[2K")
		t.drawn = false
	}
}
