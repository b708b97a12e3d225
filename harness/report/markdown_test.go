package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
)

// Go's types, tags and patterns would vanish, or make what follows them italic, where a text goes into Markdown as it is.
func TestMarkdownShowsTextsAsTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"only status.conditions[*].at, status.conditions[*].is": `only status.conditions[\*].at, status.conditions[\*].is`,
		"a <nil> Pod from <-chan *v1.Pod, 2 < 3":                `a \<nil> Pod from <-chan \*v1.Pod, 2 < 3`,
		"</details> and <!-- more":                              `\</details> and \<!-- more`,
		"kubelet_pleg_seconds of __name__, _HOSTNAME":           `kubelet_pleg_seconds of \_\_name\_\_, \_HOSTNAME`,
		"run `relapse explain <kind> *`, not <kind>":            "run `relapse explain <kind> *`, not \\<kind>",
		"it was cut off in `relapse <kind>":                     "it was cut off in \\`relapse \\<kind>",
		`msg="a \"b\" in C:\x"`:                                 `msg="a \\"b\\" in C:\x"`,
		"goroutine 9 [select](0x1), ~~gone~~, a|b":              `goroutine 9 [select\](0x1), \~\~gone\~\~, a\|b`,
	} {
		tr := newTrial()
		tr.plan.Modelled = []string{text}
		run := tr.write(t)
		var whole bytes.Buffer
		v, err := judge.Run(run)
		must(t, err)
		must(t, report.Markdown(&whole, v, report.Read(v)))
		for name, page := range map[string]string{"summary.md": summaryOf(t, run), "report.md": whole.String()} {
			if !strings.Contains(page, want+"\n") {
				t.Errorf("%s lacks %q:\n%s", name, want, page)
			}
		}
	}
}

// A blank line between two lists makes one list of them, with a paragraph for each of its items.
func TestSummaryHasOneListWithoutGaps(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "summary.md"))
	must(t, err)
	_, list, _ := strings.Cut(string(text), "\n\n- ")
	if strings.Contains(list, "\n\n") || strings.Count(list, "\n- ") < 8 {
		t.Errorf("its list is\n- %s", list)
	}
}
