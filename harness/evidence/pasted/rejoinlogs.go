package pasted

import (
	"bytes"
	"unicode/utf8"
)

const (
	widestMail = 120 // columns of a mail's lines, at most
	leastJoins = 2
	mostPieces = 200 // lines that one logged line is broken into, at most
)

// rejoinLogs joins what klog has logged in one line each where a program for mail has broken these lines at spaces: a
// line below the first of a message is a part of it if its first word had no room above. The widest line with a space
// shows how much room there was.
func (t *Text) rejoinLogs() {
	room, begun := 0, 0
	candidates := make([]bool, len(t.Lines)) // lines that may go on with what klog has logged above
	inside := false
	for i, l := range t.Lines {
		switch {
		case begunByKlog(l.Text):
			inside = true
			begun++
		case inside:
			inside = goesOn(l.Text)
			candidates[i] = inside
		}
		if inside && bytes.IndexByte(l.Text, ' ') >= 0 {
			room = max(room, utf8.RuneCount(l.Text))
		}
	}
	if begun == 0 || room > widestMail || room < narrowest/2 {
		return
	}
	broken, others := 0, 0
	for i, is := range candidates {
		if !is {
			continue
		}
		if !hadRoom(t.Lines[i-1].Text, t.Lines[i].Text, room) {
			broken++
		} else {
			others++
		}
	}
	if broken < leastJoins || others*10 > broken {
		return
	}
	out := t.Lines[:0:0]
	last, pieces := []byte(nil), 0 // the line above, as it is in the text
	for i, l := range t.Lines {
		is := l.Text
		if n := len(out); candidates[i] && pieces < mostPieces && !hadRoom(last, is, room) {
			pieces++
			above := bytes.TrimRight(out[n-1].Text, " \t")
			out[n-1].Text = append(append(above[:len(above):len(above)], ' '), bytes.TrimLeft(is, " \t")...)
		} else {
			out, pieces = append(out, l), 0
		}
		last = is
	}
	t.Lines = out
	t.did("joined the lines that a program for mail had broken")
}

// begunByKlog reports whether klog has begun a line.
func begunByKlog(line []byte) bool {
	return len(line) > len("I0211 08:00:00.") && bytes.IndexByte([]byte("IWEF"), line[0]) >= 0 && line[5] == ' ' &&
		'0' <= line[1] && line[1] <= '9' && written.Match(line)
}

// goesOn reports whether a line may be a part of what was logged above it.
func goesOn(line []byte) bool {
	core := bytes.TrimSpace(line)
	return len(core) > 0 && line[0] != '\t' && !dying.Match(core) && !fence.Match(line) && kindOf(core) == other &&
		!opens.Match(line)
}

// hadRoom reports whether the first word of a line would have had room at the end of the line above.
func hadRoom(above, line []byte, room int) bool {
	word, _, _ := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte(" "))
	return utf8.RuneCount(bytes.TrimRight(above, " \t"))+1+utf8.RuneCount(word) <= room
}
