package report

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
)

// The limits of a flame graph. Frames narrower than leastShare are left out; if there are too many frames, that share
// grows.
const (
	leastShare = 0.002
	mostFrames = 900
	mostRows   = 60
	rowHeight  = 18 // of the page's pixels
)

// flameSVG draws a tree of frames, with the outermost call at the top and each frame as wide as its value. In a
// comparison the width is the sum of both values, and the colour says which of them is larger.
//
// It is drawn here because no maintained library draws one without a script or a server: pprof's own view needs both.
// Nested elements clip their text, and widths in percent fit any screen.
func flameSVG(root *Frame, label, unit string, names [2]string) template.HTML {
	total := root.A + root.B
	if total <= 0 {
		return ""
	}
	least := leastShare
	for count(root, least*total, 0) > mostFrames {
		least *= 1.5
	}
	d := drawing{least: least * total, total: total, unit: unit, names: names, root: root}
	d.frame(root, 0, 0)
	return template.HTML(fmt.Sprintf(`<svg class="flame" width="100%%" height="%d" role="img" aria-label="%s">`, (d.rows+1)*rowHeight, html.EscapeString(label)) +
		d.out.String() + "</svg>")
}

func count(f *Frame, least float64, row int) int {
	n := 1
	for _, c := range f.Children {
		if c.A+c.B >= least && row < mostRows {
			n += count(c, least, row+1)
		}
	}
	return n
}

type drawing struct {
	out          strings.Builder
	root         *Frame
	least, total float64
	unit         string
	names        [2]string // of A and B; the second is "" where there is one profile only
	rows         int
}

// frame draws f in a row, from a left edge on, and the functions that f called in the rows below.
func (d *drawing) frame(f *Frame, left float64, row int) {
	shown, passed := f.Name, []string(nil)
	f, passed = d.descend(f)
	if len(passed) > 0 {
		shown = fmt.Sprintf("… %d frames down to %s", len(passed), short(f.Name))
	} else {
		shown = short(shown)
	}
	d.rows = max(d.rows, row)
	share := (f.A + f.B) / d.total * 100
	fmt.Fprintf(&d.out, `<svg x="%.3f%%" y="%d" width="%.3f%%" height="%d"><title>%s</title><rect width="100%%" height="100%%" class="%s"/>`,
		left/d.total*100, row*rowHeight, share, rowHeight-1, html.EscapeString(d.title(f, passed)), d.class(f))
	if share > 1.2 {
		fmt.Fprintf(&d.out, `<text x="3" y="13">%s</text>`, html.EscapeString(shown))
	}
	d.out.WriteString("</svg>")
	if row >= mostRows {
		return
	}
	for _, c := range f.Children {
		if c.A+c.B >= d.least {
			d.frame(c, left, row+1)
		}
		left += c.A + c.B
	}
}

// descend skips frames that call only one other frame: four or more of them become one row. It returns the last frame,
// and the names of all frames in the row.
func (d *drawing) descend(f *Frame) (*Frame, []string) {
	var passed []string
	at := f
	for len(at.Children) > 0 && at != d.root {
		next := slices.MaxFunc(at.Children, func(a, b *Frame) int { return cmp.Compare(a.A+a.B, b.A+b.B) })
		if (next.A+next.B)*1.005 < at.A+at.B {
			break
		}
		passed = append(passed, at.Name)
		at = next
	}
	if len(passed) < 4 {
		return f, nil
	}
	return at, append(passed, at.Name)
}

func (d *drawing) title(f *Frame, passed []string) string {
	of := func(n, total float64) string {
		if total == 0 {
			return "none"
		}
		return fmt.Sprintf("%s %s, %.1f %%", number(n), d.unit, n/total*100)
	}
	out := f.Name
	if len(passed) > 0 {
		out = strings.Join(passed, "\n")
	}
	if d.names[1] == "" {
		return out + "\n" + of(f.A, d.root.A)
	}
	return fmt.Sprintf("%s\n%s: %s\n%s: %s", out, d.names[0], of(f.A, d.root.A), d.names[1], of(f.B, d.root.B))
}

// class returns the class of a frame in the style sheet: whose code it is, or in a comparison which profile has more of
// it.
func (d *drawing) class(f *Frame) string {
	if d.names[1] != "" {
		switch r := (f.A - f.B) / (f.A + f.B); {
		case r > 0.8:
			return "a3"
		case r > 0.4:
			return "a2"
		case r > 0.1:
			return "a1"
		case r < -0.8:
			return "b3"
		case r < -0.4:
			return "b2"
		case r < -0.1:
			return "b1"
		}
		return "ab"
	}
	name, _, _ := strings.Cut(f.Name, "[") // type parameters have paths, too
	first, _, path := strings.Cut(name, "/")
	switch {
	case f == d.root:
		return "f0"
	case strings.HasPrefix(name, "runtime.") || first == "runtime" || strings.HasPrefix(name, "internal/runtime/"):
		return "f1"
	case first == "k8s.io" || strings.HasPrefix(name, "main."):
		return "f4"
	case !path || !strings.Contains(first, "."): // the standard library has no host in its paths
		return "f2"
	}
	return "f3"
}

// short returns the name of a function without the front of its import path and without its type parameters.
func short(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name[strings.LastIndexByte(name, '/')+1:]
}
