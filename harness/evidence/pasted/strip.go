package pasted

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	maxPrefix = 160  // bytes that a tool may put before a line
	maxTries  = 2000 // lines of which no prefix is found before the search is given up
	maxEmpty  = 40   // empty lines after which lines are no neighbours
	apart     = 6    // lines without the prefix that may lie between two with it
)

var (
	// likeHeader matches what a goroutine's header or that of a profile has.
	likeHeader = regexp.MustCompile(`goroutine (?:profile: total )?[0-9]`)
	// firstWords matches the beginnings of other texts that are found below a prefix of marks and numbers.
	firstWords = regexp.MustCompile(`^(?:# (?:HELP|TYPE) [a-zA-Z_:]|heap profile: [0-9]|fatal error: |panic: |(?:File|Type|Showing nodes accounting for)[: ] ?[a-z0-9]|apiVersion: )`)
	marks      = regexp.MustCompile(`^[\s>|+:.0-9-]+$`)
	markBytes  = []byte(">|+:.0123456789-#")
)

// strip takes off what neighbouring lines share: quotes, indents, numbers, the names that tools put before each line.
// Where a line begins a stack but for what is before it, that is the prefix, and the lines around it that begin in the
// same way lose it, too.
func (t *Text) strip() {
	t.unfence()
	tries := 0
	for i := range t.Lines {
		p := prefixOf(t.Lines[i].Text, &tries)
		if p == nil {
			continue
		}
		s := shapeOf(p)
		if !t.confirmed(i, s) || t.belongs(i, s) {
			tries++
			continue
		}
		t.cut(i, s)
	}
}

var (
	// attached matches what chats and forms leave on the line of a fence.
	attached = regexp.MustCompile(
		"^(```|\\[(?:code|quote|pre)(?:=[^\\]]{0,80})?\\]|\\{(?:code|noformat)(?::[^}]{0,80})?\\})(?:goroutine [0-9]|panic: |fatal error: |[IWEF][0-9]{4} [0-9]|[0-9>[+ ])",
	)
	// closings are what such fences end with.
	closings = [][]byte{[]byte("```"), []byte("[/code]"), []byte("[/quote]"), []byte("[/pre]"), []byte("{code}"), []byte("{noformat}")}
)

// described matches what kubectl describe puts before the last words of a container.
var described = regexp.MustCompile(
	`^\s+Message:\s+((?:goroutine [0-9]+ \[|panic: |fatal error: |[IWEF][0-9]{4} [0-9:.]{15} ).*)$`,
)

// unfence takes fences off the lines of stacks and logs, and what describes them.
func (t *Text) unfence() {
	for i, l := range t.Lines {
		rest, ends := withoutClosing(l.Text)
		switch {
		case len(l.Text) > 0 && bytes.IndexByte([]byte("`[{"), l.Text[0]) >= 0 && attached.Match(l.Text):
			t.Lines[i].Text = l.Text[len(attached.FindSubmatch(l.Text)[1]):]
		case bytes.Contains(l.Text, []byte("Message: ")) && described.Match(l.Text):
			t.Lines[i].Text = described.FindSubmatch(l.Text)[1]
			t.did("took what describes a container off its last words")
			continue
		case ends && kindOf(bytes.TrimSpace(rest)) != other:
			t.Lines[i].Text = rest
		default:
			continue
		}
		t.did("took fences off lines")
	}
}

// withoutClosing returns a line without the end of a fence.
func withoutClosing(line []byte) ([]byte, bool) {
	if len(line) == 0 || bytes.IndexByte([]byte("`]}"), line[len(line)-1]) < 0 {
		return line, false
	}
	for _, c := range closings {
		if rest, is := bytes.CutSuffix(line, c); is {
			return rest, true
		}
	}
	return line, false
}

