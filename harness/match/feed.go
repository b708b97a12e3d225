package match

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// feed gives a text line by line.
type feed interface {
	// next returns a line without its end, and whether it is cut. At the end of the text err is io.EOF, with the last
	// line if that has no end.
	next() (raw []byte, cut bool, err error)
	// number returns the number in the text of the nth line that next returned.
	number(n int) int
	// prose reports whether the last line explains something, and was not logged.
	prose() bool
	// part says why dumps in what was read so far may lack something, "" if nothing shows that.
	part() string
}

// plainFeed is a text as it is.
type plainFeed struct {
	in   *bufio.Reader
	long []byte
}

func (p *plainFeed) next() ([]byte, bool, error) { return nextLine(p.in, &p.long) }
func (p *plainFeed) number(n int) int            { return n }
func (p *plainFeed) prose() bool                 { return false }
func (p *plainFeed) part() string                { return "" }

// nextLine returns a line without its end. Bytes beyond maxLine are dropped, and then cut is true. At the end of the
// text err is io.EOF, with the last line if that has no end.
func nextLine(in *bufio.Reader, long *[]byte) (out []byte, cut bool, err error) {
	out, err = in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		*long = append((*long)[:0], out...)
		for errors.Is(err, bufio.ErrBufferFull) {
			out, err = in.ReadSlice('\n')
			room := maxLine - len(*long)
			cut = cut || len(out) > room
			*long = append(*long, out[:min(len(out), room)]...)
		}
		out = *long
	}
	for len(out) > 0 && (out[len(out)-1] == '\n' || out[len(out)-1] == '\r') {
		out = out[:len(out)-1]
	}
	return out, cut, err
}

const (
	// maxPasted is how much of a text is looked at to tell how it was pasted, and read at a time if it was, in bytes.
	maxPasted = 2 << 20
	// maxShown is how much of a longer text is looked at to tell whether it was pasted.
	maxShown = 128 << 10
	// maxWithin is the longest text, in bytes, in which metrics, resources and profiles are looked for.
	maxWithin = 1 << 20
)

// pastedFeed is a text that is read as people paste it, a piece at a time.
type pastedFeed struct {
	piece pasted.Text
	at    int
	rest  *bufio.Reader // nil if there is no more
	ahead []byte        // bytes of rest that were read already
	base  int           // lines of the text before the piece
	read  int           // lines of the text that the piece was made of
	given int           // lines that next returned
	jumps []jump
	over  bool
	lacks string // why dumps in the pieces so far may lack something
}

// jump says that from the line that next returned as the nth, numbers differ by so much.
type jump struct{ n, by int }

func (p *pastedFeed) next() ([]byte, bool, error) {
	for p.at == len(p.piece.Lines) {
		if p.over || p.rest == nil {
			return nil, false, io.EOF
		}
		if err := p.refill(); err != nil {
			return nil, false, err
		}
	}
	l := p.piece.Lines[p.at]
	p.at, p.given = p.at+1, p.given+1
	if by := p.base + l.N - p.given; len(p.jumps) == 0 && by != 0 || len(p.jumps) > 0 && p.jumps[len(p.jumps)-1].by != by {
		p.jumps = append(p.jumps, jump{p.given, by})
	}
	var err error
	if last := p.at == len(p.piece.Lines) && (p.over || p.rest == nil); last && !p.piece.Ended {
		err = io.EOF
	}
	raw := l.Text
	if len(raw) > maxLine {
		return raw[:maxLine], true, err
	}
	return raw, false, err
}

