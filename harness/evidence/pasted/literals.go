package pasted

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// literal matches a line that is a string, or a field of JSON or YAML with a string, with several lines in it.
var literal = regexp.MustCompile(
	`(?m)^[ \t]*(?:"?[\w.@-]+"?[ \t]*[:=][ \t]*)?"((?:[^"\\]|\\.)*\\n(?:[^"\\]|\\.)*)"[ \t]*,?[ \t]*$`,
)

// spelled are what stands for line ends and for what else a line has, by who writes it so: programs in many languages,
// rsyslog for a message of several lines.
var spelled = [...][2]string{
	{`\r\n`, "\n"}, {`\n`, "\n"}, {`\t`, "\t"}, {`\"`, `"`}, {`\u003c`, "<"}, {`\u003e`, ">"},
	{`\u000a`, "\n"}, {`\u000A`, "\n"}, {`\u0009`, "\t"}, {`\x0a`, "\n"}, {`\x09`, "\t"}, {`#012`, "\n"}, {`#011`, "\t"},
}

// lineEnds are those of spelled that end lines, without which nothing is to be done.
var lineEnds = [][]byte{[]byte(`\n`), []byte(`\u000`), []byte(`\x0a`), []byte(`#012`)}

// escapes puts line ends and tabs where a text has \n and \t, or what else is written for them.
func escapes(text []byte) ([]byte, bool) {
	if !hasAny(bytes.Contains, text, lineEnds) {
		return nil, false
	}
	if literal.Match(text) {
		return literal.ReplaceAllFunc(text, func(line []byte) []byte {
			s, err := strconv.Unquote(`"` + string(literal.FindSubmatch(line)[1]) + `"`)
			if err != nil {
				return line
			}
			return []byte(s)
		}), true
	}
	for _, r := range spelled {
		text = bytes.ReplaceAll(text, []byte(r[0]), []byte(r[1]))
	}
	return text, true
}

// percent decodes a text as addresses of pages have it.
func percent(text []byte) ([]byte, bool) {
	if bytes.Count(text, []byte("%0A")) < leastWrapped || bytes.Count(text, newline) > leastWrapped {
		return nil, false
	}
	decode := url.PathUnescape
	if bytes.Contains(text, []byte("%2B")) { // the plus itself is written so where it stands for a space
		decode = url.QueryUnescape
	}
	out, err := decode(string(text))
	return []byte(out), err == nil
}

// element matches a line that is one string of a list in JSON.
var element = regexp.MustCompile(`^[ \t]*("(?:[^"\\]|\\.)*"),?[ \t]*\r?\n?$`)

// listed takes strings that stand one a line, as Ansible prints the output of a command, for lines.
func listed(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte("\",\n")) && !bytes.Contains(text, []byte("\",\r\n")) {
		return nil, false
	}
	n := 0
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		var s string
		m := element.FindSubmatch(line)
		if m == nil || json.Unmarshal(m[1], &s) != nil {
			out.Write(line)
			continue
		}
		n++
		out.WriteString(strings.TrimRight(s, "\r\n"))
		out.WriteByte('\n')
	}
	return out.Bytes(), n >= leastWrapped
}

// foldedValue matches a field of YAML whose value is between quotes and goes on in the next line.
var foldedValue = regexp.MustCompile(`^[ \t]*(?:- )?[\w.-]+: (?:"(?:[^"\\]|\\.)*\\?|'(?:[^']|'')*)\r?\n?$`)

// maxFolded is how long a value between quotes may be, in bytes.
const maxFolded = 256 << 10

// quotedValues reads values between quotes that YAML has folded at the width of its lines.
func quotedValues(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte(`: "`)) && !bytes.Contains(text, []byte(": '")) {
		return nil, false
	}
	var out bytes.Buffer
	found := false
	for rest := text; len(rest) > 0; {
		line := firstLine(rest)
		if value, n := quotedValue(rest, line); n > 0 {
			out.WriteString(strings.TrimRight(value, "\n"))
			out.WriteByte('\n')
			rest, found = rest[n:], true
			continue
		}
		out.Write(line)
		rest = rest[len(line):]
	}
	return out.Bytes(), found
}

