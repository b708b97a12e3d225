package pasted

import (
	"bytes"
	"regexp"
)

var (
	flatHeader = regexp.MustCompile(`\s+(goroutine [0-9]+ \[[^\]\n]{1,80}\]:)\s+`)
	flatPlace  = regexp.MustCompile(`\s+([^\s"'=]+\.(?:go|s):[0-9]+(?: \+0x[0-9a-f]+)?)(?:\s+|$)`)
	flatLogged = regexp.MustCompile(`\s+([IWEF][0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]+ )`)
	flatDying  = regexp.MustCompile(`\s+((?:panic|fatal error): )`)
	flatSignal = regexp.MustCompile(`\s+(\[signal [^\]\n]*\])`)
)

// leastFlat is how many places of frames show that a line was several.
const leastFlat = 3

// flattened puts line ends back where a form for one line, or a cell of a table, has made spaces of them.
func flattened(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte(".go:")) {
		return nil, false
	}
	found := false
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		if len(line) < 200 || bytes.Count(line, []byte(".go:")) < leastFlat || len(flatPlace.FindAll(line, leastFlat)) < leastFlat {
			out.Write(line)
			continue
		}
		found = true
		line = flatLogged.ReplaceAll(line, []byte("\n$1"))
		line = flatDying.ReplaceAll(line, []byte("\n$1"))
		line = flatSignal.ReplaceAll(line, []byte("\n$1"))
		line = flatHeader.ReplaceAll(line, []byte("\n\n$1\n"))
		line = flatPlace.ReplaceAll(line, []byte("\n\t$1\n"))
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	return out.Bytes(), found
}
