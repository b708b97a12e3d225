package churn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Changes returns the paths in which two versions of an object differ, sorted. A subtree that came or went as a whole
// is one path. The error means that a value isn't JSON; a value that is equal in both versions isn't looked into.
func Changes(before, after json.RawMessage) ([]Change, error) {
	var d differ
	if err := d.compare(before, after); err != nil {
		return nil, err
	}
	out := make([]Change, 0, len(d.found))
	for _, f := range d.found {
		out = append(
			out,
			Change{string(d.text[f.from:f.to]), bytes.Clone(f.before), bytes.Clone(f.after)},
		)
	}
	slices.SortFunc(
		out,
		func(a, b Change) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) },
	)
	return out, nil
}

// differ compares two values. It descends only where their bytes differ, so that equal parts are read only once, to
// find their end. Its buffers are kept from one comparison to the next.
type differ struct {
	path     []byte // of the current value
	depth    int
	found    []found
	text     []byte   // the paths of found, one after another
	stamped  [][]byte // entries of the managed fields that are new or have another time
	touched  [][]byte // entries of the managed fields that changed otherwise
	leaves   []leaf   // strings that were replaced by strings, including those that don't count
	paths    []byte   // the paths of leaves, one after another
	other    bool     // a change that is no leaf was found, too
	members  []member
	elements [][]byte
	keys     [][]byte
}

// found is a change: its path is text[from:to].
type found struct {
	from, to      int
	before, after []byte
}

func (d *differ) compare(before, after []byte) error {
	d.path, d.depth, d.found, d.text = d.path[:0], 0, d.found[:0], d.text[:0]
	d.stamped, d.touched = d.stamped[:0], d.touched[:0]
	d.leaves, d.paths, d.other = d.leaves[:0], d.paths[:0], false
	d.members, d.elements, d.keys = d.members[:0], d.elements[:0], d.keys[:0]
	before, after = bytes.TrimSpace(before), bytes.TrimSpace(after)
	if len(before) == 0 || len(after) == 0 {
		return fmt.Errorf("comparing versions: %w", errJSON)
	}
	if err := d.value(before, after); err != nil {
		return fmt.Errorf("comparing versions at %q: %w", d.path, err)
	}
	return nil
}

// value compares two values that stand at path.
func (d *differ) value(a, b []byte) error {
	if bytes.Equal(a, b) {
		return nil
	}
	if a[0] == b[0] && d.depth < maxDepth {
		d.depth++
		defer func() { d.depth-- }()
		switch a[0] {
		case '{':
			return d.object(a, b)
		case '[':
			return d.list(a, b)
		case '"':
			x, _ := text(a)
			y, _ := text(b)
			if bytes.Equal(x, y) {
				return nil
			}
		}
	}
	d.add(a, b)
	return nil
}

// add notes a change at the current path. A path that doesn't count is noted in leaves or other only.
func (d *differ) add(a, b []byte) {
	counted := string(d.path) != "metadata.resourceVersion" &&
		!(bytes.HasPrefix(d.path, []byte(managedFields+"[")) && bytes.HasSuffix(d.path, []byte("].time")))
	if plainString(a) && plainString(b) {
		from := len(d.paths)
		d.paths = append(d.paths, d.path...)
		d.leaves = append(d.leaves, leaf{from, len(d.paths), b, counted})
	} else {
		d.other = true
	}
	if !counted {
		return
	}
	from := len(d.text)
	d.text = append(d.text, d.path...)
	d.found = append(d.found, found{from, len(d.text), a, b})
}

// descend calls do with the path one step further down.
func (d *differ) descend(step func([]byte) []byte, do func() error) error {
	was := len(d.path)
	d.path = step(d.path)
	if err := do(); err != nil {
		return err // the path stays, for the error
	}
	d.path = d.path[:was]
	return nil
}

func (d *differ) object(a, b []byte) error {
	base := len(d.members)
	defer func() { d.members = d.members[:base] }()
	var err error
	if d.members, err = members(a, d.members); err != nil {
		return err
	}
	mid := unique(d.members, base)
	if d.members, err = members(b, d.members[:mid]); err != nil {
		return err
	}
	d.members = d.members[:unique(d.members, mid)]
	ours, theirs := d.members[base:mid], d.members[mid:]
	for i, m := range ours {
		at := i // the index that it mostly has
		if at >= len(theirs) || !bytes.Equal(theirs[at].key, m.key) {
			at = slices.IndexFunc(
				theirs,
				func(t member) bool { return bytes.Equal(t.key, m.key) },
			)
		}
		var now []byte
		if at >= 0 {
			now = theirs[at].value
			if bytes.Equal(m.value, now) {
				continue
			}
		}
		if err := d.member(m.key, m.value, now); err != nil {
			return err
		}
	}
	for i, t := range theirs {
		if i < len(ours) && bytes.Equal(ours[i].key, t.key) ||
			slices.ContainsFunc(ours, func(m member) bool { return bytes.Equal(m.key, t.key) }) {
			continue
		}
		if err := d.member(t.key, nil, t.value); err != nil {
			return err
		}
	}
	return nil
}

// member compares the values of a key; nil means that there is none.
func (d *differ) member(key, a, b []byte) error {
	return d.descend(
		func(p []byte) []byte { return appendKey(p, key) },
		func() error { return d.either(a, b) },
	)
}

func (d *differ) either(a, b []byte) error {
	if a == nil || b == nil {
		d.add(a, b)
		return nil
	}
	return d.value(a, b)
}

// unique removes each member after base whose key comes again later, and returns the new length.
func unique(all []member, base int) int {
	in := all[base:]
	if len(in) > few {
		return base + uniqueOfMany(in)
	}
	n := 0
	for i := range in {
		if !slices.ContainsFunc(in[i+1:], func(m member) bool { return bytes.Equal(m.key, in[i].key) }) {
			in[n] = in[i]
			n++
		}
	}
	return base + n
}

// few is the number of elements up to which it is quicker to compare each with each.
const few = 32

func uniqueOfMany(in []member) int {
	last := make(map[string]int, len(in))
	for i, m := range in {
		last[string(m.key)] = i
	}
	n := 0
	for i, m := range in {
		if last[string(m.key)] == i {
			in[n] = m
			n++
		}
	}
	return n
}
