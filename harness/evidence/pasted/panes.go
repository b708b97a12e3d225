package pasted

import (
	"bytes"
	"unicode/utf8"
)

// borders are what multiplexers of terminals draw between panes that stand side by side.
var borders = []string{"│", "┃", "║"}

const (
	leastPanes = 8 // lines that show that panes stand side by side
	maxPanes   = 6
)

// panes puts panes that stand side by side below each other, the left one first. A pane breaks its lines by itself.
func panes(text []byte) ([]byte, bool) {
	for _, border := range borders {
		if !bytes.Contains(text, []byte(border)) {
			continue
		}
		all := lines(text)
		var bodies [][]byte
		for _, l := range all {
			bodies = append(bodies, l.Text)
		}
		columns := split(bodies, border, maxPanes)
		if len(columns) < 2 {
			return nil, false
		}
		var out bytes.Buffer
		for _, rows := range columns {
			pane := append(bytes.Join(rows, newline), '\n')
			if whole, ok := unfold(pane); ok {
				pane = whole
			}
			out.WriteString("==> pane <==\n")
			out.Write(pane)
		}
		return out.Bytes(), true
	}
	return nil, false
}

// split divides rows at a border that nearly all of them have in the same column; it returns the rows as they are if
// there is none. A table has borders at its edges, too, and is none.
func split(rows [][]byte, border string, most int) [][][]byte {
	at, n := map[int]int{}, 0
	for _, row := range rows {
		if len(row) == 0 {
			continue
		}
		if n++; bytes.HasPrefix(row, []byte(border)) {
			return [][][]byte{rows}
		}
		if i := bytes.Index(row, []byte(border)); i > 0 {
			at[utf8.RuneCount(row[:i])]++
		}
	}
	column := -1
	for c, times := range at {
		if times >= leastPanes && times*10 >= n*8 && (column < 0 || c < column) {
			column = c
		}
	}
	if column < 0 || most < 2 {
		return [][][]byte{rows}
	}
	var left, right [][]byte
	for _, row := range rows {
		i := bytes.Index(row, []byte(border))
		if i < 0 || utf8.RuneCount(row[:i]) != column {
			left = append(left, row) // a border of panes above and below each other, or what a pane had not filled
			continue
		}
		left = append(left, bytes.TrimRight(row[:i], " "))
		right = append(right, row[i+len(border):])
	}
	return append([][][]byte{left}, split(right, border, most-1)...)
}
