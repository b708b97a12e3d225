package printing

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Table is a table with one line of text in each cell.
type Table struct {
	Header []string // names of the columns, in lower case; Text leaves the header out if there is none
	Rows   [][]string
	Empty  string // stands in each empty cell
	Indent string // begins each line of Text
}

// Add adds a row. Each cell is written as fmt.Sprint writes it.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.Rows = append(t.Rows, row)
}

// Text returns the table in aligned columns, with the header in upper case and no blanks at the end of a line.
func (t Table) Text() string { return t.Fit(0) }

// Fit returns the table as Text does, in lines of at most so many characters: where they would be longer, the widest
// columns are broken into lines, between words. Nothing is cut off, so that what has no blanks may still be too long. A
// width of 0 is no limit.
func (t Table) Fit(width int) string {
	var rows [][]string
	if len(t.Header) > 0 {
		rows = append(rows, strings.Split(strings.ToUpper(strings.Join(t.Header, "\t")), "\t"))
	}
	for _, row := range t.Rows {
		rows = append(rows, t.cells(row, unbroken))
	}
	var aligned bytes.Buffer
	w := tabwriter.NewWriter(&aligned, 0, 0, gap, ' ', 0)
	limits := columns(rows, width-len(t.Indent))
	for _, row := range rows {
		for _, line := range broken(row, limits) {
			fmt.Fprintln(w, strings.Join(line, "\t"))
		}
	}
	_ = w.Flush() // into memory
	var b strings.Builder
	for line := range strings.Lines(aligned.String()) {
		b.WriteString(strings.TrimRight(t.Indent+line, " \n") + "\n")
	}
	return b.String()
}

// gap is how many blanks stand between columns.
const gap = 2

// narrowest is the width below which no column is broken into lines.
const narrowest = 16

// columns returns how wide each column is, the widest ones narrowed until all of them fit a width. Without a width it
// returns nil.
func columns(rows [][]string, width int) []int {
	if width <= 0 {
		return nil
	}
	var out []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(out) {
				out = append(out, 0)
			}
			out[i] = max(out[i], utf8.RuneCountInString(cell))
		}
	}
	all := -gap
	for _, n := range out {
		all += n + gap
	}
	for ; all > width; all-- {
		widest := 0
		for i, n := range out {
			if n > out[widest] {
				widest = i
			}
		}
		if out[widest] <= narrowest {
			break
		}
		out[widest]--
	}
	return out
}

// broken returns a row as lines whose cells are within the limits, as far as there are blanks to break them at.
func broken(row []string, limits []int) [][]string {
	if limits == nil {
		return [][]string{row}
	}
	lines := [][]string{make([]string, len(row))}
	for i, cell := range row {
		at := 0
		for word := range strings.SplitSeq(cell, " ") {
			switch have := lines[at][i]; {
			case have == "":
				lines[at][i] = word
				continue
			case utf8.RuneCountInString(have)+1+utf8.RuneCountInString(word) <= limits[i]:
				lines[at][i] += " " + word
				continue
			}
			if at++; at == len(lines) {
				lines = append(lines, make([]string, len(row)))
			}
			lines[at][i] = word
		}
	}
	return lines
}

// Markdown returns the table as GitHub's Markdown. A cell may have markup, but no HTML.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.Header)
	b.WriteString("|" + strings.Repeat("---|", len(t.Header)) + "\n")
	for _, row := range t.Rows {
		line(t.cells(row, Escape))
	}
	return b.String()
}

func (t Table) cells(row []string, fit func(string) string) []string {
	out := make([]string, len(row))
	for i, cell := range row {
		if cell == "" {
			cell = t.Empty
		}
		out[i] = fit(cell)
	}
	return out
}

// Escape returns a text as one line of Markdown that fits a table's cell and has no HTML.
func Escape(s string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(unbroken(s)) }

// OneLine joins the lines and words of a text by single blanks.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// unbroken returns a text without what would begin another line or column. All others stay as they are.
func unbroken(s string) string {
	if strings.ContainsAny(s, "\n\r\t\v\f") {
		return OneLine(s)
	}
	return s
}
