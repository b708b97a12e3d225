package goroutine

import (
	"bytes"
	"errors"
)

// Found is a dump in the middle of other text.
type Found struct {
	*Dump
	Line  int // the dump's first line, counted from 1
	After int // lines after the dump's last one that were read, except empty ones
	// Open reports that the last stack of a dump at debug=2 has neither a creator, which all have but the main
	// goroutine's, nor an empty line below it: it may go on.
	Open bool
}

// Finder finds goroutine dumps in a text, such as a log, that is passed line by line without line ends. There may be
// several dumps, wrapped or not.
//
// A dump ends where another one begins: at a header of debug=1, at a panic, or at a goroutine id that comes a second
// time. It also ends after 200 lines that add nothing to it, and at the end of the text. So goroutines of two processes
// get into one dump only if the first dump is cut off and the second begins within 200 lines, without a panic and with
// other ids.
type Finder struct {
	d     *decoder
	begin int // line at which d began
	state [3]int
	quiet int // lines since state changed, except empty ones
	n     int
}

const maxQuiet = 200

// Marks are texts. A dump can begin only with a line that has one of them.
var Marks = [][]byte{goroutineWord[:9], []byte(`"MESSAGE":[`)}

var deaths = [...][]byte{
	[]byte("panic: "),
	[]byte("fatal error: "),
	[]byte("SIGQUIT: quit"),
	[]byte("SIGABRT: abort"),
}

// Inside returns the line at which the current dump begins; 0 outside of a dump.
func (f *Finder) Inside() int {
	if f.d == nil {
		return 0
	}
	return f.begin
}

// Skip counts the next line without reading it. It replaces Line for a line outside of a dump that has none of the
// Marks.
func (f *Finder) Skip() { f.n++ }

// Line takes the next line and returns the dump that ended before it, nil if none did.
func (f *Finder) Line(line []byte) (done *Found) {
	f.n++
	if f.d == nil {
		for _, m := range Marks {
			if bytes.Contains(line, m) {
				f.start(line)
				break
			}
		}
		return nil
	}
	for _, death := range deaths {
		if (f.quiet > 0 || !f.d.stacks.open) && bytes.Contains(line, death) {
			return f.end(false)
		}
	}
	err := f.d.raw(line, f.n)
	if errors.Is(err, errSecond) || f.d.stacks.again {
		done = f.end(false)
		f.start(line)
		return done
	}
	now := [3]int{f.d.stacks.total, len(f.d.stacks.key), f.d.prof.counted}
	if now != f.state {
		f.state, f.quiet = now, 0
	} else if len(line) > 0 {
		f.quiet++
	}
	if f.quiet > maxQuiet {
		return f.end(false)
	}
	return nil
}

// End returns the dump that the text ends with, nil if there is none. unended says that the text's last line has no
// line end.
func (f *Finder) End(unended bool) *Found { return f.end(unended) }

func (f *Finder) start(line []byte) {
	d := &decoder{stacks: stacks{ids: map[uint64]struct{}{}}}
	if d.raw(line, f.n) == nil && d.format != 0 {
		f.d, f.begin, f.quiet, f.state = d, f.n, 0, [3]int{}
	}
}

func (f *Finder) end(unended bool) *Found {
	d := f.d
	if f.d = nil; d == nil {
		return nil
	}
	open := d.stacks.open && !d.stacks.past && d.stacks.head.id != 1
	dump, err := d.finish(&lines{unended: unended, n: f.n})
	if err != nil { // a line that never ended begins another dump: what there is of this one is cut
		dump = &Dump{
			Format:    d.format,
			Groups:    d.groups.list,
			Total:     d.stacks.total + d.prof.total,
			Truncated: true,
		}
	}
	return &Found{dump, f.begin, f.quiet, open}
}
