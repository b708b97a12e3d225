package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Violation is one mistake in a scenario file. Line and Column count from 1; both are 0 if the scenario has no text,
// because Override changed it. Path is the field, for example spec.faults[0].spec.latency.
type Violation struct {
	File    string
	Line    int
	Column  int
	Path    string
	Message string
}

// String returns "file:line:column: path: message".
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(v.File)
	if v.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", v.Line, v.Column)
	}
	if v.Path != "" {
		b.WriteString(": " + v.Path)
	}
	b.WriteString(": " + v.Message)
	return b.String()
}

// Violations lists all mistakes in a file, in the order of the text. Load, Parse and Override return it if the content
// is wrong, as opposed to a file that can't be read.
type Violations []Violation

// Error returns all violations, one on each line.
func (vs Violations) Error() string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = v.String()
	}
	return strings.Join(lines, "\n")
}

func (vs Violations) sorted() Violations {
	slices.SortStableFunc(vs, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(vs)
}

// nearest returns the known name that a misspelt one most likely means, "" if none is close.
func nearest(name string, known []string) string {
	best, bestDist := "", 1+max(len(name), 3)/3
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < bestDist {
			best, bestDist = k, d
		}
	}
	return best
}

// distance returns the number of bytes to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// oneOf lists the known names, and says which of them name probably meant.
func oneOf(name string, known []string) string {
	if len(known) == 0 {
		return "(none is known)"
	}
	out := "(want one of " + strings.Join(known, ", ")
	if n := nearest(name, known); n != "" {
		out += "; did you mean " + n + "?"
	}
	return out + ")"
}
