package pasted

import (
	"bytes"
	"html"
	"regexp"

	"golang.org/x/text/encoding/unicode"
)

// decoder is a form of a whole text.
type decoder struct {
	did string
	// decode returns the text without the form; false if it isn't there.
	decode func([]byte) ([]byte, bool)
	// sure says that the form itself proves to be there. Otherwise it counts only if more of stacks is read without it.
	sure bool
}

const exported = "took the lines out of an export"

// decoders are tried in this order, each on what the one before it left.
var decoders = []decoder{
	{"decoded it from base64", encodedText, true},
	{"read it as UTF-16", wide, true},
	{"took CR as the end of lines", returns, true},
	{"took the output out of a recording", recording, true},
	{"took colours out", colours, true},
	{"put the panes of a terminal below each other", panes, false},
	{"decoded it from quoted-printable", printable, true},
	{"took it for a string of Python", python, true},
	{"took the marks of records off", sequence, true},
	{exported, records, true},
	{"took XML off", document, true},
	{"took HTML off", page, true},
	{"took HTML off", markup, false},
	{"read values between quotes", quotedValues, false},
	{"took the strings of a list for lines", listed, false},
	{`took \n and \t for what they stand for`, escapes, false},
	{"decoded it as addresses of pages are", percent, false},
	{"put lines back that had become one", flattened, false},
	{"took what editors show for tabs", tabsShown, false},
	{"joined the parts of long lines", parts, true},
	{"took no-break spaces for spaces", unbroken, true},
	{"took out what has no width", widthless, true},
	{"took backslashes off marks", starred, true},
	{"took backslashes off marks", unbackslashed, false},
	{"took typographic quotation marks for plain ones", plainQuotes, true},
	{"took off what is around each line", unwrapped, true},
	{"took spaces off the ends of lines", unpadded, true},
	{exported, fenced, true},
	{"joined the lines that a terminal had broken", unfold, true},
}

// decode takes the forms off a text, and says which it had.
func decode(raw []byte) (text []byte, did []string) {
	text = raw
	for _, d := range decoders {
		out, ok := d.decode(text)
		if ok && (d.sure || more(out, text)) {
			text, did = out, append(did, d.did)
		}
	}
	return text, did
}

// more reports whether more of stacks is read from a text than from another one, or lines of klog where it has none.
func more(is, was []byte) bool {
	return frames(is) > frames(was) || writtenLines(was) == 0 && writtenLines(is) > 1
}

// writtenLines returns how many lines of a text are as klog or the runtime begins them.
func writtenLines(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		if written.Match(line) {
			n++
		}
	}
	return n
}

// Wide reports whether the beginning of a text is in UTF-16 without a mark that says so, and in which order of bytes:
// every other byte of nearly all is zero.
func Wide(head []byte) (order unicode.Endianness, ok bool) {
	head = head[:len(head)&^1]
	if len(head) < 8 {
		return false, false
	}
	zeros := [2]int{}
	for i, c := range head {
		if c == 0 {
			zeros[i&1]++
		}
	}
	half := len(head) / 2
	switch {
	case zeros[0] == 0 && zeros[1]*10 >= half*9:
		return unicode.LittleEndian, true
	case zeros[1] == 0 && zeros[0]*10 >= half*9:
		return unicode.BigEndian, true
	}
	return false, false
}

func wide(raw []byte) ([]byte, bool) {
	order, ok := Wide(raw[:min(len(raw), 4<<10)])
	if !ok {
		return nil, false
	}
	out, err := unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder().Bytes(raw)
	return out, err == nil
}

func returns(text []byte) ([]byte, bool) {
	if bytes.IndexByte(text, '\r') < 0 || bytes.Contains(text, newline) {
		return nil, false
	}
	return bytes.ReplaceAll(text, []byte("\r"), newline), true
}

var (
	escaped = regexp.MustCompile(`(?:\x1b|\^\[|\\x1b|\\u001b|\\033|\\e)\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[=>78]`)
	bare    = regexp.MustCompile(`\[(?:[0-9]{1,3}(?:;[0-9]{1,3})*)?m`) // where the escape itself got lost
)

