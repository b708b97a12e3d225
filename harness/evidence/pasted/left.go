package pasted

import (
	"bytes"
	"regexp"
)

// maxLeft is the longest line, in bytes, that can say that something is left out.
const maxLeft = 300

var (
	// marked matches a line that begins with dots, or has marks alone: two dots, grep's line between what it found, scissors.
	marked = regexp.MustCompile(`^(?:\W*(?:\.{3}|…).*|\W*\.\s?\.\W*|\s*--\s*|\W*-\W*(?:8<|>8|✂|%<)\W*)$`)
	// saysLeft matches what people, and the tools that they paste into, write where they leave something out.
	saysLeft = regexp.MustCompile(
		`(?i)\b(?:snip(?:ped)?|elided|omitted|truncated|clipped|abridged|shortened|left out|cut (?:off|out|here|short)|trimmed|` +
			`and so on|rest of|excerpts?|many (?:more|others?|similar)|same (?:stack|as above))\b|` +
			`\b[0-9][0-9,.]*\+? ?(?:\w+ )?(?:more|others?|similar|additional|identical)\b|\b[0-9][0-9,]* (?:goroutines|stacks|lines) (?:like|are|have)\b|--more--|[\[<({]\W*(?:removed|skipped|deleted)\b`,
	)
	// lostLogs matches what log services log where they lost lines.
	lostLogs = regexp.MustCompile(
		`(?i)\b(?:suppressed|dropped|lost|missed) [0-9]+ (?:log )?(?:messages?|lines?|entries)\b|\b[0-9]+ (?:messages?|lines?|entries) (?:were )?(?:lost|dropped|suppressed)\b`,
	)
	// runtimes are the runtime's own marks in a deep stack, of which it prints the top and the bottom.
	runtimes = regexp.MustCompile(`^\.\.\.(?:additional|[0-9]+) frames elided\.\.\.$`)
	// chosen matches what people write above what they chose of a dump.
	chosen = regexp.MustCompile(
		`(?i)\b(?:relevant|interesting|suspicious|snippet|partial(?:ly)?|(?:parts?|some|portion|beginning|start|end|top|tail|head) of (?:the|a|our|my) (?:\w+ )?(?:dump|goroutines?|stacks?|logs?|output|traces?)|` +
			`(?:only|just) (?:the|those|these|one)|(?:first|last) [0-9]+ (?:lines|goroutines|stacks))\b`,
	)
)

// LeftOut reports whether a line between stacks says that something is left out there: `...`, [snip], `1,200 more
// goroutines`. Of a line that was logged, only a log service's own count of lost lines says so.
func LeftOut(line []byte) bool {
	if ofStack(line) {
		return false
	}
	_, text := inner(line)
	switch text = bytes.TrimSpace(text); {
	case len(text) < 2 || len(text) > maxLeft || runtimes.Match(text):
		return false
	case lostLogs.Match(line):
		return true
	}
	return (marked.Match(text) || saysLeft.Match(text)) && !logged.Match(text)
}

// ofStack reports whether a line ends as nearly all lines of stacks do, which are many.
func ofStack(line []byte) bool {
	if len(line) == 0 {
		return true
	}
	switch end := line[len(line)-1]; {
	case end == ')': // of a call, before whose arguments there is no space
		return line[0] != '(' && !bytes.Contains(line, []byte(" ("))
	case end == ':':
		return bytes.Contains(line, word)
	case '0' <= end && end <= '9':
		return bytes.Contains(line, []byte(".go:")) || bytes.Contains(line, inGoroutine)
	}
	return false
}

// leftOut looks for lines that say that something was left out of the stacks in a text.
func (t *Text) leftOut() {
	if !mayHaveStacks(t.Lines) {
		return
	}
	for _, l := range t.Lines {
		if l.Prose && chosen.Match(l.Text) || LeftOut(l.Text) {
			t.part("something was left out of it")
			return
		}
	}
}
