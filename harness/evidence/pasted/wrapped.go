package pasted

import (
	"bytes"
	"io"
	"mime/quotedprintable"
	"regexp"
	"strings"
)

// wrappings are what tools and people put around each line: its beginning, and its end.
var wrappings = [][2]string{
	{"`", "`"},
	{"**", "**"},
	{"│", "│"},
	{"┃", "┃"},
	{"|", "|"},
	{"", "$"},
	{"", `\`},
	{"", "¶"},
	{"", "↵"},
	{"", "⏎"},
}

// leastWrapped is how many lines show that each line is wrapped.
const leastWrapped = 4

// unwrapped takes off what is around each line. `cat -A` and editors end lines with a dollar sign, and show tabs, too.
func unwrapped(text []byte) ([]byte, bool) {
	for _, w := range wrappings {
		out, ok := without(text, []byte(w[0]), []byte(w[1]))
		if ok && w[1] == "$" {
			out = bytes.ReplaceAll(
				bytes.ReplaceAll(out, []byte("^I"), []byte("\t")),
				[]byte(`\t`),
				[]byte("\t"),
			)
		}
		if ok {
			return out, true
		}
	}
	return nil, false
}

// without returns a text whose lines are all between two marks without these. A line in ten may lack them.
func without(text, before, after []byte) ([]byte, bool) {
	if !bytes.Contains(text, after) {
		return nil, false
	}
	var out bytes.Buffer
	n, others := 0, 0
	for line := range bytes.Lines(text) {
		body := bytes.TrimRight(line, " \r\n")
		bare, begins := bytes.CutPrefix(body, before)
		bare, ends := bytes.CutSuffix(bare, after)
		switch {
		case begins && ends:
			n++
		case len(body) > 0:
			others++
			fallthrough
		default:
			bare = body
		}
		out.Write(append(bare[:len(bare):len(bare)], '\n'))
		if others > leastWrapped && others > n {
			return nil, false
		}
	}
	return out.Bytes(), n >= leastWrapped && others*10 <= n
}

// backslashed matches what web forms put a backslash before, so that Markdown leaves it alone.
var backslashed = regexp.MustCompile(`\\([\[\]_*()#<>.!{}|~+-])`)

// starred takes backslashes off where a method's type shows that somebody has put them before marks.
func starred(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte(`.(\*`)) {
		return nil, false
	}
	return unbackslashed(text)
}

func unbackslashed(text []byte) ([]byte, bool) {
	if !backslashed.Match(text) {
		return nil, false
	}
	return backslashed.ReplaceAll(text, []byte("$1")), true
}

// printable decodes a mail whose text is quoted-printable: each = in it begins a code, or ends a line that goes on.
func printable(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte("=\n")) && !bytes.Contains(text, []byte("=\r\n")) || notPrintable.Match(text) {
		return nil, false
	}
	out, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(text)))
	return out, err == nil
}

var notPrintable = regexp.MustCompile(`=(?:[^0-9A-F\r\n]|[0-9A-F][^0-9A-F])`)

// plainQuotes puts plain quotation marks in place of those that word processors write. What a program prints has fields
// in quotes.
func plainQuotes(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, []byte("“")) || !hasAny(bytes.Contains, text, stackMarks) {
		return nil, false
	}
	return []byte(strings.NewReplacer("“", `"`, "”", `"`).Replace(string(text))), true
}

// ofPython matches a text that Python prints as the value that it is: a string, or a list of strings.
var (
	ofPython   = regexp.MustCompile(`^(?:\[\s*)?b?` + pythonText + `(?:,\s*b?` + pythonText + `)*,?\s*\]?\s*$`)
	pythonOnes = regexp.MustCompile(`b?` + pythonText)
	ofReplacer = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "", `\'`, `'`, `\"`, `"`)
)

const pythonText = `(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")`

// python takes a text out of a value of Python.
func python(text []byte) ([]byte, bool) {
	if len(text) == 0 || !bytes.Contains([]byte(`b'["`), text[:1]) || !bytes.Contains(text[:min(len(text), 16<<10)], []byte(`\n`)) || !ofPython.Match(text) {
		return nil, false
	}
	if text[0] == '"' || text[0] == '[' && bytes.Count(text, []byte(`'`)) < leastWrapped { // JSON has these, too
		return nil, false
	}
	var out bytes.Buffer
	for _, one := range pythonOnes.FindAll(text, -1) {
		body := bytes.TrimPrefix(one, []byte("b"))
		out.WriteString(ofReplacer.Replace(string(body[1 : len(body)-1])))
	}
	return out.Bytes(), true
}

var (
	elements = regexp.MustCompile(
		`</?[A-Za-z][\w:.-]*(?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>|<\?xml[^>]*\?>`,
	)
	cdata     = []byte("<![CDATA[")
	beginsXML = [][]byte{[]byte("<?xml"), []byte("<rss "), []byte("<rss>"), []byte("<!-- RSS ")}
)

// document takes the elements of XML off.
func document(text []byte) ([]byte, bool) {
	raw := bytes.Contains(text, cdata)
	if !raw && !hasAny(bytes.HasPrefix, bytes.TrimSpace(text[:min(len(text), 256)]), beginsXML) {
		return nil, false
	}
	out := elements.ReplaceAll(text, newline)
	if raw {
		return bytes.ReplaceAll(
			bytes.ReplaceAll(out, cdata, newline),
			[]byte("]]>"),
			newline,
		), true
	}
	plain, _ := markup(append(out, "&#10;"...)) // so that there is something to take off
	if inner, ok := page(plain); ok {           // a feed has pages within its elements
		plain = inner
	}
	return plain, true
}

// padded matches a goroutine's header with spaces after it, as terminals leave them.
var padded = regexp.MustCompile(`(?m)goroutine [0-9]+ \[[^\]\n]*\]:[ \t]+\r?$`)

// unpadded takes the spaces off the ends of lines.
func unpadded(text []byte) ([]byte, bool) {
	if !bytes.Contains(text, word) || !padded.Match(text) {
		return nil, false
	}
	return ends.ReplaceAll(text, nil), true
}

var ends = regexp.MustCompile(`(?m)[ \t]+\r?$`)
