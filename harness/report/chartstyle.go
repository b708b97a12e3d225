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
	case role == scenario.Fixed:
		style.Dashes = []vg.Length{vg.Points(6), vg.Points(2)}
	case role != scenario.Vulnerable:
		style.Dashes = []vg.Length{vg.Points(2), vg.Points(2)}
	}
	return style
}

// The colours of charts. Those of the roles differ in lightness, too, and none of them is a colour of verdicts: that a
// vulnerable arm shows its illness is what everybody wants to see.
var (
	orange  = color.NRGBA{0xb8, 0x5c, 0x00, 0xff} // vulnerable
	blue    = color.NRGBA{0x1f, 0x77, 0xd0, 0xff} // fixed
	magenta = color.NRGBA{0x7d, 0x1f, 0x5c, 0xff} // candidate
	amber   = color.NRGBA{0xf9, 0xa8, 0x25, 0xff} // a fault that all arms have at the same time
	grey    = color.NRGBA{0x61, 0x61, 0x61, 0xff} // lines that belong to no arm
)

// How opaque the band of a fault is: of one arm, and of all.
const (
	ofOne = 0x28
	ofAll = 0x38
)

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

func colorOf(role string) color.NRGBA {
	switch role {
	case scenario.Vulnerable:
		return orange
	case scenario.Fixed:
		return blue
	}
	return magenta
}

// glyphOf returns the mark of a role's points.
func glyphOf(role string) draw.GlyphDrawer {
	switch role {
	case scenario.Vulnerable:
		return draw.CircleGlyph{}
	case scenario.Fixed:
		return draw.BoxGlyph{}
	}
	return draw.PyramidGlyph{}
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
	c.FillPolygon(
		b.color,
		[]vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}},
	)
}
