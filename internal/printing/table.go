package printing

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
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
func (t Table) Text() string {
	var aligned bytes.Buffer
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	if len(t.Header) > 0 {
		fmt.Fprintln(w, strings.ToUpper(strings.Join(t.Header, "\t")))
	}
	for _, row := range t.Rows {
		fmt.Fprintln(w, strings.Join(t.cells(row, unbroken), "\t"))
	}
	_ = w.Flush() // into memory
	var b strings.Builder
	for line := range strings.Lines(aligned.String()) {
		b.WriteString(strings.TrimRight(t.Indent+line, " \n") + "\n")
	}
	return b.String()
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
