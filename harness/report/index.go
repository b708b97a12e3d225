package report

import (
	"bytes"
	"cmp"
	_ "embed" // the template
	"fmt"
	"html/template"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/judge/history"
	counts "github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/report/trend"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// IndexFile is the name of the page that lists many runs.
const IndexFile = "index.html"

// Run is a run in an index. Err says why the run has no verdict, "" if it has one.
type Run struct {
	Dir     string // relative to the index, slash-separated
	Verdict judge.Verdict
	Err     string
}

//go:embed page/index.gohtml
var indexText string

var indexTemplate = template.Must(template.New("index").Funcs(template.FuncMap{
	"style":  Style,
	"time":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
	"tone":   tone,
	"toneOf": toneOf,
	"short":  func(s string) string { return s[:min(12, len(s))] },
	"link": func(dir, file string) template.URL {
		return template.URL((&url.URL{Path: "./" + path.Join(dir, file)}).EscapedPath())
	},
	"page": func() string { return PageFile },
}).Parse(indexText))

// WriteIndex writes index.html to dir: the runs by date, and the history of each scenario's arms.
func WriteIndex(dir string, runs []Run) error {
	page, err := Index(runs)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, IndexFile), page, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", IndexFile, err)
	}
	return nil
}

// Index returns the page that lists runs. The same runs give the same bytes in any order.
func Index(runs []Run) ([]byte, error) {
	v := indexView{Runs: slices.Clone(runs)}
	slices.SortFunc(v.Runs, func(a, b Run) int {
		return cmp.Or(b.Verdict.StartedAt.Compare(a.Verdict.StartedAt), cmp.Compare(b.Dir, a.Dir))
	})
	for _, r := range v.Runs {
		if r.Err != "" {
			v.Failed = append(v.Failed, r)
		}
	}
	v.Runs = slices.DeleteFunc(v.Runs, func(r Run) bool { return r.Err != "" })
	v.Scenarios = histories(v.Runs)
	var out bytes.Buffer
	if err := indexTemplate.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("writing %s: %w", IndexFile, err)
	}
	return out.Bytes(), nil
}

type indexView struct {
	Runs      []Run // the latest first
	Failed    []Run
	Scenarios []scenarioHistory
}

// scenarioHistory is a scenario's history.
type scenarioHistory struct {
	Name, Title string
	Runs        []Run
	Arms        []armHistory
}

// armHistory is the history of an arm of a pair, the latest trial last.
type armHistory struct {
	Pair, Name, Role string
	Expected         verdict.Outcome
	Trials           []trialOutcome
	Line             *trend.Line // what relapse history says of these runs; nil if none of the trials counts there
}

// Often returns how often the arm reproduced, of the trials that count and gave an answer.
func (a armHistory) Often() string {
	if a.Line == nil {
		return "no trial counts"
	}
	return fmt.Sprintf(
		"%s: %s",
		a.Line.All.Count,
		counts.InWords(a.Line.All.Count, 0, trend.Confidence),
	)
}

type trialOutcome struct {
	Dir, ID string
	At      time.Time
	armView
}

// AsExpected returns how many trials had the outcome that the arm's role calls for.
func (a armHistory) AsExpected() int {
	k := 0
	for _, t := range a.Trials {
		if t.Outcome == t.Expected {
			k++
		}
	}
	return k
}

// Last returns the latest trial.
func (a armHistory) Last() trialOutcome { return a.Trials[len(a.Trials)-1] }

// histories groups runs by scenario and arm, and sorts the scenarios by name.
func histories(runs []Run) []scenarioHistory {
	var out []scenarioHistory
	for _, r := range runs {
		i := slices.IndexFunc(
			out,
			func(s scenarioHistory) bool { return s.Name == r.Verdict.Scenario },
		)
		if i < 0 {
			i = len(out)
			out = append(
				out,
				scenarioHistory{Name: r.Verdict.Scenario, Title: r.Verdict.Bug.Title},
			)
		}
		out[i].Runs = append(out[i].Runs, r)
	}
	for i := range out {
		for _, r := range slices.Backward(out[i].Runs) {
			out[i].add(r)
		}
	}
	addLines(out, runs)
	slices.SortFunc(out, func(a, b scenarioHistory) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// addLines adds to each arm what relapse history says of the runs.
func addLines(to []scenarioHistory, runs []Run) {
	var entries []history.Entry
	for _, r := range runs {
		entries = append(entries, judge.Entries(r.Verdict, r.Dir)...)
	}
	for _, l := range trend.Summary(entries) {
		for _, s := range to {
			for i, a := range s.Arms {
				if s.Name == l.Scenario && a.Pair == l.Pair && a.Name == l.Arm && a.Role == l.Role {
					s.Arms[i].Line = &l
				}
			}
		}
	}
}

func (s *scenarioHistory) add(r Run) {
	for _, t := range viewOf(r.Verdict, bare(r.Verdict)).Trials {
		for _, a := range t.Arms {
			i := slices.IndexFunc(s.Arms, func(have armHistory) bool {
				return have.Pair == a.Pair &&
					have.Name == a.Name
			})
			if i < 0 {
				i = len(s.Arms)
				s.Arms = append(
					s.Arms,
					armHistory{Pair: a.Pair, Name: a.Name, Role: a.Role, Expected: a.Expected},
				)
			}
			s.Arms[i].Trials = append(s.Arms[i].Trials,
				trialOutcome{Dir: r.Dir, ID: t.ID, At: t.World.StartedAt, armView: a})
		}
	}
}