// prefixOf returns what lies before the beginning of a stack or of another known text in a line; nil if nothing does.
func prefixOf(line []byte, tries *int) []byte {
	if *tries > maxTries {
		return nil
	}
	if bytes.Contains(line, word) && likeHeader.Match(line[:min(len(line), maxPrefix+64)]) {
		if begins(line) {
			return nil
		}
		*tries++
		for j := 1; j < min(len(line), maxPrefix); j++ {
			if edge(line[j-1], line[j]) && begins(line[j:]) {
				if !utf8.Valid(line[:j]) { // no tool writes that
					return nil
				}
				return line[:j]
			}
		}
		return nil
	}
	if m := ofPod.FindSubmatch(line[:min(len(line), maxPrefix+64)]); m != nil {
		return m[1]
	}
	n := 0
	for n < len(line) && n < maxPrefix && (line[n] <= ' ' || bytes.IndexByte(markBytes, line[n]) >= 0) {
		n++
	}
	if n == 0 || string(line[:n]) == "\t" { // a panic within a panic is indented by a tab
		return nil
	}
	if n >= 2 && line[n-2] == '#' && !bytes.HasPrefix(line[n:], []byte("HELP")) && !bytes.HasPrefix(line[n:], []byte("TYPE")) {
		return nil
	}
	if n >= 2 && line[n-2] == '#' {
		n -= 2
	}
	if n > 0 && (firstWords.Match(line[n:]) || quoted.Match(line[:n]) && begunByKlog(line[n:])) {
		return line[:n]
	}
	return nil
}

// quoted matches what mails and notes put before the lines of a text.
var quoted = regexp.MustCompile(`^[ \t]*[>|][ \t>|]*$`)

// edge reports whether a text may begin between two bytes.
func edge(before, after byte) bool { return !wordByte(before) || !wordByte(after) }

func wordByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
}

// shape is what lines with a prefix begin with.
type shape struct {
	prefix string
	re     *regexp.Regexp
	with   []byte // what to put in its place
}

var (
	dates = regexp.MustCompile(`^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|AM|PM)\b`)
	// named matches prefixes that name a pod and a container, as stern, kubetail and docker compose write them.
	named = regexp.MustCompile(
		`^\[?([a-z0-9][a-z0-9._-]*?)(?:-[0-9]+)?(?: +(?:› +)?([a-z0-9][a-z0-9-]*))?\]?(?: *[|›])? +$`,
	)
	// ofPod matches the beginning of klog's lines, with what stern puts before them: the names of a pod and of its container.
	ofPod = regexp.MustCompile(
		`^([a-z0-9][a-z0-9.-]* [a-z0-9][a-z0-9-]* )[IWEF][0-9]{4} [0-9:.]{15} +[0-9]+ [a-z0-9_]+\.go:`,
	)
	logLine = regexp.MustCompile(`^[IWEF][0-9]{4} [0-9:.]{15} `)
	// programs matches names that stand alone and are a program's.
	programs = regexp.MustCompile(
		`^(?:kube-[a-z-]+|kubelet|etcd|cloud-controller-manager|fleet-agent|k3s|rke2)$`,
	)
)

// shapeOf generalises a prefix: numbers and times may differ from line to line, and so may what grep puts before lines
// that it didn't find.
func shapeOf(p []byte) shape {
	s := shape{prefix: string(p)}
	body := strings.TrimRight(s.prefix, " \t")
	var re strings.Builder
	re.WriteString("^(?:")
	for i := 0; i < len(body); {
		rest := body[i:]
		c := rest[0]
		n := 1
		switch {
		case '0' <= c && c <= '9':
			for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
				n++
			}
			re.WriteString("[0-9]+")
		case c == ' ' || c == '\t':
			for n < len(rest) && (rest[n] == ' ' || rest[n] == '\t') {
				n++
			}
			if i == 0 || n < len(rest) && '0' <= rest[n] && rest[n] <= '9' { // numbers are aligned
				re.WriteString("[ \t]*")
			} else {
				re.WriteString(rest[:n])
			}
		case len(body) == 1 && (c == '+' || c == '-'): // of a diff
			re.WriteString("[ " + regexp.QuoteMeta(rest[:1]) + "]")
		case (c == ':' || c == '-') && (n == len(rest) || '0' <= rest[1] && rest[1] <= '9'):
			re.WriteString("[:-]")
		case edge(byteBefore(body, i), c) && dates.MatchString(rest):
			n = len(dates.FindString(rest))
			re.WriteString("[A-Z][A-Za-z]+")
		default:
			re.WriteString(regexp.QuoteMeta(rest[:1]))
		}
		i += n
	}
	if trail := s.prefix[len(body):]; trail != "" {
		re.WriteString("(?:" + trail + "|$)")
	}
	re.WriteString(")")
	s.re = regexp.MustCompile(re.String())
	if m := named.FindStringSubmatch(s.prefix); m != nil {
		box := m[2]
		if box == "" {
			box = m[1]
		}
		if m[2] != "" || programs.MatchString(box) { // a program that is named is kept, whichever it is
			s.with = []byte("[pod/" + m[1] + "/" + box + "] ")
		}
	}
	return s
}

