// Package klog reads the logs of Kubernetes components: klog's text form with its structured key/value pairs, the JSON
// form of k8s.io/component-base/logs, and either of them out of journald (journalctl -o json).
//
// Everything streams, with bounded lines, and nothing is left out silently: a message in another format has no Klog, a
// line that is no journal record is an error, and what was cut is marked.
package klog

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// Severity is the first letter of a klog header. The zero Severity marks text that has no header.
type Severity byte

// The severities of klog. JSON logs have only Info and Error: a line with a verbosity is Info.
const (
	Info    Severity = 'I'
	Warning Severity = 'W'
	Error   Severity = 'E'
	Fatal   Severity = 'F'
)

// String returns the severity's letter, "" for the zero Severity.
func (s Severity) String() string {
	if s == 0 {
		return ""
	}
	return string(rune(s))
}

// Line is one log message, which may span several lines of text.
type Line struct {
	Severity Severity
	// Time has microseconds. klog's text has neither year nor zone: see Parse.
	Time time.Time
	// Thread is the number before the file, which is the process id in all current klogs; 0 in JSON.
	Thread int
	// File is the base name, or in JSON the last folder and the base name, of the source file; SourceLine is its line.
	File       string
	SourceLine int
	// Verbosity is the -v level of a JSON info line; 0 otherwise, since the text form doesn't tell it.
	Verbosity int
	// Message is the unquoted message of a structured line, and the whole text after the header of any other.
	Message string
	// Structured says that the message was quoted, with nothing but pairs after it.
	Structured bool
	// Pairs are the key/value pairs in the order of the line.
	Pairs []Pair
	// Unfinished says that the text ends within a multi-line value: its last pair is not whole.
	Unfinished bool
	// Cut says that the line was longer than MaxLine, and that its rest was dropped.
	Cut bool
}

// Pair is a key with its value. A quoted value is unquoted, a multi-line block is without its marks and indentation,
// and anything else is as it was printed: a number, `<nil>`, `{"name":"x"}`, `[a b]`.
type Pair struct{ Key, Value string }

// Parse reads one message, in klog's text form or in JSON. It returns false if text begins with neither a klog header
// nor a JSON object that has "ts" and "msg".
//
// From ref it takes what the text form lacks: the zone, and the year that brings the time nearest to ref.
func Parse(text []byte, ref time.Time) (Line, bool) {
	text = bytes.TrimRight(text, "\r\n")
	if len(text) > 0 && text[0] == '{' {
		return parseJSON(text, ref.Location())
	}
	l, rest, ok := parseHeader(string(text), ref)
	if !ok {
		return Line{}, false
	}
	l.Message = rest
	if msg, after, ok := cutQuoted(rest); ok {
		if pairs, unfinished, ok := parsePairs(after); ok {
			l.Message, l.Structured, l.Pairs, l.Unfinished = msg, true, pairs, unfinished
		}
	}
	return l, true
}

// parseHeader reads `Lmmdd hh:mm:ss.uuuuuu threadid file:line] ` (formatHeader in klog's internal/buffer).
func parseHeader(s string, ref time.Time) (l Line, rest string, ok bool) {
	const stamp = "Lmmdd hh:mm:ss.uuuuuu "
	if len(s) < len(stamp) || !strings.ContainsRune("IWEF", rune(s[0])) || s[0] >= 0x80 {
		return l, s, false
	}
	l.Severity = Severity(s[0])
	if l.Time, ok = parseTime(s[1:len(stamp)-1], ref); !ok || s[len(stamp)-1] != ' ' {
		return l, s, false
	}
	head, rest, ok := strings.Cut(s[len(stamp):], "]")
	if !ok {
		return l, s, false
	}
	thread, place, ok := strings.Cut(strings.TrimLeft(head, " "), " ")
	if !ok {
		return l, s, false
	}
	colon := strings.LastIndexByte(place, ':')
	if colon < 0 {
		return l, s, false
	}
	l.File = place[:colon]
	var err, err2 error
	l.Thread, err = strconv.Atoi(thread)
	l.SourceLine, err2 = strconv.Atoi(place[colon+1:])
	if err != nil || err2 != nil {
		return l, s, false
	}
	return l, strings.TrimPrefix(rest, " "), true
}

// parseTime reads `mmdd hh:mm:ss.uuuuuu` as the time nearest to ref that has this date in ref's zone.
func parseTime(s string, ref time.Time) (time.Time, bool) {
	t, err := time.ParseInLocation("2006 0102 15:04:05.000000", "2000 "+s, ref.Location()) // 2000 has a 29 February
	if err != nil {
		return time.Time{}, false
	}
	best := Nearest(t, ref)
	return best, !best.IsZero()
}

// Nearest returns the time nearest to ref that has t's date and time of day in ref's zone, whatever t's year. It
// returns zero if no year within four of ref's has that date.
func Nearest(t, ref time.Time) (best time.Time) {
	for year := ref.Year() - 4; year <= ref.Year()+4; year++ {
		c := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), ref.Location())
		if c.Day() != t.Day() {
			continue // no 29 February in that year
		}
		if best.IsZero() || c.Sub(ref).Abs() < best.Sub(ref).Abs() {
			best = c
		}
	}
	return best
}
