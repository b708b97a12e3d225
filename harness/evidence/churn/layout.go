package churn

import (
	"bytes"
	"slices"
)

// layout says where in an object's bytes its last write changed strings. A loop changes the same few strings forever:
// as long as nothing else differs, they need not be searched for.
type layout struct {
	spots []spot // in order of their places
	mask  uint64 // which spots had changed when the layout was last used
	class *class // the class of these spots
	size  int
}

// spot is a string's place, quotes included.
type spot struct {
	from, to int
	path     string
	counted  bool
	// stamp says that the string is the time of an entry of the managed fields. manager and subresource are that
	// entry's.
	stamp                bool
	manager, subresource string
}

// leaf is a string that was replaced by another.
type leaf struct {
	from, to int // its path is paths[from:to] of the differ
	after    []byte
	counted  bool
}

// maxSpots is how many spots a mask has room for. A write that changes more belongs to no loop.
const maxSpots = 64

// learn fills in l for an object from the comparison that was just made. It needs a comparison that found only strings
// that were replaced by others, none of them a key of list elements. Otherwise l matches no object.
func (t *tracker) learn(l *layout, object []byte) {
	l.spots, l.class, l.size = l.spots[:0], nil, len(object)
	if t.other || len(t.leaves) == 0 || len(t.leaves) > maxSpots {
		l.size = -1
		return
	}
	for _, f := range t.leaves {
		path := t.paths[f.from:f.to]
		last := path[bytes.LastIndexByte(path, '.')+1:]
		if slices.Contains(keyNames[:], string(last)) || slices.Contains(managedKey[:], string(last)) {
			l.size = -1
			return
		}
		from := cap(object) - cap(f.after) // f.after is a part of object that shares its end
		s := spot{from: from, to: from + len(f.after), path: string(path), counted: f.counted}
		for _, e := range t.stamped {
			if start := cap(object) - cap(e); !f.counted && start < s.from && s.to < start+len(e) {
				manager, _ := text(t.member1(e, "manager"))
				subresource, _ := text(t.member1(e, "subresource"))
				s.stamp, s.manager, s.subresource = true, t.word(manager), t.word(subresource)
			}
		}
		l.spots = append(l.spots, s)
	}
	slices.SortFunc(l.spots, func(a, b spot) int { return a.from - b.from })
}

// follow compares two versions by the layout of the first, and fills in u. It returns false if the second may differ
// elsewhere, or if it isn't plain who wrote.
func (t *tracker) follow(l *layout, before, after []byte, u *Update) bool {
	if l.size != len(before) || len(before) != len(after) {
		return false
	}
	at, mask, stamps := 0, uint64(0), 0
	for i, s := range l.spots {
		if !bytes.Equal(before[at:s.from], after[at:s.from]) {
			return false
		}
		at = s.to
		was, now := before[s.from:s.to], after[s.from:s.to]
		if bytes.Equal(was, now) {
			continue
		}
		if !plainString(now) {
			return false
		}
		mask |= 1 << i
		if s.stamp {
			stamps++
			u.Manager, u.Subresource = s.manager, s.subresource
		}
	}
	if stamps != 1 || !bytes.Equal(before[at:], after[at:]) {
		return false
	}
	if l.class == nil || l.mask != mask {
		t.found, t.text = t.found[:0], t.text[:0]
		for i, s := range l.spots {
			if mask&(1<<i) != 0 && s.counted {
				from := len(t.text)
				t.text = append(t.text, s.path...)
				t.found = append(t.found, found{from: from, to: len(t.text)})
			}
		}
		l.class, l.mask = t.class(), mask
	}
	u.Class, u.Paths = l.class.text, l.class.paths
	return true
}

// plainString reports whether b is one string without escapes. To replace it changes nothing around it.
func plainString(b []byte) bool {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return false
	}
	for _, c := range b[1 : len(b)-1] {
		if c == '"' || c == '\\' || c < 0x20 || c >= 0x80 {
			return false
		}
	}
	return true
}
