package goroutine

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// kind is a way in which logs wrap the lines of a dump.
type kind int

const (
	podLine   kind = iota // [pod/NAME/CONTAINER] text, as kubectl logs --prefix prints it
	jsonLine              // docker's json-file, journalctl -o json, any logger that writes JSON
	criLine               // 2026-11-21T12:00:00.123456789Z stderr F text
	unitLine              // Nov 21 12:00:00 host ident[123]: text, and -o short-iso
	timedLine             // 2026-11-21T12:00:00.123Z text, 2026/11/21 12:00:00 text
	klogLine              // E1121 12:00:00.123456    1234 file.go:12] text
	kinds
)

// maxLayers is how many wrappings may lie within each other, as klog in CRI in a timestamp does.
const maxLayers = 3

// layer takes off one wrapping. Lines without it pass as they are: a klog header, for example, stands only before the
// first line of a message.
type layer struct {
	kind   kind
	stream string // CRI and docker: the stream that the dump is on; lines of the other are dropped
	field  string // JSON: the field that the dump is in
	part   []byte // CRI and docker: the line's parts so far
}

// detect looks for the first line of a dump in line, under at most depth wrappings. It returns the wrappings and the
// format, which is 0 if there is no dump.
func detect(line []byte, depth int) ([]*layer, Format) {
	for text := line; ; {
		one, rest, more := bytes.Cut(text, newline)
		one = bytes.TrimRight(one, "\r")
		if isProfileHeader(one) {
			return nil, Profile
		}
		if _, ok := parseHeader(one); ok {
			return nil, Stacks
		}
		if !more {
			break
		}
		text = rest
	}
	if depth == 0 || !bytes.Contains(line, []byte("goroutine")) && !bytes.Contains(line, []byte(`"MESSAGE"`)) {
		return nil, 0
	}
	for k := range kinds {
		for _, l := range candidates(k, line) {
			text, what := l.strip(line)
			if what != whole {
				continue
			}
			if inner, format := detect(text, depth-1); format != 0 {
				return append([]*layer{l}, inner...), format
			}
		}
	}
	return nil, 0
}

// candidates returns the layers of kind k that line may have: one for each likely field of a JSON object, else one.
func candidates(k kind, line []byte) []*layer {
	switch k {
	case criLine:
		_, stream, _, _ := cutCRI(line)
		return []*layer{{kind: k, stream: stream}}
	case jsonLine:
		fields := object(line)
		var all []*layer
		for _, f := range slices.Sorted(maps.Keys(fields)) {
			if f == "MESSAGE" || bytes.Contains(fields[f], []byte("goroutine")) {
				all = append(all, &layer{kind: k, field: f, stream: dockerStream(fields)})
			}
		}
		return all[:min(len(all), 8)]
	}
	return []*layer{{kind: k}}
}

// found says what strip found.
type found int

const (
	foreign found = iota // the wrapping isn't there
	whole                // a whole text, of one or more lines
	partial              // the beginning or middle of a line, which goes on in the stream's next one
	other                // a line of another stream
)

// feed takes the next wrapped line and returns its text, which may be several lines, or false if there is none (yet).
func (l *layer) feed(line []byte) ([]byte, bool) {
	text, what := l.strip(line)
	switch what {
	case foreign:
		return line, true
	case other:
		return nil, false
	case partial:
		l.part = append(l.part, text[:min(len(text), maxLine-len(l.part))]...)
		return nil, false
	}
	if len(l.part) > 0 {
		text = append(l.part, text...)
		l.part = nil
	}
	return text, true
}

// strip takes the wrapping off one line.
func (l *layer) strip(line []byte) ([]byte, found) {
	var text []byte
	ok := false
	switch l.kind {
	case jsonLine:
		return l.stripJSON(line)
	case criLine:
		text, stream, part, ok := cutCRI(line)
		switch {
		case !ok:
			return nil, foreign
		case stream != l.stream:
			return nil, other
		case part:
			return text, partial
		}
		return text, whole
	case unitLine:
		text, ok = cutUnit(line)
	case podLine:
		text, _, ok = cutPod(line)
	case timedLine:
		text, ok = cutTime(line)
	case klogLine:
		text, ok = cutKlog(line)
	}
	if !ok {
		return nil, foreign
	}
	return text, whole
}

func (l *layer) stripJSON(line []byte) ([]byte, found) {
	fields := object(line)
	raw, ok := fields[l.field]
	if !ok {
		return nil, foreign
	}
	if dockerStream(fields) != l.stream {
		return nil, other
	}
	var text []byte
	var s string
	if json.Unmarshal(raw, &s) == nil {
		text = []byte(s)
	} else if text, ok = byteArray(raw); !ok {
		return nil, foreign
	}
	if l.stream != "" && l.field == "log" && !bytes.HasSuffix(text, newline) {
		return text, partial
	}
	return text, whole
}

// object decodes a line that is one JSON object; nil if it isn't.
func object(line []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &fields) != nil {
		return nil
	}
	return fields
}

// dockerStream returns the stream of a line in docker's json-file log; "" if it is no such line.
func dockerStream(fields map[string]json.RawMessage) string {
	var s string
	if _, ok := fields["log"]; !ok || json.Unmarshal(fields["stream"], &s) != nil {
		return ""
	}
	return s
}

// byteArray reads journald's form of a message that isn't clean text.
func byteArray(raw json.RawMessage) ([]byte, bool) {
	var wide []uint16 // a []byte would be read as base64
	if json.Unmarshal(raw, &wide) != nil || wide == nil {
		return nil, false
	}
	text := make([]byte, 0, len(wide))
	for _, n := range wide {
		if n > 255 {
			return nil, false
		}
		text = append(text, byte(n))
	}
	return text, true
}
