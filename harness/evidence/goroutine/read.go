package goroutine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// maxLine is the most bytes of a line that are kept. The rest is dropped, and the dump counts as truncated.
	maxLine = 1 << 20
	// runtimeLimit is where runtime/pprof stops writing debug=2 (writeGoroutineStacks in runtime/pprof/pprof.go).
	runtimeLimit = 64 << 20

	wanted = `"goroutine profile: total N" (debug=1) or "goroutine N [state]:" (debug=2)`
)

// Read reads one dump, of either format, wrapped or not, with LF or CRLF line ends. Text before the dump is skipped,
// and so are foreign lines between its goroutines.
//
// Memory grows with the number of distinct stacks, plus 8 bytes for each goroutine in debug=2. The error is r's, or
// says that there is no dump or more than one, with the line. A dump that was cut is not an error: see Dump.Truncated.
func Read(r io.Reader) (*Dump, error) {
	in := lines{src: bufio.NewReaderSize(r, 256<<10)}
	var d decoder
	for {
		line, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading goroutine dump after line %d: %w", in.n, err)
		}
		if err := d.raw(line, in.n); err != nil {
			return nil, err
		}
	}
	return d.finish(&in)
}

// decoder finds the dump in the input, takes its wrapping off, and hands the plain lines to the format's parser.
type decoder struct {
	first  []byte // the input's first line, for the error
	layers []*layer
	format Format
	groups groups
	stacks stacks
	prof   profile
	bytes  int64 // of the dump without its wrapping
}

// raw takes one line of the input.
func (d *decoder) raw(line []byte, n int) error {
	if d.format == 0 {
		if n == 1 {
			d.first = bytes.Clone(line[:min(len(line), 80)])
		}
		layers, format := detect(line, maxLayers)
		if format == 0 {
			return nil
		}
		d.layers, d.format = layers, format
	}
	if err := d.plain(0, line); err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	return nil
}

// plain takes the layers from i on off a line, one after the other, and parses the rest.
func (d *decoder) plain(i int, line []byte) error {
	if i == len(d.layers) {
		return d.parse(line)
	}
	text, ok := d.layers[i].feed(line)
	if !ok {
		return nil
	}
	for {
		one, rest, more := bytes.Cut(text, newline)
		if err := d.plain(i+1, bytes.TrimRight(one, "\r")); err != nil {
			return err
		}
		if !more || len(rest) == 0 {
			return nil
		}
		text = rest
	}
}

var (
	newline = []byte("\n")

	errSecond = errors.New("another goroutine dump begins; expected one dump in the input")
)

func (d *decoder) parse(line []byte) error {
	d.bytes += int64(len(line)) + 1
	if d.format == Stacks {
		if len(line) > 0 && line[0] == 'g' && isProfileHeader(line) {
			return errSecond
		}
		d.stacks.line(&d.groups, line)
		return nil
	}
	return d.prof.line(&d.groups, line)
}

func (d *decoder) finish(in *lines) (*Dump, error) {
	for i, l := range d.layers {
		if len(l.part) > 0 { // a line whose end never came
			in.cut = true
			if err := d.plain(i+1, l.part); err != nil {
				return nil, fmt.Errorf("line %d: %w", in.n, err)
			}
		}
	}
	if d.format == 0 {
		return nil, d.noDump(in)
	}
	out := &Dump{Format: d.format, Truncated: in.cut || in.unended && !d.selfContained()}
	switch d.format {
	case Stacks:
		d.stacks.flush(&d.groups)
		out.Truncated = out.Truncated || d.stacks.cut || d.bytes == runtimeLimit
		out.Total, out.Arena = d.stacks.total, d.stacks.arena()
	case Profile:
		d.prof.flush(&d.groups)
		out.Total = d.prof.total
		out.Truncated = out.Truncated || d.prof.cut || d.prof.counted != d.prof.total
	}
	out.Groups = d.groups.list
	return out, nil
}

// selfContained reports whether a line of the dump proves to be complete by being decoded, as JSON does.
func (d *decoder) selfContained() bool {
	return len(d.layers) > 0 && d.layers[0].kind == jsonLine
}

func (d *decoder) noDump(in *lines) error {
	switch {
	case in.n == 0:
		return errors.New("no goroutine dump: empty input; expected " + wanted)
	case bytes.HasPrefix(d.first, []byte{0x1f, 0x8b}):
		return errors.New(
			"no goroutine dump: line 1 starts with gzip's magic, as debug=0 does; expected " + wanted,
		)
	}
	if in.cut {
		return fmt.Errorf(
			"no goroutine dump in %d lines, of which some are over %d bytes and were cut: line 1 is "+
				"%q; expected %s",
			in.n,
			maxLine,
			d.first,
			wanted,
		)
	}
	return fmt.Errorf(
		"no goroutine dump in %d lines: line 1 is %q; expected %s",
		in.n,
		d.first,
		wanted,
	)
}

// lines cuts the input into lines without their ends. A returned line is valid until the next call.
type lines struct {
	src     *bufio.Reader
	long    []byte
	n       int  // lines returned
	cut     bool // a line was longer than maxLine
	unended bool // the last line had no end
}

func (l *lines) next() ([]byte, error) {
	line, err := l.src.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = l.rest(line)
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	l.n++
	if err == io.EOF {
		l.unended = true
	} else {
		line = line[:len(line)-1]
	}
	for n := len(line); n > 0 && line[n-1] == '\r'; n-- {
		line = line[:n-1]
	}
	return line, nil
}

// rest reads the rest of a line that is longer than the buffer.
func (l *lines) rest(start []byte) (line []byte, err error) {
	l.long = append(l.long[:0], start...)
	for {
		more, err := l.src.ReadSlice('\n')
		if len(l.long)+len(more) > maxLine {
			l.cut = true
			more = more[max(0, len(more)-1):] // keeps the last byte, which may be the line's end
			if err != nil {
				more = nil
			}
		}
		l.long = append(l.long, more...)
		if err != bufio.ErrBufferFull {
			return l.long, err
		}
	}
}
