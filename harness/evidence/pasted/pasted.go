// Package pasted reads texts as people have them: quoted, indented, numbered, coloured, exported by a viewer of logs. It
// gives back the lines that the program wrote. It goes in three steps: it decodes the text (decode.go), takes off what
// neighbouring lines share (strip.go), and puts stacks together again (stack.go). A new form is a row in one of them.
//
// What is as a program wrote it stays as it is, and so does what package goroutine takes off by itself: the wrappings of
// CRI, docker, journald, kubectl and klog.
package pasted

import (
	"bytes"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// Line is a line of a text.
type Line struct {
	Text []byte // without its end
	// N is its number in the text that was given, from 1. Lines of an export, or of a text that ran backwards, are
	// counted in the order in which they are returned.
	N int
	// Prose says that a person wrote the line to explain something: what it quotes was not seen by whoever has the text.
	Prose bool
	File  string // the name of a file that a tool had put before it, "" if none had
}

// Text is what Read returns.
type Text struct {
	Lines []Line
	Did   []string // what was done to the text, in order; none if it is as it was
	Part  string   // why a dump in the text may lack something, "" if nothing shows that
	Files []string // the names of files that a tool had put before lines
	// Teaches says that the text explains something to others: the evidence in it may be anybody's, or nobody's.
	Teaches bool
	// Tests is what shows that the text is a report of tests, as their tools write it for programs; "" if nothing does.
	Tests string
	Begin []byte // the first lines, without what a collector of logs has put before each; none of a long text
	Ended bool   // the last line has its end, or the form that it was taken from proves that it is whole
}

// maxProse is the longest text, in bytes, whose lines are told from prose. People don't write longer ones.
const maxProse = 512 << 10

// Read reads a text. It takes memory of several times its length.
func Read(raw []byte) Text {
	t := Text{Ended: bytes.HasSuffix(raw, newline), Tests: reportOfTests(raw)}
	records, did := decode(raw)
	if len(did) > 0 && did[len(did)-1] == exported {
		t.Ended = true
	}
	t.Did = did
	t.Lines = lines(records)
	t.strip()
	t.unfoldBelow()
	t.divide()
	t.rejoin()
	t.rejoinLogs()
	if backwards(t.Lines) {
		slices.Reverse(t.Lines)
		t.did("turned the lines around, of which the newest was the first")
		for i := range t.Lines {
			t.Lines[i].N = i + 1
		}
	}
	t.assemble()
	if len(raw) <= maxProse {
		t.explain()
	}
	t.leftOut()
	return t
}

var newline = []byte("\n")

func (t *Text) did(what string) {
	if !slices.Contains(t.Did, what) {
		t.Did = append(t.Did, what)
	}
}

// lines splits a text into lines.
func lines(text []byte) []Line {
	out := make([]Line, 0, bytes.Count(text, newline)+1)
	for n := 1; len(text) > 0; n++ {
		one, rest, _ := bytes.Cut(text, newline)
		out = append(out, Line{Text: bytes.TrimRight(one, "\r"), N: n})
		text = rest
	}
	return out
}

// begins reports whether a dump begins with this line, as package goroutine reads it.
func begins(line []byte) bool {
	var f goroutine.Finder
	f.Line(line)
	return f.Inside() > 0
}

// frames returns about how much of stacks package goroutine reads from a text as it is.
func frames(text []byte) (n int) {
	if !bytes.Contains(text, word) {
		return 0
	}
	var f goroutine.Finder
	count := func(d *goroutine.Found) {
		if d == nil {
			return
		}
		n += d.Total
		for _, g := range d.Groups {
			n += len(g.Frames)
		}
	}
	for _, l := range lines(text) {
		count(f.Line(l.Text))
	}
	count(f.End(false))
	return n
}

var word = []byte("goroutine ")
