package pasted

import (
	"bytes"
	"regexp"
	"slices"
)

// filed matches what grep puts before a line of one of several files: its name, and with -n the line's number.
var filed = regexp.MustCompile(`^\s*([^\s:|>]*[A-Za-z_][^\s:|>]*?)(?:[:-][0-9]+)?[:-]\s*$`)

// lineNumber matches the number of a line as web pages write it, L12, which is no file.
var lineNumber = regexp.MustCompile(`^L[0-9]+$`)

// fileBefore returns the name of the file in what a tool put before a line, "" if there is none.
func fileBefore(prefix []byte) string {
	m := filed.FindSubmatch(prefix)
	if m == nil || lineNumber.Match(m[1]) {
		return ""
	}
	return string(m[1])
}

// divide puts a line between the lines of two files, as head and tail do: they may be of two processes.
func (t *Text) divide() {
	last := ""
	var out []Line
	for i, l := range t.Lines {
		if l.File != "" {
			if !slices.Contains(t.Files, l.File) && len(t.Files) < maxFiles {
				t.Files = append(t.Files, l.File)
			}
			if last != "" && l.File != last {
				if out == nil {
					out = append(make([]Line, 0, len(t.Lines)+8), t.Lines[:i]...)
				}
				out = append(out, Line{Text: append(append([]byte("==> "), bytes.TrimSpace([]byte(l.File))...), " <=="...), N: l.N})
			}
			last = l.File
		}
		if out != nil {
			out = append(out, l)
		}
	}
	if out != nil {
		t.Lines = out
		t.did("told apart the lines of the files that they name")
	}
}

// maxFiles bounds the names of files that are kept.
const maxFiles = 64
