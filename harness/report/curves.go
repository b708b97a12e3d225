package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// rows is about how many rows the table of a chart has.
const rows = 16

// chart writes a trial's figures: the drawing, and for readers of plain text the same in numbers.
func (p *printer) chart(t Trial, file string) {
	if len(t.Figures) == 0 {
		return
	}
	var titles []string
	for _, f := range t.Figures {
		titles = append(titles, f.Title)
	}
	p.printf(
		"#### Over time\n\n![%s of each arm over time, with the time in which the fault was in force](%s)\n\n",
		inTable(strings.Join(titles, "; ")),
		file,
	)
	for _, k := range t.Clocks {
		p.printf("- %s\n", inTable(k.String()))
	}
	for _, f := range t.Figures {
		for _, l := range f.Lacks {
			p.printf("- %s, not all of it is there: %s\n", inTable(f.Title), inTable(l))
		}
	}
	p.printf("\n")
	for _, f := range t.Figures {
		p.values(f, t)
	}
}

// values writes the table of one figure.
func (p *printer) values(f Figure, t Trial) {
	p.printf(
		"%s, the last value by then (a dash where there is none):\n\n| seconds | fault |",
		inTable(f.Title),
	)
	for _, l := range f.Lines {
		p.printf(" %s |", inTable(l.Label()))
	}
	p.printf("\n|%s\n", strings.Repeat("---|", 2+len(f.Lines)))
	from, to := extent(t.Figures, t.Clocks)
	step := stepOf(to-from, rows)
	times := steps(from, to)
	if last := times[len(times)-1]; last < to {
		times = append(times, last+step)
	}
	for _, at := range times {
		p.printf("| %.0f | %s |", at, faulty(t.Clocks, at))
		for _, l := range f.Lines {
			p.printf(" %s |", l.by(at, step))
		}
		p.printf("\n")
	}
	p.printf("\n")
}

// String says what 0 is for the arm, and when its fault was in force.
func (k Clock) String() string {
	zero := k.Zero.UTC().Format(clockForm)
	if !k.Seen {
		return fmt.Sprintf(
			"%s: no fault was seen; 0 is %s, when the fault phase began",
			k.Arm,
			zero,
		)
	}
	var spans []string
	for _, s := range k.Faults {
		spans = append(spans, fmt.Sprintf("%.0f s to %.0f s", s.From, s.To))
	}
	return fmt.Sprintf(
		"%s: 0 is %s, when the fault was first seen; it was in force from %s",
		k.Arm,
		zero,
		strings.Join(spans, ", "),
	)
}

// steps returns the multiples of a round interval between two times: the rows of a table.
func steps(from, to float64) []float64 { return ticksOf(from, to, rows) }

// ticksOf returns the multiples of a round interval between two times, about `most` of them.
func ticksOf(from, to float64, most int) []float64 {
	step := stepOf(to-from, most)
	var out []float64
	for i := int(math.Ceil(from / step)); float64(i)*step <= to; i++ {
		out = append(out, float64(i)*step)
	}
	return out
}

// stepOf picks a round interval for about `most` ticks on a time axis of the given length. Both are in seconds.
func stepOf(seconds float64, most int) float64 {
	for _, s := range []float64{1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900} {
		if seconds/s <= float64(most) {
			return s
		}
	}
	return 3600
}

// faulty names the arms whose fault was in force at a time; "on" stands for all arms.
func faulty(clocks []Clock, at float64) string {
	var on []string
	for _, k := range clocks {
		if slices.ContainsFunc(k.Faults, func(s Span) bool { return s.From <= at && at <= s.To }) {
			on = append(on, k.Arm)
		}
	}
	if len(on) == len(clocks) && len(on) > 0 {
		return "on"
	}
	return inTable(strings.Join(on, ", "))
}

// by returns the last value in the row that ends at a time, "–" if there is none. step is the length of a row.
func (l Line) by(at, step float64) string {
	out := "–"
	for _, p := range l.Points {
		if p.Seconds <= at && p.Seconds > at-step {
			out = number(p.Value)
		}
	}
	return out
}

// number formats a number with as many digits as a reader has use for.
func number(n float64) string {
	if n == math.Trunc(n) || math.Abs(n) >= 100 {
		return fmt.Sprintf("%.0f", n)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", n), "0"), ".")
}