// refill reads the next piece. It ends before a goroutine or, without one, at the end of a line.
func (p *pastedFeed) refill() error {
	piece := make([]byte, maxPasted)
	n := copy(piece, p.ahead)
	more, err := io.ReadFull(p.rest, piece[n:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	piece = piece[:n+more]
	p.over = err != nil
	end := len(piece)
	if !p.over {
		end = pieceEnd(piece)
	}
	p.ahead = bytes.Clone(piece[end:])
	p.take(piece[:end])
	return nil
}

// take makes the next piece of its bytes.
func (p *pastedFeed) take(piece []byte) {
	p.base += p.read
	p.read = bytes.Count(piece, []byte("\n"))
	p.piece, p.at = pasted.Read(piece), 0
	p.lacks = cmp.Or(p.lacks, p.piece.Part)
}

// pieceEnd returns where to cut a piece.
func pieceEnd(piece []byte) int {
	from := len(piece) / 2
	if at := bytes.LastIndex(piece[from:], []byte("goroutine ")); at >= 0 {
		if line := bytes.LastIndexByte(piece[:from+at], '\n'); line >= from {
			return line + 1
		}
	}
	if line := bytes.LastIndexByte(piece, '\n'); line >= 0 {
		return line + 1
	}
	return len(piece)
}

func (p *pastedFeed) number(n int) int {
	i := sort.Search(len(p.jumps), func(i int) bool { return p.jumps[i].n > n })
	if i == 0 {
		return n
	}
	return n + p.jumps[i-1].by
}

func (p *pastedFeed) part() string { return p.lacks }

func (p *pastedFeed) prose() bool { return p.at > 0 && p.piece.Lines[p.at-1].Prose }

// anyText reads a text that is nothing else: logs, dumps, or what people paste of them. A long text is read as it is
// unless its beginning shows that it was pasted.
func (e *evidence) anyText(f archive.Entry, in *bufio.Reader, as func(form, lacks string)) error {
	head, err := io.ReadAll(io.LimitReader(in, maxPasted))
	if err != nil { // what was read is read, and then the error comes again
		in = bufio.NewReader(io.MultiReader(bytes.NewReader(head), failing{err}))
		return e.plainText(f, in, as)
	}
	whole := len(head) < maxPasted
	if !whole && len(pasted.Read(head[:pieceEnd(head[:maxShown])]).Did) == 0 {
		return e.plainText(f, bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), in), 256<<10), as)
	}
	end := len(head)
	if !whole {
		end = pieceEnd(head)
	}
	t := pasted.Read(head[:end])
	if sourceBegin.Match(t.Begin) {
		as("source code", ofSourceCode)
		return nil
	}
	if whole && len(head) <= maxWithin {
		n := len(e.sources)
		done, err := e.within(f, t, as)
		for _, s := range e.sources[n:] {
			s.teaches = t.Teaches
		}
		if done {
			return err
		}
	}
	if len(t.Did) == 0 && !(whole && len(head) <= maxWithin) {
		return e.plainText(f, bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), in), 256<<10), as)
	}
	p := &pastedFeed{piece: t, lacks: t.Part, over: whole, read: bytes.Count(head[:end], []byte("\n"))}
	if !whole {
		p.rest, p.ahead = in, bytes.Clone(head[end:])
	}
	s := newSource(f)
	s.reported(t)
	s.chosen, s.teaches, s.picked = slices.ContainsFunc(t.Lines, func(l pasted.Line) bool { return l.Prose }), t.Teaches, len(t.Files) > 0
	if whole && len(head) <= maxWithin {
		s.stated, s.commands, s.images = stated(t.Lines, s.chosen), commands(t.Lines), images(t.Lines)
		s.logsOf = logsOf(s.commands)
	}
	err = e.lines(s, p)
	e.sources = append(e.sources, s)
	form, lacks := s.form()
	if len(t.Did) > 0 {
		form += "; " + strings.Join(t.Did, ", ")
	}
	as(form, lacks)
	return err
}

// plainText reads a text as it is.
func (e *evidence) plainText(f archive.Entry, in *bufio.Reader, as func(form, lacks string)) error {
	s := newSource(f)
	err := e.text(s, in)
	e.sources = append(e.sources, s)
	as(s.form())
	return err
}

// failing is a reader that has failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, fmt.Errorf("reading on: %w", f.err) }
