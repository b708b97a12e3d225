package churn

import (
	"bytes"
	"slices"
	"strconv"
)

const managedFields = "metadata.managedFields"

// keyNames are the members that can tell the elements of a list apart. The first one counts that all elements have and
// no two share.
var keyNames = [...]string{"type", "name", "uid", "key"}

// managedKey are the members by which the API server tells managed fields apart.
var managedKey = [...]string{"manager", "operation", "subresource", "apiVersion"}

func (d *differ) list(a, b []byte) error {
	base, keyed := len(d.elements), len(d.keys)
	defer func() { d.elements, d.keys = d.elements[:base], d.keys[:keyed] }()
	var err error
	if d.elements, err = elements(a, d.elements); err != nil {
		return err
	}
	mid := len(d.elements)
	if d.elements, err = elements(b, d.elements); err != nil {
		return err
	}
	ours, theirs := d.elements[base:mid], d.elements[mid:]
	if string(d.path) == managedFields {
		if ok, err := d.keysOf(ours, theirs, keyed, managedEntry); err != nil {
			return err
		} else if ok {
			return d.matched("", ours, theirs, d.keys[keyed:])
		}
	}
	for _, name := range keyNames {
		key := func(ms []member) ([]byte, bool) { return text(get(ms, name)) }
		if ok, err := d.keysOf(ours, theirs, keyed, key); err != nil {
			return err
		} else if !ok {
			continue
		}
		keys := d.keys[keyed:]
		if !sameOrder(keys[:len(ours)], keys[len(ours):]) {
			d.add(a, b)
		}
		return d.matched(name, ours, theirs, keys)
	}
	for i := range max(len(ours), len(theirs)) {
		var x, y []byte
		if i < len(ours) {
			x = ours[i]
		}
		if i < len(theirs) {
			y = theirs[i]
		}
		step := func(p []byte) []byte { return append(strconv.AppendInt(append(p, '['), int64(i), 10), ']') }
		if err := d.descend(step, func() error { return d.either(x, y) }); err != nil {
			return err
		}
	}
	return nil
}

// keysOf appends the key of each element of both lists to d.keys. It returns false if an element has none, or if two
// elements of a list share one.
func (d *differ) keysOf(
	ours, theirs [][]byte,
	base int,
	key func([]member) ([]byte, bool),
) (bool, error) {
	d.keys = d.keys[:base]
	for _, all := range [][][]byte{ours, theirs} {
		from := len(d.keys)
		for _, e := range all {
			if e[0] != '{' {
				return false, nil
			}
			ms, err := members(e, d.members)
			if err != nil {
				return false, err
			}
			d.members = ms[:len(d.members)] // keeps the buffer if it grew
			k, ok := key(ms[len(d.members):])
			if !ok {
				return false, nil
			}
			d.keys = append(d.keys, k)
		}
		if !distinct(d.keys[from:]) {
			return false, nil
		}
	}
	return true, nil
}

func distinct(keys [][]byte) bool {
	if len(keys) <= few {
		for i, k := range keys {
			if slices.ContainsFunc(keys[:i], func(o []byte) bool { return bytes.Equal(o, k) }) {
				return false
			}
		}
		return true
	}
	have := make(map[string]bool, len(keys))
	for _, k := range keys {
		have[string(k)] = true
	}
	return len(have) == len(keys)
}

// sameOrder reports whether the keys that both lists have come in the same order.
func sameOrder(ours, theirs [][]byte) bool {
	at := 0
	for _, k := range theirs {
		i := slices.IndexFunc(ours, func(o []byte) bool { return bytes.Equal(o, k) })
		if i >= 0 && i < at {
			return false
		}
		at = max(at, i)
	}
	return true
}

// matched compares the elements with the same key. keys has the keys of ours, then those of theirs. Without a name the
// elements are managed fields, and their keys stand in the path as they are.
func (d *differ) matched(name string, ours, theirs, keys [][]byte) error {
	step := func(key []byte) func([]byte) []byte {
		return func(p []byte) []byte {
			if name == "" {
				return append(append(append(p, '['), key...), ']')
			}
			return append(appendWord(append(append(append(p, '['), name...), '='), key), ']')
		}
	}
	mine, yours := keys[:len(ours)], keys[len(ours):]
	for i, e := range ours {
		at := i
		if at >= len(theirs) || !bytes.Equal(yours[at], mine[i]) {
			at = slices.IndexFunc(yours, func(k []byte) bool { return bytes.Equal(k, mine[i]) })
		}
		var now []byte
		if at >= 0 {
			now = theirs[at]
			if bytes.Equal(e, now) {
				continue
			}
		}
		if name == "" && now != nil {
			d.wrote(e, now)
		}
		if err := d.descend(step(mine[i]), func() error { return d.either(e, now) }); err != nil {
			return err
		}
	}
	for i, e := range theirs {
		if slices.ContainsFunc(mine, func(k []byte) bool { return bytes.Equal(k, yours[i]) }) {
			continue
		}
		if name == "" {
			d.wrote(nil, e)
		}
		if err := d.descend(step(yours[i]), func() error { return d.either(nil, e) }); err != nil {
			return err
		}
	}
	return nil
}

// managedEntry returns the key of an entry of the managed fields: who wrote, how, and which subresource.
func managedEntry(ms []member) ([]byte, bool) {
	var out []byte
	for i, name := range managedKey {
		v, ok := text(get(ms, name))
		if !ok && i == 0 {
			return nil, false
		}
		if !ok {
			continue
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendWord(append(append(out, name...), '='), v)
	}
	return out, true
}

// appendKey appends an object's key to a path: .key, or ["key"] where the key is no plain word.
func appendKey(p, key []byte) []byte {
	if len(key) == 0 || !all(key, wordByte) {
		return append(strconv.AppendQuote(append(p, '['), string(key)), ']')
	}
	if len(p) > 0 {
		p = append(p, '.')
	}
	return append(p, key...)
}

// appendWord appends the key of a list's element, quoted if it could be taken for anything else.
func appendWord(p, word []byte) []byte {
	if len(word) == 0 || !all(word, func(c byte) bool { return wordByte(c) || c == '.' || c == '/' }) {
		return strconv.AppendQuote(p, string(word))
	}
	return append(p, word...)
}

func all(b []byte, is func(byte) bool) bool {
	for _, c := range b {
		if !is(c) {
			return false
		}
	}
	return true
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' ||
		c == '-' ||
		c == ':' ||
		c == '$'
}
