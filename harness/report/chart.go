package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/kube-relapse/relapse/harness/judge"
)

// The size of a chart. Each figure in it is panelHeight high.
const (
	chartWidth  = 24 * vg.Centimeter
	panelHeight = 8 * vg.Centimeter
)

// hole is the longest time between two samples, in seconds, that a line is drawn across. In a longer one nothing is
// known.
const hole = 20

// most is how many points of a line are drawn. If a line has more, the highest and the lowest point of each stretch are
// drawn, so that no peak is lost.
const most = 1500

// chart draws figures one above the other on one time axis, as an SVG. The same figures give the same bytes.
func chart(figures []Figure, clocks []Clock) ([]byte, error) {
	panels := make([][]*plot.Plot, len(figures))
	from, to := extent(figures, clocks)
	for i, f := range figures {
		p, err := panel(f, clocks, true)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", f.Title, err)
		}
		p.X.Min, p.X.Max = from, to
		panels[i] = []*plot.Plot{p}
	}
	canvas := vgsvg.New(chartWidth, panelHeight*vg.Length(len(figures)))
	tiles := draw.Tiles{
		Rows:     len(figures),
		Cols:     1,
		PadY:     4 * vg.Millimeter,
		PadTop:   2 * vg.Millimeter,
		PadRight: 4 * vg.Millimeter,
	}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		panels[i][0].Draw(row[0])
	}
	return encoded(canvas)
}

// encoded returns a canvas as an SVG.
func encoded(canvas *vgsvg.Canvas) ([]byte, error) {
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("drawing a chart: %w", err)
	}
	// The font isn't embedded, because it is larger than the drawing. Where it isn't installed, one of the same widths
	// or a similar one is used.
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// ticks returns the ticks of the time axis, where the table of the values has its rows.
func ticks(from, to float64) []plot.Tick {
	var out []plot.Tick
	for _, at := range steps(from, to) {
		out = append(out, plot.Tick{Value: at, Label: fmt.Sprintf("%.0f", at)})
	}
	return out
}

// valueTicks returns gonum's own ticks, with labels of no more digits than they need.
func valueTicks(from, to float64) []plot.Tick {
	out := plot.DefaultTicks{}.Ticks(from, to)
	for i, t := range out {
		if t.Label != "" && math.Abs(t.Value) >= 0.01 {
			out[i].Label = number(t.Value)
		}
	}
	return out
}

// extent returns the stretch of time that covers all lines and faults. It always includes 0.
func extent(figures []Figure, clocks []Clock) (from, to float64) {
	for _, f := range figures {
		for _, l := range f.Lines {
			from, to = min(from, l.Points[0].Seconds), max(to, l.Points[len(l.Points)-1].Seconds)
		}
	}
	for _, k := range clocks {
		for _, s := range k.Faults {
			from, to = min(from, s.From), max(to, s.To)
		}
	}
	return from, to
}

// panel draws one figure: a band for each arm's fault, and over the bands a line for each arm. names adds a title and a
// legend; without them the page around the figure has its own.
func panel(f Figure, clocks []Clock, names bool) (*plot.Plot, error) {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if names {
		p.Title.Text = f.Title
	}
	p.Title.TextStyle.Font = font.From(sans, 11)
	p.X.Label.Text = "seconds since the fault was seen"
	for _, k := range clocks {
		if !k.Seen {
			p.X.Label.Text = "seconds since the fault was seen, or its phase began"
		}
	}
	p.X.Tick.Marker = plot.TickerFunc(ticks)
	p.Y.Label.Text = f.Unit
	p.Y.Tick.Marker = plot.TickerFunc(valueTicks)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = font.From(sans, 10)
		a.Tick.Label.Font = font.From(sans, 9)
	}
	p.Legend.TextStyle.Font = font.From(sans, 9)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, 2*vg.Millimeter
	p.Add(plotter.NewGrid())
	for _, k := range clocks {
		if len(k.Faults) == 0 {
			continue
		}
		b, name := band{
			spans: k.Faults,
			color: withAlpha(colorOf(k.Role), ofOne),
		}, "fault in "+k.Arm
		if together(clocks) {
			b.color, name = withAlpha(amber, ofAll), "fault in force"
		}
		p.Add(b)
		if names {
			p.Legend.Add(name, b)
		}
		if together(clocks) {
			break
		}
	}
	top := 0.0
	for i, l := range f.Lines {
		thumbs, err := addLine(p, f, l, styleOf(l, i, clocks), glyphOf(roleOf(l.Arm, clocks)))
		if err != nil {
			return nil, err
		}
		if names {
			p.Legend.Add(l.Label(), thumbs...)
		}
		for _, at := range l.Points {
			top = max(top, at.Value)
		}
	}
	if top == 0 {
		top = 1
	}
	p.Y.Min, p.Y.Max = 0, top*1.08
	if names {
		p.Y.Max = top * 1.4 // room for the legend
	}
	return p, nil
}

// addLine draws one line of a figure and returns its parts for the legend. A line has a break at each hole. For dumps
// it has a mark at each dump, and goes through all of them to lead the eye.
func addLine(
	p *plot.Plot,
	f Figure,
	l Line,
	style draw.LineStyle,
	mark draw.GlyphDrawer,
) ([]plot.Thumbnailer,
	error) {
	var first *plotter.Line
	for _, part := range parts(l.Points, f.Dumps) {
		line, err := plotter.NewLine(thinned(part))
		if err != nil {
			return nil, err
		}
		line.LineStyle = style
		p.Add(line)
		if first == nil {
			first = line
		}
	}
	thumbs := []plot.Thumbnailer{first}
	if f.Dumps {
		marks, err := plotter.NewScatter(xys(l.Points))
		if err != nil {
			return nil, err
		}
		marks.GlyphStyle = draw.GlyphStyle{
			Color:  style.Color,
			Radius: vg.Points(2.5),
			Shape:  mark,
		}
		p.Add(marks)
		thumbs = append(thumbs, marks)
	}
	return thumbs, nil
}

// parts cuts a line where no value was taken for longer than hole. A line of dumps is not cut: dumps are far apart by
// nature, and their marks show that.
func parts(points []Point, dumps bool) [][]Point {
	var out [][]Point
	for i, p := range points {
		if i == 0 || !dumps && p.Seconds-points[i-1].Seconds > hole {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

func thinned(points []Point) plotter.XYs {
	if len(points) <= most {
		return xys(points)
	}
	var out []Point
	step := (2*len(points) + most - 1) / most
	for i := 0; i < len(points); i += step {
		low, high := i, i
		for j := i; j < min(i+step, len(points)); j++ {
			if points[j].Value < points[low].Value {
				low = j
			}
			if points[j].Value > points[high].Value {
				high = j
			}
		}
		out = append(out, points[min(low, high)], points[max(low, high)])
	}
	return xys(out)
}

func xys(points []Point) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		out[i].X, out[i].Y = p.Seconds, p.Value
	}
	return out
}

// chartFile returns the name of a trial's chart, which lies next to report.md.
func chartFile(v judge.Verdict, t Trial) string {
	if len(v.Trials) == 1 {
		return "series.svg"
	}
	return "series-" + strings.ReplaceAll(t.ID, "/", "_") + ".svg"
}
