package match

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// observed is what Kubernetes' programs log of a panic that a handler has caught. Most of them end by the same panic then,
// which the message doesn't show.
var observed = []byte("observed a panic")

// maxObserved bounds the stacks below such messages that are kept of a file: a handler may catch a panic a second.
const maxObserved = 20

// observed reports whether the current line logs a panic whose stack is to be kept.
func (s *source) observed() bool {
	if !bytes.Contains(s.folded, observed) || s.observations >= maxObserved || s.prose {
		return false
	}
	s.observations++
	return true
}

// orObserved returns the finding of a check for the panic that ended a program. If only a handler logged that panic, it may
// have ended the program, or not.
func (sub *subject) orObserved(c scenario.Check, f check.Finding) (check.Finding, error) {
	if f.Met == check.True || f.Detail != "" {
		return f, nil
	}
	k, err := kinds.Decode[check.Check](kinds.Check, c.Kind, c.Spec)
	if err != nil {
		return f, err
	}
	panicked, ok := k.(*logs.Panicked)
	if !ok {
		return f, nil
	}
	like, err := question.Pattern(panicked.Message)
	if err != nil {
		return f, err
	}
	var text []string
	for _, l := range sub.lines {
		text = append(text, l.text)
	}
	all, _ := goroutine.Recoveries(aligned(text))
	for _, r := range all {
		if at := r.At(); like.MatchString(r.Message) && calls(at, panicked.Frames) {
			f.Met, f.Detail = check.Unknown, r.Message+"\n\n"+at.Text()
			f.Seen = "a handler has logged that panic, and nothing shows whether it ended the program"
			return f, nil
		}
	}
	return f, nil
}

// calls reports whether a goroutine has all of these functions on its stack.
func calls(g goroutine.Group, functions []string) bool {
	for _, f := range functions {
		if !(goroutine.Match{Func: f, Closures: true}).Chooses(g) {
			return false
		}
	}
	return true
}

var ranAt = regexp.MustCompile(`^([ \t]*)goroutine \d+ \[running`)

// aligned returns lines with the stacks of running goroutines moved to the left: klog indents what has several lines.
func aligned(lines []string) []string {
	out := make([]string, 0, len(lines))
	in, indent := false, ""
	for _, l := range lines {
		l = strings.TrimRight(l, " \t\r")
		if m := ranAt.FindStringSubmatch(l); m != nil {
			in, indent = true, m[1]
		}
		rest, below := strings.CutPrefix(l, indent)
		switch in = in && below && rest != ""; {
		case in && (rest[0] == ' ' || rest[0] == '\t'):
			l = "\t" + strings.TrimLeft(rest, " \t")
		case in:
			l = rest
		case l == " >": // klog's end of the stack
			l = ""
		}
		out = append(out, l)
	}
	return out
}
