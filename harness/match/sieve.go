package match

import "bytes"

// sieve finds lines that have one of some texts, in upper or lower case as far as the text is ASCII. It looks at a pair
// of bytes. If no text has that pair near its beginning, the sieve skips to the bytes after it (Wu and Manber, "A fast
// algorithm for multi-pattern searching", 1994). So most bytes of most lines are never looked at.
type sieve struct {
	texts [][]byte // in lower case
	width int      // of the shortest text: the search compares only so much of each text at first
	// step says, for the last pair of a window of width bytes, how far the window may move on; 0 if a text may be in
	// the window. The bit begins is set for pairs that a text begins with.
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
				s.step[pair] = s.step[pair]&begins | min(
					s.step[pair]&^begins,
					uint8(s.width-1-end),
				)
			}
		}
		for _, pair := range pairs(t[0], t[1]) {
			s.step[pair] |= begins
		}
	}
	return s
}

// pairs returns the pairs that a and b stand for, with each letter in both cases.
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

// contains reports whether any of some texts is in b.
func contains(b []byte, any [][]byte) bool {
	for _, s := range any {
		if bytes.Contains(b, s) {
			return true
		}
	}
	return false
}
