package report

import (
	"bytes"
	_ "embed" // the templates and the style
	"fmt"
	"html/template"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// PageFile is the report as one page that needs nothing else: no network, no script and no other file. Its links lead
// into the bundles.
const PageFile = "report.html"

// room is how many bytes of pictures a page may have, so that the page stays below 5 MiB. The page says what is left
// out.
const room = 7 << 19

//go:embed page/style.css
var style string

// Style returns the style sheet that all pages share.
func Style() template.CSS { return template.CSS(style) }

//go:embed page/report.gohtml
var pageText string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"style":      Style,
	"time":       clock,
	"number":     number,
	"tone":       tone,
	"lasted":     lasted,
	"metness":    func(word string) string { return "is-" + strings.ReplaceAll(word, " ", "-") },
	"sentence":   func(s string) string { return strings.TrimRight(s, ". \n") + "." },
	"top":        func(g []goroutine.Group) []goroutine.Group { return g[:min(len(g), mostGroups)] },
	"more":       func(g []goroutine.Group) int { return max(0, len(g)-mostGroups) },
	"linkName":   linkName,
	"address":    address,
	"link":       func(p string) template.URL { return template.URL((&url.URL{Path: p}).EscapedPath()) },
	"lead":       lead,
	"rest":       rest,
	"clip":       clip,
	"base":       func(p any) string { return path.Base(fmt.Sprint(p)) },
	"file":       func(p any) string { return fileLabel.FindString(path.Base(fmt.Sprint(p))) },
	"age":        ageOf,
	"stack":      stackOf,
	"owner":      owner,
	"decisive":   func(a armView) []stackLine { return excerpt(a.Decisive, a.Asks, 2*maxDecisive) },
	"evidence":   func(dir string, paths []string) evidenceView { return evidenceView{dir, paths} },
	"minus":      func(a, b float64) float64 { return a - b },
	"aboutRates": func() string { return aboutRates },
}).Parse(pageText))

// Page returns the content of report.html. trials are the verdict's, as Read returns them.
func Page(of judge.Verdict, trials []Trial) ([]byte, error) {
	p := pageView{view: viewOf(of, trials)}
	left := room
	for _, t := range p.Trials {
		one, err := pictures(t, &left)
		if err != nil {
			return nil, err
		}
		p.Parts = append(p.Parts, one)
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("writing %s: %w", PageFile, err)
	}
	return out.Bytes(), nil
}

// pictures draws a trial, if there is room for all of its pictures. left is how many bytes are left for pictures.
func pictures(t trialView, left *int) (part, error) {
	none := part{trialView: t}
	if *left <= 0 {
		return none, nil
	}
	out, size := part{trialView: t, Room: true}, 0
	from, to := reach(t.Lanes)
	for _, l := range t.Lanes {
		svg := l.timeline(from, to)
		size += len(svg)
		out.Lanes = append(out.Lanes, laneView{l, l.zero(), svg})
	}
	from, to = extent(t.Figures, t.Clocks)
	for _, f := range t.Figures {
		svg, err := inline(f, t.Clocks, from, to)
		if err != nil {
			return out, err
		}
		size += len(svg)
		out.Series = append(out.Series, seriesView{f, svg})
	}
	for _, p := range t.Profiles {
		out.Profiles = append(out.Profiles, viewProfiles(p))
	}
	if *left -= size; *left < 0 {
		return none, nil
	}
	return out, nil
}

// viewProfiles shows the profiles of one kind. With several arms the first is compared with the last, which is judged.
func viewProfiles(p Profiles) profilesView {
	out := profilesView{Profiles: p}
	switch n := len(p.Arms); {
	case n >= 2:
		a, b := p.Arms[0], p.Arms[n-1]
		out.Name, out.Own = [2]string{a.Arm, b.Arm}, owners(a, b, mostFunctions)
	case n == 1:
		out.Name, out.Own = [2]string{p.Arms[0].Arm}, owners(p.Arms[0], Profile{}, mostFunctions)
	}
	return out
}

// mostFunctions is how many functions of a profile a page shows.
const mostFunctions = 10

// mostGroups is how many groups of like stacks a page shows for an arm.
const mostGroups = 6

// fileLabel matches the front of an artifact's name: its number and kind. The rest of the name says the arm, the node
// and the component.
var fileLabel = regexp.MustCompile(`^(\d+-[^-]+|.+)`)

// tone returns the class that the style sheet has for a verdict: its colour and its sign.
func tone(exit int, v verdict.Verdict) string {
	switch {
	case exit == verdict.ExitOK:
		return "good"
	case v == verdict.VerdictBroken:
		return "broken"
	case v == verdict.VerdictError:
		return "error"
	case v == verdict.VerdictInconclusive, string(v) == string(verdict.NotReproduced): // nothing is proven
		return "open"
	}
	return "ill"
}

// toneOf returns the class for an arm's outcome. What is expected is good, an illness of a vulnerable arm as well.
func toneOf(a verdict.Arm) string {
	switch {
	case a.Outcome == a.Expected:
		return "good"
	case a.Outcome == verdict.Reproduced:
		return "ill"
	case a.Outcome == verdict.Broken:
		return "broken"
	case a.Outcome == verdict.Error:
		return "error"
	}
	return "open"
}

// lasted returns a number of seconds as a duration: "5m12s".
func lasted(seconds float64) string {
	if seconds <= 0 {
		return "not known"
	}
	return (time.Duration(seconds * float64(time.Second))).Round(time.Second).String()
}

// lead returns a reason up to its first colon, with a capital letter. rest returns what follows, which is what was
// seen.
func lead(s string) string {
	s, _, _ = strings.Cut(s, ": ")
	return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):]
}

func rest(s string) string {
	_, s, _ = strings.Cut(s, ": ")
	return s
}
