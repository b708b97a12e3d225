package report

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// styleOf returns a style that tells a line from the others of its figure, also where colours don't. Lines for context
// are thin.
func styleOf(l Line, i int, clocks []Clock) draw.LineStyle {
	role := roleOf(l.Arm, clocks)
	style := draw.LineStyle{Color: colorOf(role), Width: vg.Points(1.5)}
	switch {
	case l.Of != "":
		style.Width = vg.Points(0.75)
		style.Dashes = []vg.Length{vg.Points(float64(1 + 2*(i%4))), vg.Points(1.5)}
		if l.Arm == "" {
			style.Color = grey
		}
	case role != scenario.Vulnerable:
		style.Dashes = []vg.Length{vg.Points(6), vg.Points(2)}
	}
	return style
}

// amber is the colour of a fault that all arms have at the same time.
var amber = color.NRGBA{0xf9, 0xa8, 0x25, 0xff}

// together reports whether a fault was in force in several arms, and in all of them at the same time.
func together(clocks []Clock) bool {
	for _, k := range clocks {
		if len(k.Faults) == 0 || !slices.EqualFunc(k.Faults, clocks[0].Faults,
			func(a, b Span) bool { return math.Abs(a.From-b.From) < 0.5 && math.Abs(a.To-b.To) < 0.5 }) {
			return false
		}
	}
	return len(clocks) > 1
}

// grey is the colour of lines that belong to no arm.
var grey = color.NRGBA{0x61, 0x61, 0x61, 0xff}

func colorOf(role string) color.NRGBA {
	switch role {
	case scenario.Vulnerable:
		return color.NRGBA{0xc6, 0x28, 0x28, 0xff}
	case scenario.Fixed:
		return color.NRGBA{0x15, 0x65, 0xc0, 0xff}
	}
	return color.NRGBA{0xef, 0x6c, 0x00, 0xff}
}

func withAlpha(c color.NRGBA, alpha uint8) color.NRGBA {
	c.A = alpha
	return c
}

func roleOf(arm string, clocks []Clock) string {
	for _, k := range clocks {
		if k.Arm == arm {
			return k.Role
		}
	}
	return ""
}

// band shades stretches of time over the whole height of a plot.
type band struct {
	spans []Span
	color color.Color
}

// Plot implements plot.Plotter.
func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, s := range b.spans {
		c.FillPolygon(b.color, []vg.Point{{X: x(s.From), Y: c.Min.Y}, {X: x(s.To), Y: c.Min.Y},
			{X: x(s.To), Y: c.Max.Y}, {X: x(s.From), Y: c.Max.Y}})
	}
}

// Thumbnail implements plot.Thumbnailer.
func (b band) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.color, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}
