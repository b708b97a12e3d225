package pasted

import (
	"bytes"
	"regexp"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// unstamped returns the lines without what a collector of logs has put before each of them: a time, a stream, the name of a
// container. It returns nil if no collector did. A program that writes times itself puts them before its messages, and
// neither before empty lines nor within a stack.
func unstamped(all []Line) []Line {
	out := make([]Line, len(all))
	wrapped, plain, each := 0, 0, false
	for i, l := range all {
		out[i] = l
		if len(bytes.TrimSpace(l.Text)) == 0 {
			continue
		}
		text, _ := goroutine.Plain(l.Text, time.UTC)
		if len(text) == len(l.Text) {
			plain++
			continue
		}
		wrapped++
		out[i].Text = text
		core := bytes.TrimSpace(text)
		each = each || len(core) == 0 || fence.Match(core) || kindOf(core) != other
	}
	if !each || plain*10 > wrapped {
		return nil
	}
	return out
}

// explain finds out whether a text explains something to others, and which of its lines do. A collector may have put a
// time before each line of it, as where a program printed a manual.
func (t *Text) explain() {
	markProse(t.Lines)
	t.Teaches = teaching(t.Lines)
	text := t.Lines
	if plain := unstamped(t.Lines); plain != nil {
		text = plain
		if teaching(plain) {
			t.Teaches = true
			markProse(plain)
			for i, l := range plain {
				t.Lines[i].Prose = t.Lines[i].Prose || l.Prose
			}
		}
	}
	for _, l := range text {
		if len(t.Begin)+len(l.Text) >= maxBegin {
			break
		}
		t.Begin = append(append(t.Begin, l.Text...), '\n')
	}
}

// maxBegin bounds the beginning of a text that tells what the text is, in bytes.
const maxBegin = 4 << 10

// ofTests matches the elements of a report of tests in XML, and the records that go test prints as JSON.
var ofTests = regexp.MustCompile(
	`<testsuites?[\s>]|<testcase\s|"Action": ?"(?:start|run|output|pause|cont|pass|fail|skip)"[^\n]{0,400}"Package": ?"`,
)

// reportOfTests returns what shows that a text is a report of tests, "" if nothing does.
func reportOfTests(raw []byte) string {
	return string(ofTests.Find(raw[:min(len(raw), maxReport)]))
}

// maxReport is how much of a text is looked at to tell whether it is a report of tests, in bytes.
const maxReport = 64 << 10
