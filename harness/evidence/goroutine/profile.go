package goroutine

import (
	"bytes"
	"strconv"
)

// profile parses debug=1 line by line (printCountProfile in runtime/pprof/pprof.go).
type profile struct {
	key            []byte
	head           member
	labels         []byte
	open, seen     bool
	whole          bool // the blank line after the current stack was there
	frames         int
	total, counted int
	cut            bool
}

var (
	profileHeader = []byte("goroutine profile: total ")
	leakHeader    = []byte("goroutineleak profile: total ")
	labelsLine    = []byte("# labels: {")
	frameLine     = []byte("#\t")
	offset        = []byte("+0x")
)

func isProfileHeader(line []byte) bool {
	_, ok := profileTotal(line)
	return ok
}

func profileTotal(line []byte) (int, bool) {
	n, ok := bytes.CutPrefix(line, profileHeader)
	if !ok {
		n, ok = bytes.CutPrefix(line, leakHeader)
	}
	if !ok {
		return 0, false
	}
	total, ok := number(n)
	return total, ok
}

// number reads a count. It refuses counts that no process can have, so that sums don't overflow.
func number(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 12 || b[0] == '+' || b[0] == '-' {
		return 0, false
	}
	n, err := strconv.Atoi(string(b))
	return n, err == nil
}

func (p *profile) line(gs *groups, line []byte) error {
	switch {
	case len(line) == 0:
		// A goroutine that has not run yet has no frame but the runtime's own, which a profile leaves out: a blank
		// line ends such a stack, too.
		p.whole = true
		p.flush(gs)
	case line[0] == '#':
		p.detail(line)
	case line[0] == 'g':
		total, ok := profileTotal(line)
		if !ok {
			if _, ok := parseHeader(line); ok {
				return errSecond
			}
			return nil
		}
		if p.seen {
			return errSecond
		}
		p.seen, p.total = true, total
	default:
		n, _, ok := bytes.Cut(line, []byte(" @"))
		if !ok {
			return nil
		}
		if count, ok := number(n); ok {
			p.flush(gs)
			p.open, p.frames = true, 0
			p.key = append(p.key[:0], '\n')
			p.head = member{count: count}
		}
	}
	return nil
}

// detail reads a line with labels or with a frame of the current record.
func (p *profile) detail(line []byte) {
	if !p.open {
		return
	}
	if l, ok := bytes.CutPrefix(line, labelsLine); ok {
		p.labels = append(p.labels[:0], bytes.TrimSuffix(l, labelsEnd)...)
		p.head.labels = p.labels
		return
	}
	rest, ok := bytes.CutPrefix(line, frameLine)
	if !ok {
		return
	}
	address, name, _ := bytes.Cut(rest, []byte("\t"))
	name, place, _ := bytes.Cut(bytes.TrimLeft(name, "\t"), []byte("\t"))
	for i := bytes.LastIndex(name, offset); i > 0; i = bytes.LastIndex(name, offset) {
		name = name[:i]
	}
	if len(bytes.TrimRight(name, "\r")) == 0 {
		name = address
	}
	if name = bytes.TrimRight(name, "\r"); len(name) == 0 {
		return
	}
	place = bytes.Trim(place, "\t")
	p.key = append(append(p.key, name...), '\n')
	p.key = append(append(p.key, place[:placeEnd(place)]...), '\n')
	p.frames++
}

func (p *profile) flush(gs *groups) {
	if !p.open {
		return
	}
	p.open = false
	p.cut = p.cut || p.frames == 0 && !p.whole
	p.whole = false
	p.counted += p.head.count
	gs.add(p.key, p.head)
}
