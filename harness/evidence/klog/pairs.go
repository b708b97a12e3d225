package klog

import (
	"strconv"
	"strings"
)

func cutQuoted(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return "", s, false
	}
	q, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", s, false
	}
	value, err = strconv.Unquote(q)
	return value, s[len(q):], err == nil
}

// parsePairs reads ` key=value key2="value 2" …` to the end. ok is false if there is anything else.
func parsePairs(s string) (pairs []Pair, unfinished, ok bool) {
	for strings.TrimRight(s, " ") != "" {
		var key, value string
		if s, ok = strings.CutPrefix(s, " "); !ok {
			return nil, false, false
		}
		key, s, ok = strings.Cut(s, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \"\n") {
			return nil, false, false
		}
		value, s, unfinished = cutValue(s)
		pairs = append(pairs, Pair{key, value})
	}
	return pairs, unfinished, true
}

// cutValue takes the first value off s.
func cutValue(s string) (value, rest string, unfinished bool) {
	if v, rest, ok := cutQuoted(s); ok && (rest == "" || rest[0] == ' ') {
		return v, rest, false
	}
	if block, ok := strings.CutPrefix(s, "<"); ok && (block == "" || block[0] == '\n') {
		return cutBlock(block)
	}
	end := bareEnd(s)
	return s[:end], s[end:], false
}

// cutBlock takes off a multi-line value, from after its `<`. Each of its lines is indented by a tab, and a line with `
// >` ends it (writeStringValue in klog's internal/serialize).
func cutBlock(s string) (value, rest string, unfinished bool) {
	var lines []string
	for s != "" {
		s = s[1:] // the newline
		if rest, ok := strings.CutPrefix(s, " >"); ok {
			return strings.Join(lines, "\n"), rest, false
		}
		end := strings.IndexByte(s, '\n')
		if end < 0 {
			end = len(s)
		}
		lines = append(lines, strings.TrimPrefix(s[:end], "\t"))
		s = s[end:]
	}
	return strings.Join(lines, "\n"), "", true
}

// bareEnd finds the end of an unquoted value: the first space outside brackets and quotes. Older klogs print
// structures with %+v, whose brackets need not match; then the value ends before the first ` key=`.
func bareEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case '"':
			if q, err := strconv.QuotedPrefix(s[i:]); err == nil {
				i += len(q) - 1
			}
		case ' ':
			if depth <= 0 {
				return i
			}
		}
	}
	if depth <= 0 {
		return len(s)
	}
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' && beginsPair(s[i+1:]) {
			return i
		}
	}
	return len(s)
}

func beginsPair(s string) bool {
	i := strings.IndexAny(s, " =\"\n{[(")
	return i > 0 && s[i] == '='
}
