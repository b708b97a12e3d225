package goroutine

import (
	"regexp"
	"strconv"
	"strings"
)

// Race is one report of Go's race detector: two accesses to the same memory, at least one of them a write, of which
// nothing says which comes first. The format is LLVM's ThreadSanitizer's for Go.
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

// String is the access as the detector printed it, without addresses.
func (a Access) String() string {
	var b strings.Builder
	b.WriteString(a.What + ":")
	for _, f := range a.Frames {
		b.WriteString("\n  " + f.Func + "()\n      " + f.File + ":" + strconv.Itoa(f.Line))
	}
	return b.String()
}

var (
	access      = regexp.MustCompile(`^((?:Previous )?(?:[Aa]tomic )?(?:[Ww]rite|[Rr]ead)) at 0x[0-9a-f]+ by (?:main )?goroutine`)
	raceFrame   = regexp.MustCompile(`^  (\S.*)\(\)$`)
	raceAddress = regexp.MustCompile(`^      (\S.*):(\d+) \+0x[0-9a-f]+$`)
)

const (
	raceBegins = "WARNING: DATA RACE"
	raceEnds   = "=================="
)

// Races finds the reports in the lines that a program printed. Lines of others in between are passed over. A report
// without both sides' stacks is left out, and cut says that there was one: its end is missing, or the detector had
// forgotten a stack.
func Races(lines []string) (found []Race, cut bool) {
	var open *Race
	var side *Access // nil behind the two accesses, where the report says who started the goroutines
	function := ""
	end := func() {
		switch {
		case open == nil:
		case len(open.Sides) == 2 && len(open.Sides[0].Frames) > 0 && len(open.Sides[1].Frames) > 0:
			found = append(found, *open)
		default:
			cut = true
		}
		open, side = nil, nil
	}
	for i, line := range lines {
		switch {
		case line == raceBegins:
			end()
			open = &Race{First: i}
		case open == nil:
		case line == raceEnds:
			end()
		case access.MatchString(line):
			open.Sides = append(open.Sides, Access{What: access.FindStringSubmatch(line)[1]})
			side = &open.Sides[len(open.Sides)-1]
		case strings.HasPrefix(line, "Goroutine ") || strings.HasPrefix(line, "Location is "):
			side = nil
		case side == nil:
		case raceFrame.MatchString(line):
			function = raceFrame.FindStringSubmatch(line)[1]
		case function != "" && raceAddress.MatchString(line):
			at := raceAddress.FindStringSubmatch(line)
			n, err := strconv.Atoi(at[2])
			if err == nil {
				side.Frames = append(side.Frames, Frame{Func: function, File: at[1], Line: n})
			}
			function = ""
		}
	}
	if open != nil {
		cut = true
	}
	return found, cut
}
