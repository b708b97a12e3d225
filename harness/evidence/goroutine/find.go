package goroutine

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Found is a dump in the middle of other text.
type Found struct {
	*Dump
	Line int // of its first line, counted from 1
}

// Finder finds the dumps in a text that is passed to it line by line, without their ends: in a log, several in one
// file, wrapped or not.
//
// A dump ends where another one begins, which a header of debug=1, a panic or a goroutine id that comes a second time
// tells; where its process was heard of for the last time, 200 lines ago; and at the end of the text. So goroutines of
// two processes fall into one dump only if the one is cut off and the other begins within 200 lines, without a panic
// and with other ids.
type Finder struct {
	d     *decoder
	begin int // line at which d began
	state [3]int
	quiet int // lines since state changed
	n     int
}

const maxQuiet = 200

// Marks are texts of which every line has one that a dump can begin with.
var Marks = [][]byte{goroutineWord[:9], []byte(`"MESSAGE":[`)}

var deaths = [...][]byte{[]byte("panic: "), []byte("fatal error: "), []byte("SIGQUIT: quit"), []byte("SIGABRT: abort")}

// Inside reports whether a dump is being read.
func (f *Finder) Inside() bool { return f.d != nil }

// Skip takes the next line in place of Line where that is outside of a dump and has none of the Marks.
func (f *Finder) Skip() { f.n++ }

// Line takes the next line and returns the dump that ended before it, nil if none did.
func (f *Finder) Line(line []byte) (done *Found) {
	f.n++
	if f.d == nil {
		for _, m := range Marks {
			if bytes.Contains(line, m) {
				f.start(line)
				break
			}
		}
		return nil
	}
	for _, death := range deaths {
		if (f.quiet > 0 || !f.d.stacks.open) && bytes.Contains(line, death) {
			return f.end(false)
		}
	}
	err := f.d.raw(line, f.n)
	if errors.Is(err, errSecond) || f.d.stacks.again {
		done = f.end(false)
		f.start(line)
		return done
	}
	now := [3]int{f.d.stacks.total, len(f.d.stacks.key), f.d.prof.counted}
	if f.quiet++; now != f.state {
		f.state, f.quiet = now, 0
	}
	if f.quiet > maxQuiet {
		return f.end(false)
	}
	return nil
}

// End is the dump that the text ends with, nil if there is none. unended says that its last line has no end.
func (f *Finder) End(unended bool) *Found { return f.end(unended) }

func (f *Finder) start(line []byte) {
	d := &decoder{stacks: stacks{ids: map[uint64]struct{}{}}}
	if d.raw(line, f.n) == nil && d.format != 0 {
		f.d, f.begin, f.quiet, f.state = d, f.n, 0, [3]int{}
	}
}

func (f *Finder) end(unended bool) *Found {
	d := f.d
	if f.d = nil; d == nil {
		return nil
	}
	dump, err := d.finish(&lines{unended: unended, n: f.n})
	if err != nil { // a line that never ended begins another dump: what there is of this one is cut
		dump = &Dump{Format: d.format, Groups: d.groups.list, Total: d.stacks.total + d.prof.total, Truncated: true}
	}
	return &Found{dump, f.begin}
}

// Plain takes off what logs put before a line: CRI's, docker's and journald's wrappings and times. when is the time
// that stood there, zero if there was none or one without its year; from is the program that journald or syslog name.
func Plain(line []byte) (text []byte, when time.Time, from string) {
	if fields := object(line); fields != nil {
		for _, f := range [...]string{"log", "MESSAGE"} {
			l := layer{kind: jsonLine, field: f, stream: dockerStream(fields)}
			if text, what := l.stripJSON(line); what != foreign {
				return bytes.TrimRight(text, "\r\n"), jsonTime(fields), jsonText(fields, "SYSLOG_IDENTIFIER")
			}
		}
		return line, when, ""
	}
	if len(line) > 0 && isDigit(line[0]) {
		stamp, _, _ := bytes.Cut(line, []byte(" "))
		when, _ = time.Parse(time.RFC3339Nano, string(stamp)) // zero for any other form
	}
	if text, _, _, ok := cutCRI(line); ok {
		return text, when, ""
	}
	if text, ok := cutUnit(line); ok {
		before := bytes.Fields(line[:len(line)-len(text)])
		ident, _, _ := bytes.Cut(before[len(before)-1], []byte("["))
		return text, when, string(bytes.TrimSuffix(ident, []byte(":")))
	}
	if text, ok := cutTime(line); ok {
		return bytes.TrimPrefix(text, []byte(" ")), when, ""
	}
	return line, when, ""
}

// jsonTime is when docker or journald took a line.
func jsonTime(fields map[string]json.RawMessage) time.Time {
	if us, err := strconv.ParseInt(jsonText(fields, "__REALTIME_TIMESTAMP"), 10, 64); err == nil {
		return time.UnixMicro(us).UTC()
	}
	at, _ := time.Parse(time.RFC3339Nano, jsonText(fields, "time"))
	return at
}

func jsonText(fields map[string]json.RawMessage, name string) (s string) {
	_ = json.Unmarshal(fields[name], &s) // "" for what is no text
	return s
}
