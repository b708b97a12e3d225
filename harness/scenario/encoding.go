package scenario

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// byteOrderMark is what some editors put before a text in UTF-8. It says nothing, and YAML allows it.
const byteOrderMark = "\ufeff"

// octal matches a number that YAML 1.1 takes for an octal one, and YAML 1.2 for a decimal one.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// misencoded says what keeps text from being YAML before any of it is parsed, and where that stands; "" for nothing. The
// parser passes such bytes on, and they would end up in names and sentences.
func misencoded(text []byte) (position, string) {
	for n, line := range bytes.Split(text, []byte("\n")) {
		column := 1
		for len(line) > 0 {
			r, size := utf8.DecodeRune(line)
			at := position{n + 1, column}
			switch {
			case r == utf8.RuneError && size == 1:
				return at, fmt.Sprintf("has the byte 0x%02X, which is no UTF-8 (want the file saved as UTF-8)", line[0])
			case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
				return at, fmt.Sprintf("has the control character %U (want it left out)", r)
			}
			line, column = line[size:], column+1
		}
	}
	return position{}, ""
}

// wants maps what the parser says of broken YAML to what is wanted. The first one that fits counts.
var wants = []struct{ says, want string }{
	{"cannot start any token", "spaces in front of a line, no tab"},
	{"value is not allowed in this context", "each field in the column of those beside it, and a list's members behind a dash"},
	{"invalid header option", "quotes around a text with | or > in it; or a quote above isn't closed"},
	{"non-map value is specified", "a space behind the colon: name: value"},
	{"must be specified", "the bracket closed"},
	{"not found", "the bracket closed"},
	{"could not find end character", "the quote closed"},
}

// explained returns what the parser says of broken YAML, and what is wanted instead.
func explained(message string) string {
	for _, w := range wants {
		if strings.Contains(message, w.says) {
			return message + " (want " + w.want + ")"
		}
	}
	return message + " (want fields as name: value, those of one thing in one column)"
}