func firstLine(text []byte) []byte {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}

// quotedValue returns the value of several lines that a text begins with, and how long it is in the text; 0 if it begins
// with none.
func quotedValue(text, line []byte) (value string, n int) {
	if len(line) > 4<<10 || !foldedValue.Match(line) {
		return "", 0
	}
	at := bytes.Index(line, []byte(": ")) + 2
	end := endOfValue(text[at:])
	if end < 0 {
		return "", 0
	}
	n = at + end
	rest := firstLine(text[n:])
	if len(bytes.TrimSpace(rest)) > 0 { // the quotation mark is one of the text's own
		return "", 0
	}
	var v map[string]any
	if yaml.Unmarshal(bytes.TrimLeft(text[:n], " \t-"), &v) != nil {
		return "", 0
	}
	for _, x := range v {
		value, _ = x.(string)
	}
	if !strings.Contains(value, "\n") {
		return "", 0
	}
	return value, n + len(rest)
}

// endOfValue returns where a value ends that begins with a quotation mark; -1 if it has no end.
func endOfValue(text []byte) int {
	for i := 1; i < min(len(text), maxFolded); i++ {
		switch {
		case text[0] == '"' && text[i] == '\\', text[0] == '\'' && text[i] == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return -1
}

// shownTabs matches what editors show in the place of a tab at the beginning of a line.
var (
	shownTabs = regexp.MustCompile(`(?m)^(?:[→»⇥␉][ ·]*)+`)
	tabMarks  = [][]byte{[]byte("→"), []byte("»"), []byte("⇥"), []byte("␉")}
)

// tabsShown puts tabs in the place of what editors show for them.
func tabsShown(text []byte) ([]byte, bool) {
	if !hasAny(bytes.Contains, text, tabMarks) || !shownTabs.Match(text) {
		return nil, false
	}
	return bytes.ReplaceAll(shownTabs.ReplaceAll(text, []byte("\t")), []byte("·"), []byte(" ")), true
}

// recorded matches a line of a recording of a terminal, as asciinema keeps it: when, that it is output, and what.
var recorded = regexp.MustCompile(`^\[[0-9.]+, ?"o", ?("(?:[^"\\]|\\.)*")\]\s*$`)

// recording returns the output in a recording of a terminal.
func recording(text []byte) ([]byte, bool) {
	if head := firstLine(text); len(head) == 0 || head[0] != '{' || !bytes.Contains(head, []byte(`"version"`)) {
		return nil, false
	}
	var out bytes.Buffer
	n := 0
	for line := range bytes.Lines(text) {
		var s string
		if m := recorded.FindSubmatch(line); m != nil && json.Unmarshal(m[1], &s) == nil {
			n++
			out.WriteString(s)
		}
	}
	return out.Bytes(), n >= leastWrapped
}

// ofPart matches a line of the kubelet's that goes on in the next one of its stream: it is longer than what is written
// at once.
var ofPart = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+ (stdout|stderr) ([PF])(?: |$)`)

// parts joins lines that were too long to be written at once.
func parts(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte(" stderr P ")) && !bytes.Contains(text, []byte(" stdout P ")) {
		return nil, false
	}
	var out bytes.Buffer
	open := map[string][]byte{} // by stream, what has no end yet
	joins := 0
	for line := range bytes.Lines(text) {
		m := ofPart.FindSubmatchIndex(line)
		if m == nil {
			out.Write(line)
			continue
		}
		stream, body := string(line[m[2]:m[3]]), bytes.TrimRight(line[m[1]:], "\r\n")
		begun, more := open[stream]
		if !more {
			begun = append(bytes.Clone(line[:m[4]]), "F "...)
		} else {
			joins++
		}
		begun = append(begun, body...)
		if line[m[4]] == 'P' {
			open[stream] = begun
			continue
		}
		delete(open, stream)
		out.Write(append(begun, '\n'))
	}
	for _, stream := range slices.Sorted(maps.Keys(open)) {
		out.Write(append(open[stream], '\n'))
	}
	return out.Bytes(), joins > 0
}
