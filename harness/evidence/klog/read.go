package klog

import (
	"bufio"
	"bytes"
	"io"
	"time"
)

// MaxLine is the most bytes of a line that are kept. The rest is dropped, and the line is marked.
const MaxLine = 1 << 20

// block puts the lines of a message together whose value spans lines.
type block struct {
	text []byte
	cut  bool
}

// parse reads the message from the lines that have come so far.
func (b *block) parse(ref time.Time) Line {
	l, _ := Parse(b.text, ref)
	l.Cut = b.cut
	return l
}

// add takes the next line and reports whether the message is whole now, or as long as it may be.
func (b *block) add(text []byte, cut bool, ref time.Time) bool {
	b.cut = b.cut || cut
	if len(b.text)+1+len(text) > MaxLine {
		b.cut = true
	} else {
		b.text = append(append(b.text, '\n'), text...)
	}
	// Only a line with " >" can end a value, so that a long block is not parsed anew with each of its lines.
	if !b.cut && !bytes.HasPrefix(text, []byte(" >")) {
		return false
	}
	return b.cut || !b.parse(ref).Unfinished
}

// lines cuts the input into lines without their ends. A returned line is valid until the next call.
type lines struct {
	src  *bufio.Reader
	long []byte
	n    int
}

func (l *lines) next() (line []byte, cut bool, err error) {
	line, err = l.src.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.long = append(l.long[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = l.src.ReadSlice('\n')
			room := MaxLine - len(l.long)
			cut = cut || len(bytes.TrimRight(line, "\r\n")) > room
			l.long = append(l.long, line[:min(len(line), room)]...)
		}
		line = l.long
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, false, err
	}
	l.n++
	return bytes.TrimRight(line, "\r\n"), cut, nil
}
