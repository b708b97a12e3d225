package pasted

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	// logged matches lines that a program logs: with a time, with klog's header, as JSON or logfmt, and what the runtime
	// prints as it dies.
	logged = regexp.MustCompile(
		`^\s*(?:[IWEF][0-9]{4} [0-9:.]+ |\[?[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9:]+|[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} |[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}[ ,]|` +
			`\{"|(?:Warning|Normal) +[A-Z]|\S.* KubeletNotReady |-? *"?message"?: |\[pod/|(?:\S+=\S* )*(?:time|level|ts|msg)=|(?:panic|fatal error): )`,
	)
	fence = regexp.MustCompile("^\\s*(?:```|~~~)")
	// explains are words of people who explain, and not of programs that log.
	explains = regexp.MustCompile(
		`(?i)\b(?:if|when|whenever|you|your|this|these|those|means?|because|should|shows?|see|look|check|our|we|usually|might|then|typically|often|` +
			`error|message|says?|following|try|e\.g)\b`,
	)
	// quotes matches what a sentence quotes.
	quotes = regexp.MustCompile("`[^`]+`|\"[^\"]+\"|“[^”]+”|'[^']{12,}'|<code>.*?</code>")
)

// markProse marks the lines of people who explain something, and what they quote. A paragraph is prose if no line of it
// was logged and it has two words of those who explain. In a text that has prose, lines without anything that shows that
// they were logged are quotes.
func markProse(all []Line) {
	found := false
	var paragraph []int
	end := func() {
		if isProse(all, paragraph) {
			found = true
			for _, i := range paragraph {
				all[i].Prose = true
			}
		}
		paragraph = paragraph[:0]
	}
	for i, l := range all {
		switch {
		case fence.Match(l.Text):
			end()
		case len(bytes.TrimSpace(l.Text)) == 0:
			end()
		default:
			paragraph = append(paragraph, i)
		}
	}
	end()
	if !found {
		return
	}
	for i, l := range all {
		if !logged.Match(l.Text) && kindOf(bytes.TrimSpace(l.Text)) == other {
			all[i].Prose = true
		}
	}
}

// isProse reports whether the lines of a paragraph explain something. What they quote doesn't count, but to quote in a
// sentence is to explain, too.
func isProse(all []Line, paragraph []int) bool {
	words := map[string]bool{}
	sentence := false
	for _, i := range paragraph {
		line := all[i].Text
		if len(line) > 4<<10 || logged.Match(line) || kindOf(bytes.TrimSpace(line)) != other {
			return false
		}
		rest := quotes.ReplaceAll(line, []byte(" "))
		sentence = sentence || len(rest) < len(line) && len(bytes.Fields(rest)) >= 4
		for _, w := range explains.FindAll(rest, -1) {
			words[strings.ToLower(string(w))] = true
		}
	}
	return len(words) >= 2 || sentence && len(words) >= 1
}
