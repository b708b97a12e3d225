package pasted

import (
	"bytes"
	"regexp"
	"unicode/utf8"
)

var (
	// teaches matches what people write who explain to others what they may come upon.
	teaches = regexp.MustCompile(
		`(?i)^\W*(?:troubleshooting|symptoms?|remediation|resolution|mitigation)\b|\b(?:(?:if|when|whenever) you (?:see|find|get|run|notice|have|observe|hit|encounter)|you(?:'ll| will| may| might| can| should| would) (?:see|find|get|notice|observe|recogni[sz]e)|` +
			`looks? (?:something |roughly |a bit )?like (?:this|the following|these|so|that)|your (?:nodes?|kubelets?|clusters?|api ?servers?|schedulers?|components?|dumps?|own)|let(?:'s|s| us) (?:look|see|take)|` +
			`for example|an example|(?:typically|usually|normally|generally) (?:looks?|prints?|shows?|ends?|reads?)|(?:is|are) (?:shown|given|quoted|reproduced|listed) (?:below|above|here)|(?:hope|let me know if) (?:this|that|it) helps|` +
			`how (?:to|(?:do|can|could|would|should) (?:I|you|we|one)) (?:read|debug|diagnose|recogni[sz]e|identify|find|spot|tell|detect))\b|` +
			teachesAbroad,
	)
	// lectures matches what a text says of itself that is written for others, whatever its author lived through.
	lectures = regexp.MustCompile(
		`(?i)\b(?:(?:this|the present) (?:article|blog|post|blog post|guide|tutorial|chapter|runbook|playbook|manual|walk-?through|how-?to)|runbook|playbook|tutorial|` +
			`(?:example|sample|typical) (?:of|input|output|dump|stack|trace|goroutine)|(?:realistic|fictional|made-up|synthetic) (?:\S+ )?(?:dump|stack|trace|goroutine|panic|crash|log|sample|example)|textbook|case study|post-?mortems? (?:of|by|from)|` +
			`(?:program|script|tool|test|generator) that (?:imitates|simulates|mimics|fakes)|interview question|(?:exercise|lesson|chapter|quiz|slide) [0-9]+)\b|` +
			`^\W*(?:source|(?:copied|taken|quoted) from)\W+https?://\S+/(?:issues|pull|questions|discussions)/[0-9]+|` +
			`^(?:sure|certainly|of course|absolutely)[!,.] (?:here|below|this)\b|` +
			`^#{1,6} (?:solution verified|changelog|release notes?|changes by kind|bug or regression|bug fixes|what type of pr|what this pr does)\b|` +
			lecturesAbroad,
	)
	// changes matches what stands above a change of a repository. What the change adds, or its message quotes, is kept
	// there whoever saw it.
	changes = regexp.MustCompile(`^(?:commit [0-9a-f]{40}\b|From [0-9a-f]{40} |diff --git a/\S+ b/\S+)`)
	// own matches what people write of what they have themselves.
	own = regexp.MustCompile(
		`(?i)\b(?:(?:our|my) (?:\w+ )?(?:nodes?|kubelets?|clusters?|api ?servers?|schedulers?|components?|dumps?|logs?|environment|setup|production|prod|control plane)|(?:we|i) (?:have|had|see|saw|got|get|are|am|run|use|noticed|found|took|tried|upgraded|hit)|i'm|we're|i've|we've)\b|` +
			ownAbroad,
	)
	// reported matches the headings that forms for issues have, and nothing else.
	reported = regexp.MustCompile(
		`(?i)^[\s#*_>-]*(?:what happened|what (?:did you|you) expect|anything else we need to know|describe the (?:bug|issue)|bug description|relevant log output|is this a bug report|/kind |发生了什么|期望的结果)`,
	)
	// inForms matches headings of such forms that manuals have, too.
	inForms = regexp.MustCompile(`(?i)^[\s#*_>-]*(?:how (?:to|can we) reproduce|steps to reproduce|to reproduce|(?:current|expected|actual) (?:behaviou?r|results?)|environment\W*$)`)
)

