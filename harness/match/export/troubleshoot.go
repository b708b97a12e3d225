package export

import (
	"regexp"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/logs"
)

// analyze translates a check to a textAnalyze of troubleshoot, which searches files of its bundle for a regular
// expression. It returns false if that is not possible.
func (r rule) analyze(k check.Check) bool {
	switch k := k.(type) {
	case *logs.LogCount:
		if k.AtMost != nil {
			return false
		}
		if k.AtLeast > 1 {
			r.recordLoss("one line is enough, not %d", k.AtLeast)
		}
		if k.Within != "" {
			r.recordLoss("how fast the lines follow each other is not told")
		}
		r.text("**/"+k.Component+"*.log", "(?i)"+k.Pattern)
	case *logs.LogLine:
		if len(k.Exceeds) > 0 {
			r.recordLoss("the numbers in the line are not compared")
		}
		r.text("**/*.log", "(?i)"+k.Pattern)
	case *logs.Panicked:
		r.recordLoss("the stack has to follow within 100 lines, and which goroutine panicked is not told")
		pattern := "(?i)(?m)" + k.Message
		for _, f := range k.Frames {
			pattern += `(?:[^\n]*\n){1,100}?[^\n]*` + regexp.QuoteMeta(f)
		}
		r.text("**/"+k.Component+"*.log", pattern)
	case *goroutines.Goroutines:
		return r.stack(k)
	default:
		return false
	}
	return true
}

// stack translates a check to a search for one goroutine, in a dump that a collector of the user's own has put into the
// bundle. It returns false if that is not possible.
func (r rule) stack(k *goroutines.Goroutines) bool {
	if k.Func == "" || k.CreatedBy != "" || k.State == "blocked" || k.State == "ready" || k.State == "any" || k.Persist || k.Span != "" {
		return false
	}
	minutes := ""
	if k.Waited != "" {
		d, err := time.ParseDuration(k.Waited)
		if err != nil || d < time.Minute || d >= 10*time.Minute {
			return false
		}
		minutes = `, (?:[` + string(rune('0'+int(d/time.Minute))) + `-9]|\d{2,}) minutes`
	}
	pattern := `(?i)goroutine \d+[^\n]*\[` + regexp.QuoteMeta(k.State) + minutes + `[^\n]*\]:\n`
	if k.Depth == "any" {
		pattern += `(?:[^\n]+\n)*?`
	} else {
		pattern += `(?:runtime\.[^\n]*\n\t[^\n]*\n)*`
	}
	pattern += `[^\n]*` + regexp.QuoteMeta(k.Func) + `\(`
	if k.Under != "" {
		pattern += `(?:[^\n]+\n)*?[^\n]*` + regexp.QuoteMeta(k.Under) + `\(`
	}
	if k.Count > 1 {
		r.recordLoss("one goroutine is enough, not %d", k.Count)
	}
	r.recordLoss("whose dump it is isn't told, nor whether it was cut; no collector of troubleshoot takes one by itself")
	r.text("**/*goroutine*", pattern)
	return true
}

func (r rule) text(files, pattern string) {
	r.translation.analyzers = append(r.translation.analyzers, object{"textAnalyze": object{
		"checkName": r.s.Metadata.Name + ", " + r.sign.Name + ", " + r.name, "fileName": files,
		"regex":           strings.TrimSpace(pattern),
		"ignoreIfNoFiles": true,
		"outcomes": []any{
			object{"warn": object{"when": "true", "message": r.message()}},
			object{
				"pass": object{
					"when":    "false",
					"message": "No such text; that alone rules nothing out.",
				},
			},
		}}})
}
