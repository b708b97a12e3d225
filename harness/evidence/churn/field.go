package churn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Path is a place in an object, as in Change: status.conditions[type=Ready].status, spec.list[0],
// metadata.labels["a.b/c"].
type Path []step

// step is one key of an object, one index of a list, or one element of a list by the value of a member.
type step struct {
	key, member, value string
	index              int // -1 unless the step is an index
}

// ParsePath reads a path.
func ParsePath(text string) (Path, error) {
	var out Path
	rest := text
	for rest != "" {
		var s step
		var err error
		if rest[0] == '[' {
			s, rest, err = bracket(rest[1:])
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			s, rest = step{key: rest[:end], index: -1}, rest[end:]
			if s.key == "" {
				err = fmt.Errorf("a key is empty")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reading path %q: %w", text, err)
		}
		if out = append(out, s); strings.HasPrefix(rest, ".") {
			if rest = rest[1:]; rest == "" || rest[0] == '[' {
				return nil, fmt.Errorf("reading path %q: a key is empty", text)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("reading path %q: it is empty", text)
	}
	return out, nil
}

// bracket reads a step in brackets, from after the opening one, and returns the rest of s.
func bracket(s string) (step, string, error) {
	member, value, named := "", s, false
	if at := strings.IndexAny(s, `="]`); at > 0 && s[at] == '=' {
		member, value, named = s[:at], s[at+1:], true
	}
	var word, rest string
	quoted := strings.HasPrefix(value, `"`)
	if quoted {
		q, err := strconv.QuotedPrefix(value)
		if err != nil {
			return step{}, "", fmt.Errorf("a quote is not closed")
		}
		word, _ = strconv.Unquote(q) // QuotedPrefix has read it
		if rest = value[len(q):]; !strings.HasPrefix(rest, "]") {
			return step{}, "", fmt.Errorf("a bracket is not closed")
		}
		rest = rest[1:]
	} else {
		var ok bool
		if word, rest, ok = strings.Cut(value, "]"); !ok {
			return step{}, "", fmt.Errorf("a bracket is not closed")
		}
	}
	switch {
	case named:
		return step{member: member, value: word, index: -1}, rest, nil
	case quoted:
		return step{key: word, index: -1}, rest, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		return step{}, "", fmt.Errorf("[%s] is no index and no member=value", word)
	}
	return step{index: n}, rest, nil
}

// Of returns the value at the path: a string without its quotes, anything else as JSON, and "" if there is none. The
// error means that the object isn't JSON.
func (p Path) Of(object json.RawMessage) (string, error) {
	at := bytes.TrimSpace(object)
	for _, s := range p {
		next, err := s.applyTo(at)
		if err != nil {
			return "", fmt.Errorf("reading a field: %w", err)
		}
		if next == nil {
			return "", nil
		}
		at = next
	}
	if s, ok := text(at); ok {
		return string(s), nil
	}
	return string(at), nil
}

func (s step) applyTo(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errJSON
	}
	switch {
	case s.index < 0 && s.member == "" && value[0] == '{':
		ms, err := members(value, nil)
		return get(ms, s.key), err
	case (s.index >= 0 || s.member != "") && value[0] == '[':
		all, err := elements(value, nil)
		if err != nil {
			return nil, err
		}
		if s.member == "" {
			if s.index < len(all) {
				return all[s.index], nil
			}
			return nil, nil
		}
		for _, e := range all {
			if e[0] != '{' {
				continue
			}
			ms, err := members(e, nil)
			if err != nil {
				return nil, err
			}
			if v, ok := text(get(ms, s.member)); ok && string(v) == s.value {
				return e, nil
			}
		}
	}
	return nil, nil
}
