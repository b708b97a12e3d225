package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

func TestOnlyAnInconclusiveVerdictSaysWhereItsCausesAreExplained(t *testing.T) {
	for is, change := range map[verdict.Verdict]func(*trial){
		verdict.Validated:           func(*trial) {},
		verdict.VerdictBroken:       func(tr *trial) { tr.fixed.health = "ill" },
		verdict.VerdictInconclusive: func(tr *trial) { tr.fixed.steady = "" },
	} {
		tr := newTrial()
		change(tr)
		v, err := judge.Run(tr.write(t))
		must(t, err)
		var text, markdown bytes.Buffer
		must(t, report.Text(&text, v, false))
		must(t, report.Markdown(&markdown, v, report.Read(v)))
		page, err := report.Page(v, report.Read(v))
		must(t, err)
		if v.Verdict != is {
			t.Fatalf("%s, want %s", v.Verdict, is)
		}
		for name, got := range map[string]string{"text": text.String(), "Markdown": markdown.String(), "page": string(page)} {
			if says := strings.Contains(got, verdict.WhyInconclusive); says != (is == verdict.VerdictInconclusive) {
				t.Errorf("the %s of a run that is %s names relapse explain inconclusive: %t", name, is, says)
			}
		}
	}
}
