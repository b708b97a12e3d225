package match

import (
	"bytes"
	"regexp"
)

// boundary reports whether the text of another process may begin with a line: people and tools mark where they put texts
// one below the other, and tell pods apart. writer is the pod that has written the line, with its container.
func (s *source) boundary(raw []byte) (writer string, begins bool) {
	switch {
	case len(raw) == 0 || raw[0] == '\t':
		return s.writer, false
	case bytes.HasPrefix(raw, []byte("[pod/")):
		writer = string(raw[:bytes.IndexByte(raw, ']')+1])
		return writer, writer != s.writer
	}
	return "", s.writer != "" || s.inside && string(raw) == "--" ||
		bytes.IndexByte(beginDivides, raw[0]) >= 0 && len(raw) < 400 && divides.Match(raw)
}

var (
	// divides matches the fences and headings of Markdown, and what head, tail and scripts put above each of several
	// files.
	divides = regexp.MustCompile("^ {0,8}(?:```|~~~)|^#{1,6} [A-Z]|^==> .* <==\\s*$|" +
		`^(?:={2,}|-{3,}|\*{3,})>? ?[^\s=*-].*(?:={2,}|-{3,}|\*{3,})\s*$`)
	beginDivides = []byte("`~=#-* ")
)
