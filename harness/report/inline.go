package report

import (
	"fmt"
	"html"
	"html/template"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a chart in a page: small, so that its letters can be read on a phone.
const (
	inlineWidth  = 13 * vg.Centimeter
	inlineHeight = 6 * vg.Centimeter
)

// themed replaces a chart's colours by those of the page, which has a light and a dark theme.
var themed = func() *strings.Replacer {
	pairs := []string{"fill:#FFFFFF", "fill:none", "#000000", "currentColor", "#808080", "var(--grid)",
		"font-family:Liberation Sans,Arial,Helvetica,sans-serif;", ""}
	for name, c := range map[string]color.NRGBA{"vulnerable": orange, "fixed": blue, "candidate": magenta,
		"amber": amber, "dim": grey} {
		for _, alpha := range []uint8{0xff, ofOne, ofAll} {
			pairs = append(pairs, printed(withAlpha(c, alpha)), "var(--"+name+")")
		}
	}
	return strings.NewReplacer(pairs...)
}()

// printed returns a colour as the drawing has it, which rounds one that is not opaque.
func printed(c color.NRGBA) string {
	r, g, b, a := c.RGBA()
	scale := 255.0 / float64(a)
	part := func(n uint32) int { return int(float64(n) * scale) }
	return fmt.Sprintf("#%02X%02X%02X", part(r), part(g), part(b))
}

// inline draws one figure as an element of a page, over the time that all figures of a trial share. The page writes the
// title and the legend.
func inline(f Figure, clocks []Clock, from, to float64) (template.HTML, error) {
	p, err := panel(f, clocks, false)
	if err != nil {
		return "", fmt.Errorf("drawing %s: %w", f.Title, err)
	}
	p.X.Min, p.X.Max = from, to
	canvas := vgsvg.New(inlineWidth, inlineHeight)
	p.Draw(draw.Crop(draw.New(canvas), 0, -3*vg.Millimeter, 0, -2*vg.Millimeter))
	raw, err := encoded(canvas)
	if err != nil {
		return "", err
	}
	_, drawing, ok := strings.Cut(string(raw), "<svg")
	_, drawing, also := strings.Cut(drawing, ">")
	if !ok || !also {
		return "", fmt.Errorf("drawing %s: the plot is no SVG", f.Title)
	}
	head := fmt.Sprintf(
		`<svg class="plot" viewBox="0 0 %.6g %.6g" role="img" aria-label="%s">`,
		float64(inlineWidth),
		float64(inlineHeight),
		html.EscapeString(described(f)),
	)
	return template.HTML(head + themed.Replace(drawing)), nil
}

// described says in words what a figure shows: each line's first, highest and last value.
func described(f Figure) string {
	out := []string{f.Title + ", in " + f.Unit}
	for _, l := range f.Lines {
		top := l.Points[0]
		for _, p := range l.Points {
			if p.Value > top.Value {
				top = p
			}
		}
		out = append(out, fmt.Sprintf(
			"%s: %s at first, at most %s at %.0f s, %s at last",
			l.Label(),
			number(l.Points[0].Value),
			number(top.Value),
			top.Seconds,
			number(l.Points[len(l.Points)-1].Value),
		))
	}
	return strings.Join(out, "; ")
}
