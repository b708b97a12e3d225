package matched

import (
	"bytes"
	_ "embed" // the page
	"html/template"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/report"
)

//go:embed page.gohtml
var pageText string

var pageTemplate = template.Must(template.New("match").Funcs(template.FuncMap{
	"style":    func() template.CSS { return report.Style() },
	"metness":  func(t check.Truth) string { return "is-" + strings.ReplaceAll(t.String(), " ", "-") },
	"lead":     func(r match.Result) string { return headline(r) },
	"colour":   func(r match.Result) string { return colours[r.Answer] },
	"notes":    notes,
	"inputs":   inputs,
	"lacking":  lacking,
	"shown":    func(i match.Incident) bool { return i.Met == check.True || i.Suspected },
	"known":    func(t check.Truth) bool { return t != check.Unknown },
	"sentence": func(s string) string { return strings.TrimRight(s, ". \n") + "." },
}).Parse(pageText))

// colours are the classes that the style sheet has for verdicts, by answer.
var colours = map[match.Answer]string{
	match.Met:       "ill",
	match.NotMet:    "good",
	match.Suspected: "open",
	match.Unknown:   "open",
}

// headline names the incidents that are met, or else those that are suspected.
func headline(r match.Result) string {
	var met, suspected []string
	for _, i := range r.Incidents {
		switch i.Word() {
		case "met":
			met = append(met, i.Name)
		case "suspected":
			suspected = append(suspected, i.Name)
		}
	}
	switch {
	case len(met) > 0:
		return strings.Join(met, ", ")
	case len(suspected) > 0:
		return "suspected: " + strings.Join(suspected, ", ")
	case r.Answer == match.NotMet:
		return "nothing known"
	}
	return "nothing known is met; some is unknown"
}

// page writes a result as a page that needs nothing else, in the style of a run's report.
func page(b *bytes.Buffer, r match.Result) error { return pageTemplate.Execute(b, r) }
