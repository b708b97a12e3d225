package question

import (
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Slack returns how much a stream may fall short of a window at either end. Collectors sample every second or two, and
// a phase begins between two samples. Slack is a quarter of the window, at least 2.5 s and at most 6 s.
func Slack(w bundle.Window) time.Duration {
	return min(6*time.Second, max(2500*time.Millisecond, Length(w)/4))
}

// Length returns how long a window is.
func Length(w bundle.Window) time.Duration { return w.End.Sub(w.Start) }

// Contains reports whether a time lies in a window or at one of its ends.
func Contains(w bundle.Window, t time.Time) bool { return !t.Before(w.Start) && !t.After(w.End) }

// LastOf returns the last stretch of a window: hold long, or the whole window if that is shorter.
func LastOf(w bundle.Window, hold time.Duration) bundle.Window {
	return bundle.Window{Start: LaterOf(w.Start, w.End.Add(-hold)), End: w.End}
}

// LaterOf returns the later of two times.
func LaterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// EarlierOf returns the earlier of two times.
func EarlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Clock formats a time of day for findings.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// Span formats a window for findings.
func Span(w bundle.Window) string { return Between(w.Start, w.End) }

// Between formats a stretch of time for findings, with the date if it is a day or longer.
func Between(from, to time.Time) string {
	form := "15:04:05.0"
	if to.Sub(from) >= 24*time.Hour {
		form = "2006-01-02 15:04:05"
	}
	return from.UTC().Format(form) + " to " + to.UTC().Format(form)
}