// colours takes out what makes a terminal show colours, also where the escape itself got lost.
func colours(text []byte) ([]byte, bool) {
	if (bytes.IndexByte(text, 0x1b) >= 0 || bytes.Contains(text, []byte("^[[")) || bytes.Contains(text, []byte(`1b[`)) || bytes.Contains(text, []byte(`033[`)) ||
		bytes.Contains(text, []byte(`\e[`))) &&
		escaped.Match(text) {
		return escaped.ReplaceAll(text, nil), true
	}
	if bytes.Count(text, []byte("[0m")) < 2 {
		return nil, false
	}
	return bare.ReplaceAll(text, nil), true
}

var (
	breaks = regexp.MustCompile(`(?i)<br ?/?>|</(?:p|div|li|tr|pre|h[1-6])>`)
	cells  = regexp.MustCompile(`(?i)</t[dh]>\s*<t[dh](?:\s[^<>]*)?>`)
	tags   = regexp.MustCompile(`(?i)</?(?:html|head|body|pre|code|p|div|span|br|a|b|i|em|strong|font|table|tbody|thead|tr|td|th|ul|ol|li|h[1-6]|blockquote|details|summary|article|section|tt|kbd)(?:\s[^<>]*)?/?>`)
)

// page takes HTML off a text that is a page, or has blocks of code as pages do.
func page(text []byte) ([]byte, bool) {
	begin := bytes.ToLower(bytes.TrimSpace(text[:min(len(text), 256)]))
	if !bytes.HasPrefix(begin, []byte("<!doctype html")) && !bytes.HasPrefix(begin, []byte("<html")) &&
		!(bytes.Contains(text, []byte("<pre")) && bytes.Contains(text, []byte("</pre>"))) && !tagged(text) {
		return nil, false
	}
	return markup(text)
}

// tagged reports whether most lines of a text have tags, or all its quotation marks are as HTML writes them.
func tagged(text []byte) bool {
	half := max(2, bytes.Count(text, newline)/2)
	if bytes.Count(text, []byte("</td>")) >= half || bytes.Count(text, []byte("<br")) >= half {
		return true
	}
	return (bytes.Contains(text, []byte("&quot;")) || bytes.Contains(text, []byte("&#34;"))) &&
		bytes.IndexByte(text, '"') < 0
}

// markup takes HTML off. In it, lines end where the text has line ends, as in pre, and after what begins a new line.
func markup(text []byte) ([]byte, bool) {
	hasTags := (bytes.Contains(text, []byte("</")) || bytes.Contains(text, []byte("<br")) || bytes.Contains(text, []byte("<BR"))) && tags.Match(text)
	if !hasTags && !bytes.Contains(text, []byte("&gt;")) && !bytes.Contains(text, []byte("&quot;")) && !bytes.Contains(text, []byte("&#")) &&
		!bytes.Contains(text, []byte("&nbsp;")) {
		return nil, false
	}
	out := breaks.ReplaceAllFunc(
		cells.ReplaceAll(text, []byte("\t")),
		func(tag []byte) []byte { return append(newline[:1:1], tag...) },
	)
	out = tags.ReplaceAll(out, nil)
	plain := html.UnescapeString(string(out))
	return bytes.ReplaceAll([]byte(plain), noBreak, []byte(" ")), true
}

// noBreak is what web pages and word processors put where a text has several spaces.
var noBreak = []byte("\u00a0")

func unbroken(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, noBreak) {
		return nil, false
	}
	return bytes.ReplaceAll(text, noBreak, []byte(" ")), true
}

// noWidth matches characters that web pages put where a long word may be broken.
var (
	noWidth = regexp.MustCompile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]")
	widths  = [][]byte{[]byte("\u00ad"), []byte("\u200b"), []byte("\u2060"), []byte("\ufeff")}
)

func widthless(text []byte) ([]byte, bool) {
	if !hasAny(bytes.Contains, text, widths) {
		return nil, false
	}
	return noWidth.ReplaceAll(text, nil), true
}

// calls returns how many lines of a text are functions on a stack, with their arguments.
func calls(text []byte) (n int) {
	return countCalls(lines(text))
}

// countCalls returns how many of some lines are functions on a stack, with their arguments.
func countCalls(all []Line) (n int) {
	for _, l := range all {
		if kindOf(bytes.TrimSpace(l.Text)) == function {
			n++
		}
	}
	return n
}
