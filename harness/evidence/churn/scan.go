package churn

import (
	"bytes"
	"encoding/json"
	"errors"
)

// errJSON says that a text isn't JSON. Skipped values are not validated: only their end is looked for.
var errJSON = errors.New("it is no JSON")

// maxDepth bounds how deep values may be nested, as the API server does.
const maxDepth = 1000

// space returns the index of the first byte from i on that isn't white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the end of the string that begins at i, or -1.
func skipString(b []byte, i int) int {
	i++
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		end := i + n
		slashes := 0
		for k := end - 1; k >= i && b[k] == '\\'; k-- {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
}

// skip returns the end of the value that begins at i, or -1.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
	default:
		start := i
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] != ' ' && b[i] != '\n' && b[i] != '\t' &&
			b[i] != '\r' {
			i++
		}
		if i == start {
			return -1
		}
		return i
	}
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// member is one member of an object: its key as it stands, without quotes, and its value.
type member struct{ key, value []byte }

// is reports whether the key is a name, which must need no escapes.
func (m member) is(name string) bool { return string(m.key) == name }

// members appends the members of an object to out.
func members(b []byte, out []member) ([]member, error) { return membersUntil(b, out, "") }

// membersUntil works like members, with a shortcut for a large object at the end. It takes a member with the name last
// for the last one if its value is an object and the text ends with "}}", so that the object's end need not be searched
// for.
func membersUntil(b []byte, out []member, last string) ([]member, error) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return out, errJSON
	}
	if i = space(b, i+1); i < len(b) && b[i] == '}' {
		return out, nil
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return out, errJSON
		}
		end := skipString(b, i)
		if end < 0 {
			return out, errJSON
		}
		key := b[i+1 : end-1]
		if i = space(b, end); i >= len(b) || b[i] != ':' {
			return out, errJSON
		}
		i = space(b, i+1)
		if last != "" && string(key) == last && i < len(b)-2 && b[i] == '{' && bytes.HasSuffix(b, []byte("}}")) {
			return append(out, member{key, b[i : len(b)-1]}), nil
		}
		if end = skip(b, i); end < 0 {
			return out, errJSON
		}
		out = append(out, member{plain(key), b[i:end]})
		if i = space(b, end); i >= len(b) {
			return out, errJSON
		}
		if b[i] == '}' {
			return out, nil
		}
		if b[i] != ',' {
			return out, errJSON
		}
		i = space(b, i+1)
	}
}

// elements appends the elements of a list to out.
func elements(b []byte, out [][]byte) ([][]byte, error) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return out, errJSON
	}
	if i = space(b, i+1); i < len(b) && b[i] == ']' {
		return out, nil
	}
	for {
		end := skip(b, i)
		if end < 0 {
			return out, errJSON
		}
		out = append(out, b[i:end])
		if i = space(b, end); i >= len(b) {
			return out, errJSON
		}
		if b[i] == ']' {
			return out, nil
		}
		if b[i] != ',' {
			return out, errJSON
		}
		i = space(b, i+1)
	}
}

// plain returns a string's content without escapes, and with U+FFFD for bytes that aren't UTF-8, like encoding/json.
// Content that has neither is returned as it is.
func plain(content []byte) []byte {
	simple := true
	for _, c := range content {
		simple = simple && c != '\\' && c < 0x80
	}
	if simple {
		return content
	}
	quoted := append(append([]byte{'"'}, content...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return content
	}
	return []byte(s)
}

// text returns the content of a string value; false if the value is no string.
func text(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	return plain(value[1 : len(value)-1]), true
}

// get returns the value of a member, nil if there is none. Of several with that name the last one counts, as in
// encoding/json.
func get(ms []member, name string) []byte {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].is(name) {
			return ms[i].value
		}
	}
	return nil
}