// What people write to the same ends in German, Spanish, French, Portuguese, Chinese, Japanese and Russian. What has other
// letters than ASCII's is looked for only in lines with such letters. A word boundary is one of ASCII's letters.
const (
	teachesAbroad  = `\b(?:zum beispiel|ein beispiel|wenn (?:sie|du)|falls (?:sie|du)|por ejemplo|si usted|cuando vea|par exemple|si vous|por exemplo)\b`
	lecturesAbroad = `\b(?:(?:dieser|diesem|dieses) (?:artikel|beitrag|handbuch|kapitel)|(?:diese|dieser) anleitung|esta entrada|cet article|ce guide|ce tutoriel|` +
		`este artigo|neste artigo|est[ea] gu[ií]a)\b`
	ownAbroad = `\b(?:unser(?:e[nmrs]?)?|wir (?:haben|sind|nutzen|betreiben|sehen)|bei uns|nuestr[oa]s?|tenemos|notre|nous (?:avons|utilisons|voyons)|chez nous|noss[oa]s?|temos)\b`
)

var (
	teachesFar  = regexp.MustCompile(`(?i:例如|比如|举例|如果你|如果您|当你|当您|会看到|例えば|次のような|se você|quando você|например|если вы|когда вы)`)
	lecturesFar = regexp.MustCompile(
		`(?i:本(?:文|教程|指南|手册|章|节)|^#.*(?:教程|教學|指南|手册)|示例|样例|例题|この記事|チュートリアル|手順書|サンプル|este artículo|esta guía|` +
			`(?:этой|этом) (?:статье|руководстве|примере)|руководство)`,
	)
	ownFar = regexp.MustCompile(`(?i:我们|我的|我司|弊社|当社|私たち|私の|у нас|наш(?:ем|его|а|и)?\s)`)
)

var (
	// cites matches what names another report, and gives whose.
	cites = regexp.MustCompile(`(?i:#[0-9]{3,}|/(?:issues|pull)/[0-9]+|\b(?:issue|bug|ticket|PR) [0-9]{3,})`)
	gives = regexp.MustCompile(`(?i)\b(?:where|whose|there|(?:it|that|which|who|issue|report|they|somebody|someone) (?:has|had|have|is|was|shows?|showed|says?|said|reports?|reported|posted)|their|others?)\b`)
)

// ofOthers matches what says by itself that somebody else had it.
var ofOthers = regexp.MustCompile(
	`(?i)\b(?:theirs|(?:somebody|someone|another (?:user|person|company|team))\b.{0,60}\b(?:posted|reported|shared|wrote|had|has|got))\b`,
)

// fromAnother reports whether the last sentence of a line above a fence says that another report has what comes in it.
func fromAnother(line []byte) bool {
	if at := bytes.LastIndex(line, []byte(". ")); at >= 0 {
		line = line[at:]
	}
	return bytes.HasSuffix(bytes.TrimSpace(line), []byte(":")) &&
		(ofOthers.Match(line) && !own.Match(line) || cites.Match(line) && gives.Match(cites.ReplaceAll(line, nil)))
}

// teaching reports whether a text was written to explain something to others, so that the evidence in it may be
// anybody's, or nobody's.
func teaching(all []Line) bool {
	var written []int // lines that nothing shows to be logged, or of a stack
	begun, last := false, []byte(nil)
	for i, l := range all {
		if fence.Match(l.Text) && fromAnother(last) {
			return true
		}
		if len(bytes.TrimSpace(l.Text)) > 0 && len(l.Text) <= 4<<10 {
			last = l.Text
		}
		begun = begun || dying.Match(l.Text) || bytes.HasPrefix(l.Text, word)
		if len(l.Text) == 0 || len(l.Text) > 4<<10 || l.Text[0] == '\t' || ofStack(l.Text) || logged.Match(l.Text) || kindOf(bytes.TrimSpace(l.Text)) != other {
			continue
		}
		if reported.Match(l.Text) {
			return false
		}
		if !begun && changes.Match(l.Text) {
			return true
		}
		written = append(written, i)
	}
	if n := len(written); n > 2*mostWritten { // a person writes no more above and below
		written = append(written[:mostWritten:mostWritten], written[n-mostWritten:]...)
	}
	explains, lectured, mine := false, false, false
	for _, i := range written {
		l := all[i].Text
		mine = mine || own.Match(l) || inForms.Match(l)
		explains, lectured = explains || teaches.Match(l), lectured || lectures.Match(l)
		if bytes.ContainsFunc(l, func(c rune) bool { return c >= utf8.RuneSelf }) {
			mine, explains, lectured = mine || ownFar.Match(l), explains || teachesFar.Match(l), lectured || lecturesFar.Match(l)
		}
	}
	return lectured || explains && !mine
}

// mostWritten is how many lines at each end of a text are looked at for what a person has written.
const mostWritten = 500
