package match

import "bytes"

// sieve tells in which lines one of some texts may be, in whatever case as far as it is ASCII. It looks at a pair of
// bytes, and where no text has that pair near its beginning it goes on behind it (Wu and Manber, "A fast algorithm for
// multi-pattern searching", 1994), so that most bytes of most lines are never looked at.
type sieve struct {
	texts [][]byte // in lower case
	width int      // of the shortest: as much of each is looked for at first
	// step is, by pair, how far the next width bytes may begin beyond those that end with it: 0 if a text may be there.
	// begins is set in those that a text begins with.
	step [1 << 16]uint8
}

const (
	begins   = 0x80
	maxWidth = begins - 1
)

func newSieve(texts [][]byte) *sieve {
	s := &sieve{texts: texts, width: maxWidth}
	for _, t := range texts {
		s.width = min(s.width, len(t))
	}
	if s.width < 2 { // nothing to go by: every line passes
		return s
	}
	for i := range s.step {
		s.step[i] = uint8(s.width - 1)
	}
	for _, t := range texts {
		for end := 1; end < s.width; end++ {
			for _, pair := range pairs(t[end-1], t[end]) {
				s.step[pair] = s.step[pair]&begins | min(s.step[pair]&^begins, uint8(s.width-1-end))
			}
		}
		for _, pair := range pairs(t[0], t[1]) {
			s.step[pair] |= begins
		}
	}
	return s
}

// pairs are those that a and b stand for, each in both cases.
func pairs(a, b byte) (out []uint16) {
	for _, first := range cases(a) {
		for _, second := range cases(b) {
			out = append(out, uint16(first)<<8|uint16(second))
		}
	}
	return out
}

func cases(c byte) []byte {
	if 'a' <= c && c <= 'z' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

// passes reports whether one of the texts is in a line.
func (s *sieve) passes(line []byte) bool {
	if s.width < 2 {
		return true
	}
	for end := s.width; end <= len(line); {
		if step := s.pair(line[end-2:]) &^ begins; step > 0 {
			end += int(step)
			continue
		}
		if begin := end - s.width; s.pair(line[begin:])&begins != 0 && s.begins(line[begin:]) {
			return true
		}
		end++
	}
	return false
}

func (s *sieve) pair(b []byte) uint8 { return s.step[uint16(b[0])<<8|uint16(b[1])] }

// begins reports whether one of the texts is at the beginning of b.
func (s *sieve) begins(b []byte) bool {
	for _, t := range s.texts {
		if len(t) <= len(b) && bytes.EqualFold(t, b[:len(t)]) {
			return true
		}
	}
	return false
}
