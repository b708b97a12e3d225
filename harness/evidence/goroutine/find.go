package goroutine

import (
	"bytes"
	"errors"
)

// Found is a dump in the middle of other text.
type Found struct {
	*Dump
	Line  int // of its first line, counted from 1
	After int // lines that were read since its last, but for empty ones
}

// Finder finds the dumps in a text that is passed to it line by line, without their ends: in a log, several in one
// file, wrapped or not.
//
// A dump ends where another one begins, which a header of debug=1, a panic or a goroutine id that comes a second time
// tells; where its process was heard of for the last time, 200 lines ago; and at the end of the text. So goroutines of
// two processes fall into one dump only if the one is cut off and the other begins within 200 lines, without a panic
// and with other ids.
type Finder struct {
	d     *decoder
	begin int // line at which d began
	state [3]int
	quiet int // lines since state changed, but for empty ones
	n     int
}

const maxQuiet = 200

// Marks are texts of which every line has one that a dump can begin with.
var Marks = [][]byte{goroutineWord[:9], []byte(`"MESSAGE":[`)}

var deaths = [...][]byte{[]byte("panic: "), []byte("fatal error: "), []byte("SIGQUIT: quit"), []byte("SIGABRT: abort")}

// Inside is the line at which the dump begins that is being read, 0 if none is.
func (f *Finder) Inside() int {
	if f.d == nil {
		return 0
	}
	return f.begin
}

// Skip takes the next line in place of Line where that is outside of a dump and has none of the Marks.
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

// End is the dump that the text ends with, nil if there is none. unended says that its last line has no end.
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
	dump, err := d.finish(&lines{unended: unended, n: f.n})
	if err != nil { // a line that never ended begins another dump: what there is of this one is cut
		dump = &Dump{Format: d.format, Groups: d.groups.list, Total: d.stacks.total + d.prof.total, Truncated: true}
	}
	return &Found{dump, f.begin, f.quiet}
}
