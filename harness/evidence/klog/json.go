package klog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// parseJSON reads a line of component-base's JSON format: "ts" in milliseconds since 1970, "caller", "msg", "v" for
// info lines only, and then the pairs, of which keys may repeat.
func parseJSON(text []byte, loc *time.Location) (Line, bool) {
	fields, err := object(text)
	if err != nil {
		return Line{}, false
	}
	l := Line{Severity: Error, Structured: true}
	var hasTime, hasMessage bool
	for _, f := range fields {
		switch {
		case f.name == "ts" && !hasTime:
			ms, err := strconv.ParseFloat(string(f.raw), 64)
			if err != nil || ms < 0 || ms > 1e15 {
				return Line{}, false
			}
			hasTime = true
			l.Time = time.UnixMicro(int64(ms * 1000)).In(loc)
		case f.name == "msg" && !hasMessage:
			hasMessage = json.Unmarshal(f.raw, &l.Message) == nil
		case f.name == "caller" && l.File == "":
			l.File = f.text()
			if i := strings.LastIndexByte(l.File, ':'); i >= 0 {
				if n, err := strconv.Atoi(l.File[i+1:]); err == nil {
					l.File, l.SourceLine = l.File[:i], n
				}
			}
		case f.name == "v" && l.Severity == Error:
			n, err := strconv.Atoi(string(f.raw))
			if err != nil {
				return Line{}, false
			}
			l.Severity, l.Verbosity = Info, n
		default:
			l.Pairs = append(l.Pairs, Pair{f.name, f.text()})
		}
	}
	return l, hasTime && hasMessage
}

// field is a member of a JSON object.
type field struct {
	name string
	raw  json.RawMessage
}

// text returns a string's value, and anything else as it was written.
func (f field) text() string {
	var s string
	if len(f.raw) > 0 && f.raw[0] == '"' && json.Unmarshal(f.raw, &s) == nil {
		return s
	}
	return string(f.raw)
}

// object reads the members of one JSON object in order, also repeated ones. With an error it returns the members before
// it.
func object(text []byte) ([]field, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil {
		return nil, err
	} else if t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var fields []field
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return fields, err
		}
		name, _ := t.(string) // a key is a string, or Token had failed
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fields, err
		}
		fields = append(fields, field{name, raw})
	}
	if _, err := dec.Token(); err != nil {
		return fields, err
	}
	if rest := text[dec.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return fields, fmt.Errorf("%d bytes after the JSON object", len(rest))
	}
	return fields, nil
}