func byteBefore(s string, i int) byte {
	if i == 0 {
		return ' '
	}
	return s[i-1]
}

// of returns a line without the prefix; false if the line doesn't begin with it.
func (s shape) of(line []byte) ([]byte, bool) {
	at := s.re.FindIndex(line)
	if at == nil || at[1] == 0 && s.prefix != "" && len(line) > 0 {
		return line, false
	}
	return line[at[1]:], true
}

// confirmed reports whether the next lines have the prefix, too, and one of them what belongs to a stack, to a profile
// or to metrics. A header alone may have any words before it.
func (t *Text) confirmed(i int, s shape) bool {
	looked := 0
	for _, l := range t.Lines[i+1 : min(len(t.Lines), i+1+maxEmpty)] {
		if len(bytes.TrimSpace(l.Text)) == 0 {
			continue
		}
		rest, ok := s.of(l.Text)
		if ok && (lookAt(rest).kind != other || marks.MatchString(s.prefix) || logLine.Match(rest)) {
			return true
		}
		if looked++; looked >= 4 {
			return false
		}
	}
	return looked == 0 && marks.MatchString(s.prefix)
}

// belongs reports whether the indented lines around line i go on with a message above them that was logged: these stacks
// are as the program wrote them.
func (t *Text) belongs(i int, s shape) bool {
	lead, _ := inner(t.Lines[i].Text)
	if strings.TrimSpace(strings.TrimPrefix(s.prefix, string(lead))) != "" {
		return false
	}
	for top := max(0, i-500); i > top; { // a longer message is none
		i--
		_, text := inner(t.Lines[i].Text)
		if len(bytes.TrimSpace(text)) == 0 {
			return false
		}
		if _, ok := s.of(t.Lines[i].Text); !ok {
			return logged.Match(text)
		}
	}
	return false
}

// cut takes a prefix off line i, and off the lines around it that have it.
func (t *Text) cut(i int, s shape) {
	n := 0
	one := func(at int) bool {
		l := &t.Lines[at]
		rest, ok := s.of(l.Text)
		if !ok {
			return false
		}
		l.File = fileBefore(l.Text[:len(l.Text)-len(rest)])
		if len(s.with) > 0 && len(rest) > 0 {
			rest = append(s.with[:len(s.with):len(s.with)], rest...)
		}
		l.Text = rest
		n++
		return true
	}
	for _, step := range [...]int{1, -1} {
		start, missed, empty := i, 0, 0
		if step < 0 {
			start = i - 1
		}
		for at := start; at >= 0 && at < len(t.Lines) && missed < apart; at += step {
			if one(at) {
				missed, empty = 0, 0
			} else if len(bytes.TrimSpace(t.Lines[at].Text)) > 0 {
				missed++
			} else if empty++; empty > maxEmpty {
				break
			}
		}
	}
	what := fmt.Sprintf("took %q off lines", s.prefix)
	switch {
	case strings.TrimSpace(s.prefix) == "":
		what = "took indents off"
	case strings.Trim(s.prefix, "> ") == "":
		what = "took quotes off"
	case marks.MatchString(s.prefix):
		what = "took numbers and marks off lines"
	case len(s.prefix) > 60:
		what = fmt.Sprintf("took %q and so on off lines", s.prefix[:60])
	}
	t.did(what)
}
