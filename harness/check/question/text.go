package question

import (
	"fmt"
	"slices"
)

// Mebibytes formats a number of bytes for findings.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// FirstAndLast returns the first two and the last two of notes, with the number of those left out in between.
func FirstAndLast(notes []string) []string {
	if len(notes) <= 4 {
		return notes
	}
	left := fmt.Sprintf("… and %d more", len(notes)-4)
	return slices.Concat(notes[:2], []string{left}, notes[len(notes)-2:])
}
