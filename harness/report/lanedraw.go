package report

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
)

// The heights of a lane's rows, and about how wide its letters are, in the page's pixels. narrow is how wide the lane
// is on the smallest screen: what fits there fits everywhere.
const (
	barHeight   = 20
	rowGap      = 4
	tickRow     = 14
	axisRow     = 22
	labelRow    = 16
	letterWidth = 7
	narrow      = 336
)

// mostTicks is how many ticks the axis of a lane has at most.
const mostTicks = 8

// timeline draws a lane between two times. Its widths are in percent, so that it fits any screen. The names of phases
// that are too short to hold them stand above.
func (l Lane) timeline(from, to float64) template.HTML {
	d := drawing{from: from, to: to}
	labels, top := d.above(l.Phases)
	top *= labelRow
	height := top + barHeight + len(l.Rows)*(barHeight+rowGap) + rowGap + tickRow
	d.axis(top, height)
	for i, b := range l.Phases {
		d.bar(b, "phase", top, labels[i].row < 0)
		if at := labels[i]; at.row >= 0 {
			y := at.row * labelRow
			d.add(
				`<line x1="%.3f%%" x2="%.3f%%" y1="%d" y2="%d" class="lead"/>`,
				d.x(b.From),
				d.x(b.From),
				y+4,
				top,
			)
			d.text(at, y+12, b.Name)
		}
	}
	y := top + barHeight + rowGap
	for _, r := range l.Rows {
		d.row(r, y)
		y += barHeight + rowGap
	}
	tick := func(t Tick, class, says string, top int) {
		d.add(`<line x1="%.3f%%" x2="%.3f%%" y1="%d" y2="%d" class="%s"><title>%s</title></line>`, d.x(t.Seconds),
			d.x(t.Seconds), top, y+tickRow-2, class, html.EscapeString(fmt.Sprintf("%.0f s: %s%s", t.Seconds, says, t.What)))
	}
	for _, t := range l.Captures {
		tick(t, "capture", "", y)
	}
	for _, t := range l.Onset {
		tick(t, "onset", "onset, ", top)
	}
	return template.HTML(
		fmt.Sprintf(`<svg class="lane" width="100%%" height="%d" role="img" aria-label="%s">`,
			height+axisRow, html.EscapeString(l.describe())) + d.out.String() + "</svg>",
	)
}

// drawing is a lane's picture as it is put together.
type drawing struct {
	out      strings.Builder
	from, to float64
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.out, format, args...) }

// x returns where a time is, in percent of the width.
func (d *drawing) x(seconds float64) float64 { return (seconds - d.from) / max(d.to-d.from, 1) * 100 }

// width returns how wide a text is, in percent of the width of the narrowest lane.
func width(text string) float64 { return float64(len([]rune(text))*letterWidth+8) / narrow * 100 }

// label is the place of a text: its row, its x in percent, and whether it ends there instead of beginning.
type label struct {
	row  int
	x    float64
	ends bool
}

func (d *drawing) place(x float64, text string) label {
	return label{x: x, ends: x+width(text) > 100}
}

func (l label) extent(text string) (from, to float64) {
	if l.ends {
		return l.x - width(text), l.x
	}
	return l.x, l.x + width(text)
}

// above places the names of the bars that can't hold them in rows above, none over another, and returns how many rows
// there are. The row of a name that its bar holds is -1. The last name gets the lowest row that is free: the line from
// an earlier one then passes on the left of it.
func (d *drawing) above(bars []Bar) (out []label, rows int) {
	out = make([]label, len(bars))
	var taken []float64 // by row from the lowest: where its leftmost name begins
	for i, b := range slices.Backward(bars) {
		l := d.place(d.x(b.From), b.Name)
		if l.row = -1; d.x(b.To)-d.x(b.From) < width(b.Name) {
			from, to := l.extent(b.Name)
			l.row = slices.IndexFunc(taken, func(begins float64) bool { return to <= begins })
			if l.row < 0 {
				l.row, taken = len(taken), append(taken, 0)
			}
			taken[l.row] = from
		}
		out[i] = l
	}
	for i := range out {
		if out[i].row >= 0 {
			out[i].row = len(taken) - 1 - out[i].row
		}
	}
	return out, len(taken)
}

func (d *drawing) text(l label, y int, text string) {
	class, dx := "", 3
	if l.ends {
		class, dx = ` class="ends"`, -3
	}
	d.add(
		`<text x="%.3f%%" dx="%d" y="%d"%s>%s</text>`,
		l.x,
		dx,
		y,
		class,
		html.EscapeString(text),
	)
}

// bar draws a bar, with its name if it holds it.
func (d *drawing) bar(b Bar, class string, y int, named bool) {
	says := html.EscapeString(fmt.Sprintf("%s: %.0f s to %.0f s%s", b.Name, b.From, b.To, b.More))
	d.add(`<svg x="%.3f%%" y="%d" width="%.3f%%" height="%d"><title>%s</title>`+
		`<rect width="100%%" height="100%%" class="%s"/>`, d.x(b.From), y, max(d.x(b.To)-d.x(b.From), 0.15), barHeight, says, class)
	if named {
		d.add(`<text x="4" y="14">%s</text>`, html.EscapeString(b.Name))
	}
	d.add("</svg>")
}

// row draws the bars of a load, a fault or a probe. Where none holds its name, the name stands beside them.
func (d *drawing) row(r Row, y int) {
	named := false
	for _, b := range r.Bars {
		holds := !named && d.x(b.To)-d.x(b.From) >= width(b.Name)
		d.bar(b, r.Class, y, holds)
		named = named || holds
	}
	if named || len(r.Bars) == 0 {
		return
	}
	l := d.place(d.x(r.Bars[len(r.Bars)-1].To), r.Name)
	if l.ends {
		l.x = d.x(r.Bars[0].From)
	}
	d.text(l, y+14, r.Name)
}

// axis draws the ticks. Those at an end keep their numbers within the picture.
func (d *drawing) axis(top, height int) {
	for _, at := range ticksOf(d.from, d.to, mostTicks) {
		x, class := d.x(at), "axis"
		switch {
		case x < 4:
			class = "axis starts"
		case x > 96:
			class = "axis ends"
		}
		d.add(`<line x1="%.3f%%" x2="%.3f%%" y1="%d" y2="%d" class="grid"/><text x="%.3f%%" y="%d" class="%s">%.0f</text>`,
			x, x, top, height+4, x, height+16, class, at)
	}
}

// describe says in words what the drawing shows.
func (l Lane) describe() string {
	out := []string{"Timeline of " + l.Arm}
	for _, b := range l.Phases {
		out = append(out, fmt.Sprintf("%s from %.0f s to %.0f s", b.Name, b.From, b.To))
	}
	for _, r := range l.Rows {
		for _, b := range r.Bars {
			out = append(
				out,
				fmt.Sprintf("%s from %.0f s to %.0f s", cmp.Or(b.Name, r.Name), b.From, b.To),
			)
		}
	}
	if len(l.Onset) > 0 {
		out = append(out, fmt.Sprintf("onset at %.0f s", l.Onset[0].Seconds))
	}
	return strings.Join(
		append(out, fmt.Sprintf("%d times something was captured", len(l.Captures)+len(l.Onset))),
		"; ",
	)
}
