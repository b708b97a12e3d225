package goroutine

import (
	"regexp"
	"strconv"
	"strings"
)

// Race is one report of Go's race detector: two accesses to the same memory, at least one of them a write, without
// anything that puts them in an order. The format is that of LLVM's ThreadSanitizer for Go.
type Race struct {
	First int // the line that the report begins with, counted from 0
	Sides []Access
}

// Access is one side of a race.
type Access struct {
	What   string // "Write", "Previous read", "Previous atomic write"
	Frames []Frame
}

// Has reports whether the access's stack has a function, named as in Match.Func.
func (a Access) Has(function string) bool {
	return Match{Func: function, Closures: true}.Chooses(Group{Frames: a.Frames})
}

// String returns the access as the detector printed it, without addresses.
func (a Access) String() string {
	var b strings.Builder
	b.WriteString(a.What + ":")
	for _, f := range a.Frames {
		b.WriteString("\n  " + f.Func + "()\n      " + f.File + ":" + strconv.Itoa(f.Line))
	}
	return b.String()
}

var (
	access = regexp.MustCompile(
		`^((?:Previous )?(?:[Aa]tomic )?(?:[Ww]rite|[Rr]ead)) at 0x[0-9a-f]+ by (?:main )?goroutine`,
	)
	raceFrame   = regexp.MustCompile(`^  (\S.*)\(\)$`)
	raceAddress = regexp.MustCompile(`^      (\S.*):(\d+) \+0x[0-9a-f]+$`)
)

const (
	raceBegins = "WARNING: DATA RACE"
	raceEnds   = "=================="
)

// Races returns the reports in the lines that a program printed: plain, with the same prefix before each line, or
// within one line, in JSON or between quotes. Lines of others in between are skipped. A report without the stacks of
// both sides is left out, and cut says that there was one: its end is missing, the detector had forgotten a stack, or
// it can't be read.
func Races(lines []string) (found []Race, cut bool) {
	var r raceReader
	for i, line := range lines {
		prefix, begins := strings.CutSuffix(strings.TrimRight(line, "\r"), raceBegins)
		switch {
		case begins && !strings.HasPrefix(line, "{"):
			r.end()
			r.open, r.prefix = &Race{First: i}, prefix
		case strings.Contains(line, raceBegins):
			r.within(line, i)
		case r.open != nil:
			r.line(strings.TrimRight(strings.TrimPrefix(line, r.prefix), "\r"))
		}
	}
	return r.found, r.cut || r.open != nil
}

// raceReader reads one report after the other.
type raceReader struct {
	found    []Race
	cut      bool
	open     *Race
	prefix   string  // what stands before each line of the report
	side     *Access // nil after the two accesses, where the report says who started the goroutines
	function string
}

func (r *raceReader) end() {
	switch {
	case r.open == nil:
	case len(r.open.Sides) == 2 && len(r.open.Sides[0].Frames) > 0 && len(r.open.Sides[1].Frames) > 0:
		r.found = append(r.found, *r.open)
	default:
		r.cut = true
	}
	r.open, r.side, r.function = nil, nil, ""
}

// line takes the next line of a report.
func (r *raceReader) line(line string) {
	switch {
	case line == raceEnds:
		r.end()
	case access.MatchString(line):
		r.open.Sides = append(r.open.Sides, Access{What: access.FindStringSubmatch(line)[1]})
		r.side = &r.open.Sides[len(r.open.Sides)-1]
	case strings.HasPrefix(line, "Goroutine ") || strings.HasPrefix(line, "Location is "):
		r.side = nil
	case r.side == nil:
	case raceFrame.MatchString(line):
		r.function = raceFrame.FindStringSubmatch(line)[1]
	case r.function != "" && raceAddress.MatchString(line):
		at := raceAddress.FindStringSubmatch(line)
		if n, err := strconv.Atoi(at[2]); err == nil {
			r.side.Frames = append(r.side.Frames, Frame{Func: r.function, File: at[1], Line: n})
		}
		r.function = ""
	}
}

// within reads the one report that a single line contains.
func (r *raceReader) within(line string, at int) {
	r.end()
	texts, _ := embedded(line, func(s string) bool { return strings.Contains(s, raceBegins) })
	if len(texts) != 1 {
		r.cut = true
		return
	}
	found, cut := Races(strings.Split(texts[0], "\n"))
	r.cut = r.cut || cut || len(found) > 1
	if len(found) > 0 {
		found[0].First = at
		r.found = append(r.found, found[0])
	}
}
