package pasted

import (
	"bytes"
	"regexp"
)

// The width of a terminal, and how many lines show it.
const (
	narrowest, widest = 60, 500
	broken            = 2
)

// unfold joins lines that are as wide as any line is to what comes below them, if stacks have more calls then, or if
// nearly all lines begin as programs log then.
func unfold(text []byte) ([]byte, bool) {
	widthOf := 0
	n := 0
	for line := range bytes.Lines(text) {
		switch wide := width(bytes.TrimRight(line, "\r\n")); {
		case wide > widthOf:
			widthOf, n = wide, 1
		case wide == widthOf:
			n++
		}
	}
	if n < broken || widthOf < narrowest || widthOf > widest {
		return nil, false
	}
	var out bytes.Buffer
	joins := 0
	var open []byte // a line whose end was not written yet
	for line := range bytes.Lines(text) {
		if open != nil && opens.Match(line) {
			out.Write(open)
		} else if open != nil {
			joins++
		}
		body := bytes.TrimRight(line, "\r\n")
		open = nil
		if width(body) == widthOf {
			open = line[len(body):]
			line = body
		}
		out.Write(line)
	}
	out.Write(open)
	if joins == 0 {
		return nil, false
	}
	if hasAny(bytes.Contains, text, stackMarks) {
		whole, _ := rejoined(lines(text))
		is, _ := rejoined(lines(out.Bytes())) // what is wider than a line was broken within a word, and the rest at spaces
		if countCalls(is) > countCalls(whole) {
			return out.Bytes(), true
		}
	}
	return out.Bytes(), allLogged(out.Bytes()) && !allLogged(text)
}

// unfoldBelow joins the lines that a terminal had broken before a program put a prefix before each of them.
func (t *Text) unfoldBelow() {
	if len(t.Did) == 0 || !mayHaveStacks(t.Lines) {
		return
	}
	var text bytes.Buffer
	for _, l := range t.Lines {
		if l.File != "" { // of several files
			return
		}
		text.Write(l.Text)
		text.WriteByte('\n')
	}
	if out, ok := unfold(text.Bytes()); ok {
		t.Lines = numbered(lines(out), t.Lines)
		t.did("joined the lines that a terminal had broken")
	}
}

// numbered gives lines the numbers of those that they were made of, each of one or more of these.
func numbered(joined, all []Line) []Line {
	i := 0
	for k := range joined {
		if i < len(all) {
			joined[k].N = all[i].N
		}
		for n := 0; i < len(all) && (n == 0 || n < len(joined[k].Text)); i++ {
			n += len(all[i].Text)
		}
	}
	return joined
}

// width returns how many columns a line takes on a terminal. A tab goes to the next eighth one.
func width(line []byte) (n int) {
	for _, c := range line {
		if n++; c == '\t' {
			n = (n + 7) / 8 * 8
		}
	}
	return n
}

// opens matches how lines begin that go on with no line above them: what programs log, and what stacks have.
var opens = regexp.MustCompile(
	`^(?:\s*$|\t|[IWEF][0-9]{4} [0-9:.]+ |[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]+|[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} |\{"|goroutine [0-9]+ \[|created by |(?:panic|fatal error): )`,
)

// allLogged reports whether nine of ten lines of a text begin as programs log, and are not of stacks.
func allLogged(text []byte) bool {
	all, begun := 0, 0
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if all++; line[0] != '\t' && opens.Match(line) {
			begun++
		}
	}
	return begun*10 >= all*9
}
