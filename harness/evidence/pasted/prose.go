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

var (
	// teaches matches what people write who explain to others what they may come upon.
	teaches = regexp.MustCompile(
		`(?i)^\W*(?:troubleshooting|symptoms?|remediation|resolution|mitigation)\b|\b(?:(?:if|when|whenever) you (?:see|find|get|run|notice|have|observe|hit|encounter)|you(?:'ll| will| may| might| can| should| would) (?:see|find|get|notice|observe|recogni[sz]e)|` +
			`looks? (?:something |roughly |a bit )?like (?:this|the following|these|so|that)|your (?:nodes?|kubelets?|clusters?|api ?servers?|schedulers?|components?|dumps?|own)|let(?:'s|s| us) (?:look|see|take)|` +
			`for example|an example|(?:is|are) (?:shown|given|quoted|reproduced|listed) (?:below|above|here)|how (?:to|do (?:I|you)) (?:read|debug|diagnose|recogni[sz]e|identify|find|spot|tell))\b`,
	)
	// lectures matches what a text says of itself that is written for others, whatever its author lived through.
	lectures = regexp.MustCompile(
		`(?i)\b(?:(?:this|the present) (?:article|blog|post|blog post|guide|tutorial|chapter|runbook|playbook|manual|walk-?through|how-?to)|runbook|playbook|tutorial|` +
			`(?:example|sample|typical) (?:of|input|output|dump|stack|trace|goroutine)|textbook|case study|post-?mortems? (?:of|by|from))\b`,
	)
	// own matches what people write of what they have themselves.
	own = regexp.MustCompile(
		`(?i)\b(?:(?:our|my) (?:\w+ )?(?:nodes?|kubelets?|clusters?|api ?servers?|schedulers?|components?|dumps?|logs?|environment|setup|production|prod|control plane)|(?:we|i) (?:have|had|see|saw|got|get|are|am|run|use|noticed|found|took|tried|upgraded|hit)|i'm|we're|i've|we've)\b`,
	)
	// reported matches the headings of forms for issues.
	reported = regexp.MustCompile(`(?i)^[\s#*_>-]*(?:what happened|what (?:did you|you) expect|how (?:to|can we) reproduce|steps to reproduce|anything else we need to know|environment|/kind )`)
)

var (
	// cites matches what names another report, and gives whose.
	cites = regexp.MustCompile(`(?:#[0-9]{3,}|/(?:issues|pull)/[0-9]+)`)
	gives = regexp.MustCompile(`(?i)\b(?:where|whose|there|(?:it|that|which|who|issue|report|they|somebody|someone) (?:has|had|have|shows?|showed|says?|said|reports?|reported|posted)|their|others?)\b`)
)

// fromAnother reports whether the last sentence of a line above a fence says that another report has what comes in it.
func fromAnother(line []byte) bool {
	if at := bytes.LastIndex(line, []byte(". ")); at >= 0 {
		line = line[at:]
	}
	return bytes.HasSuffix(bytes.TrimSpace(line), []byte(":")) && cites.Match(line) &&
		gives.Match(cites.ReplaceAll(line, nil))
}

// teaching reports whether a text was written to explain something to others, so that the evidence in it may be
// anybody's, or nobody's.
func teaching(all []Line) bool {
	explains, lectured, mine, last := false, false, false, []byte(nil)
	for _, l := range all {
		if fence.Match(l.Text) && fromAnother(last) {
			return true
		}
		if len(bytes.TrimSpace(l.Text)) > 0 && len(l.Text) <= 4<<10 {
			last = l.Text
		}
		if len(l.Text) == 0 || len(l.Text) > 4<<10 || l.Text[0] == '\t' || ofStack(l.Text) || logged.Match(l.Text) || kindOf(bytes.TrimSpace(l.Text)) != other {
			continue
		}
		if reported.Match(l.Text) {
			return false
		}
		mine = mine || own.Match(l.Text)
		explains, lectured = explains || teaches.Match(l.Text), lectured || lectures.Match(l.Text)
	}
	return lectured || explains && !mine
}

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
