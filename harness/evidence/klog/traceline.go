package klog

import (
	"strconv"
	"strings"
	"time"
)

// parseHead reads `"name" fields (02-Jan-2006 15:04:05.000) (total time: 20000ms):`.
func parseHead(id int64, text string) Span {
	s := Span{ID: id}
	rest, ok := strings.CutSuffix(text, "ms):")
	i := strings.LastIndex(rest, ") (total time: ")
	if ok && i >= 0 {
		var ok1, ok2 bool
		s.Total, ok1 = millis(rest[i+len(") (total time: "):])
		rest = rest[:i]
		i = strings.LastIndexByte(rest, '(')
		if i > 0 {
			t, err := time.Parse("02-Jan-2006 15:04:05.000", rest[i+1:])
			if err == nil {
				s.Start = t
			}
			s.Name, s.Fields, ok2 = parseName(strings.TrimSuffix(rest[:i], " "))
		}
		ok = ok1 && ok2 && !s.Start.IsZero()
	}
	s.Incomplete = !ok || i < 0
	return s
}

// parseEnd reads `[20.000001s] [20.000001s] END`.
func parseEnd(text string) (total time.Duration, ok bool) {
	text, ok = strings.CutSuffix(text, "] END")
	if !ok || !strings.HasPrefix(text, "[") {
		return 0, false
	}
	first, _, ok := strings.Cut(text[1:], "] [")
	if !ok {
		return 0, false
	}
	total, err := time.ParseDuration(first)
	return total, err == nil
}

// parseSummary reads `"name" fields 12ms (15:04:05.000)`, with any number of brackets after it. The clock is the time since midnight.
func parseSummary(text string) (name string, fields []Pair, took, clock time.Duration, ok bool) {
	text, ok = strings.CutSuffix(strings.TrimRight(text, "]"), ")")
	i := strings.LastIndex(text, "ms (")
	if !ok || i < 0 {
		return "", nil, 0, 0, false
	}
	t, err := time.Parse("15:04:05.000", text[i+len("ms ("):])
	j := strings.LastIndexByte(text[:i], ' ')
	if err != nil || j < 0 {
		return "", nil, 0, 0, false
	}
	clock = t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))
	took, ok1 := millis(text[j+1 : i])
	name, fields, ok2 := parseName(text[:j])
	return name, fields, took, clock, ok1 && ok2
}

// parseName reads `"name" fields`, or the name alone.
func parseName(text string) (string, []Pair, bool) {
	name, rest, ok := cutQuoted(text)
	if !ok || rest != "" && rest[0] != ' ' {
		return "", nil, false
	}
	return name, parseFields(strings.TrimPrefix(rest, " ")), true
}

// millis reads a whole number of milliseconds that a Duration can hold.
func millis(s string) (time.Duration, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	const most = int64(1<<63-1) / int64(time.Millisecond)
	if err != nil || n > most || n < -most {
		return 0, false
	}
	return time.Duration(n) * time.Millisecond, true
}

// parseFields reads `key:value,key:value`. Nothing is quoted, so a comma within a value is told from one between fields by what
// comes after it.
func parseFields(s string) (out []Pair) {
	for s != "" {
		end := nextField(s)
		key, value, ok := strings.Cut(s[:end], ":")
		if !ok {
			key, value = "", s[:end]
		}
		out = append(out, Pair{key, value})
		if end == len(s) {
			break
		}
		s = s[end+1:]
	}
	return out
}

// nextField finds the comma before the next field, or the end.
func nextField(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == ',' && beginsField(s[i+1:]) {
			return i
		}
	}
	return len(s)
}

func beginsField(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ':':
			return i > 0
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '_'):
		default:
			return false
		}
	}
	return false
}
