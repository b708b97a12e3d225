package question

import (
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
)

// Part is the answer to one part of a question.
type Part struct {
	Met  check.Truth
	Code check.Code // why Met is Unknown
	Said string
}

// Answered returns a part that is answered, with what was seen.
func Answered(met check.Truth, format string, args ...any) Part {
	return Part{Met: met, Said: fmt.Sprintf(format, args...)}
}

// Unsure returns a part that isn't answered, and why.
func Unsure(doubt error) Part { return Part{Code: check.CodeOf(doubt), Said: doubt.Error()} }

// AnswerAll returns the finding that is True if every part is. It tells what was seen of each.
func (q *Question) AnswerAll(parts []Part) check.Finding {
	var met []check.Truth
	var said []string
	for _, p := range parts {
		met, said = append(met, p.Met), append(said, p.Said)
		if p.Met == check.Unknown && q.Code == "" {
			q.Code = p.Code
		}
	}
	q.Decide(check.All(met...))
	q.Seen = strings.Join(said, "; ")
	return q.Finding
}
