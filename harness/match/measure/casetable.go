package measure

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// caseSchemaName is the value of a case table's schema field.
const caseSchemaName = "relapse.dev/match-cases/v1alpha1"

// ofOwn is evidence of the incident that is asked for, beside otherBug and noBug.
const ofOwn = "own"

// evidences are what evidence is of, in the order of the columns.
var evidences = []string{ofOwn, otherBug, noBug}

// CaseTable has the answers about one scenario's incident.
type CaseTable struct {
	Schema   string    `json:"schema"`
	Scenario string    `json:"scenario"`
	Rows     []CaseRow `json:"rows"`
	Wrong    []Mistake `json:"wrong"`
	Open     []Mistake `json:"open"` // known to be wrong: the case says why
}

// CaseRow counts the answers to evidence of one form: of the incident itself (own), of another bug (other), or of none
// (healthy).
type CaseRow struct {
	Form      string `json:"form"`
	Of        string `json:"of"`
	Met       int    `json:"met"`
	Suspected int    `json:"suspected"`
	Unknown   int    `json:"unknown"`
	NotMet    int    `json:"notMet"`
	Wrong     int    `json:"wrong"` // of these, the open ones included
}

// Mistake is a wrong answer, or the mark of a case as open that isn't wrong any more.
type Mistake struct {
	Case    string `json:"case"`
	Message string `json:"message"`
}

// RunCases asks for every incident in each of the cases. An open case is wrong too, if it is right, or if it is met
// where it must not be.
func RunCases(
	ctx context.Context,
	all []*scenario.Scenario,
	well []*healthy.Baseline,
	cases []Case,
) ([]CaseTable, error) {
	tables, rows := map[string]*CaseTable{}, map[[3]string]*CaseRow{}
	for _, s := range all {
		tables[s.Metadata.Name] = &CaseTable{
			Schema:   caseSchemaName,
			Scenario: s.Metadata.Name,
			Rows:     []CaseRow{},
			Wrong:    []Mistake{},
			Open:     []Mistake{},
		}
	}
	for _, c := range cases {
		r, err := c.Ask(ctx, all, well)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", c.Name, err)
		}
		right := true
		for _, i := range r.Incidents {
			t, of := tables[i.Name], c.of(i.Name)
			key := [3]string{i.Name, c.Form, of}
			if rows[key] == nil {
				rows[key] = &CaseRow{Form: c.Form, Of: of}
			}
			bad := c.Wrong(i)
			rows[key].count(i.Answer, bad != "")
			switch {
			case bad == "":
				continue
			case c.Open != "" && i.Answer != match.Met:
				t.Open = append(t.Open, Mistake{c.Name, bad + " (open: " + c.Open + ")"})
			default:
				t.Wrong = append(t.Wrong, Mistake{c.Name, bad})
			}
			right = false
		}
		if right && c.Open != "" {
			for name := range c.Answer {
				tables[name].Wrong = append(
					tables[name].Wrong,
					Mistake{c.Name, "it is right, but marked as open: " + c.Open},
				)
			}
		}
	}
	var out []CaseTable
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		for key, r := range rows {
			if key[0] == name {
				tables[name].Rows = append(tables[name].Rows, *r)
			}
		}
		slices.SortFunc(
			tables[name].Rows,
			func(a, b CaseRow) int { return cmp.Or(cmp.Compare(a.Form, b.Form), cmp.Compare(a.Of, b.Of)) },
		)
		out = append(out, *tables[name])
	}
	return out, nil
}

// of returns what the case's evidence is of for someone who asks for a scenario's incident.
func (c Case) of(scenario string) string {
	switch c.Shows {
	case scenario:
		return ofOwn
	case noBug:
		return noBug
	}
	return otherBug
}

func (r *CaseRow) count(a match.Answer, wrong bool) {
	switch a {
	case match.Met:
		r.Met++
	case match.Suspected:
		r.Suspected++
	case match.NotMet:
		r.NotMet++
	default:
		r.Unknown++
	}
	if wrong {
		r.Wrong++
	}
}

func (r CaseRow) describe() string {
	if r.Met+r.Suspected+r.Unknown+r.NotMet == 0 {
		return "none"
	}
	said := fmt.Sprintf("%d/%d/%d/%d", r.Met, r.Suspected, r.Unknown, r.NotMet)
	if r.Wrong > 0 {
		said += fmt.Sprintf(", %d WRONG", r.Wrong)
	}
	return said
}

// total returns the sum of the rows of one kind of evidence, or of those of them that have one form.
func (t CaseTable) total(of, form string) (out CaseRow) {
	for _, r := range t.Rows {
		if r.Of == of && (form == "" || r.Form == form) {
			out.Met, out.Suspected, out.Unknown = out.Met+r.Met, out.Suspected+r.Suspected, out.Unknown+r.Unknown
			out.NotMet, out.Wrong = out.NotMet+r.NotMet, out.Wrong+r.Wrong
		}
	}
	return out
}

const caseLegend = "met/suspected/unknown/not met"

// Text returns the table for a terminal.
func (t CaseTable) Text() string {
	return fmt.Sprintf("Answers about %s (%s)\n%s", t.Scenario, caseLegend, t.printed().Text())
}

// Markdown returns the table for a page.
func (t CaseTable) Markdown() string {
	return fmt.Sprintf("### Answers about %s\n\n%s\n%s%s.\n", t.Scenario, t.printed().Markdown(), strings.ToUpper(caseLegend[:1]),
		caseLegend[1:])
}

// printed returns the table with a line for each form, and a column for what the evidence is of.
func (t CaseTable) printed() printing.Table {
	out := printing.Table{Header: append([]string{"form"}, evidences...), Indent: "  "}
	forms := []string{}
	for _, r := range t.Rows {
		forms = append(forms, r.Form)
	}
	for _, form := range append(slices.Compact(forms), "") {
		row := []any{cmp.Or(form, "all")}
		for _, of := range evidences {
			row = append(row, t.total(of, form).describe())
		}
		out.Add(row...)
	}
	return out
}
