package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// Cross has the answers of every scenario's rule to the evidence of every incident.
type Cross struct {
	Rules []string   // the scenarios that have a rule, by name
	Rows  []CrossRow // one for each of Rules, then other bugs, then what is healthy
}

// CrossRow counts the answers to the evidence of one incident.
type CrossRow struct {
	Of      string    // the scenario whose incident it shows, or what a case can show besides
	Pieces  int       // of evidence
	Answers []CaseRow // of each of Rules
}

// OwnBundle is a run of relapse's own, in an archive, as evidence of its scenario's incident.
func OwnBundle(scenario, path string) Case {
	return Case{Name: path, Dir: ".", Files: []string{path}, Shows: scenario, Form: "bundle",
		Answer: Answers{scenario: {match.Met}}}
}

// RunCross asks for every incident in each piece of evidence.
func RunCross(
	ctx context.Context,
	all []*scenario.Scenario,
	well []*healthy.Baseline,
	pieces []Case,
) (Cross, error) {
	var out Cross
	for _, s := range all {
		if s.Spec.Match != nil {
			out.Rules = append(out.Rules, s.Metadata.Name)
		}
	}
	slices.Sort(out.Rules)
	for _, of := range append(slices.Clone(out.Rules), otherBug, noBug) {
		out.Rows = append(out.Rows, CrossRow{Of: of, Answers: make([]CaseRow, len(out.Rules))})
	}
	for _, c := range pieces {
		r, err := c.Ask(ctx, all, well)
		if err != nil {
			return out, fmt.Errorf("asking about %s: %w", c.Name, err)
		}
		at := slices.IndexFunc(out.Rows, func(row CrossRow) bool { return row.Of == c.Shows })
		if at < 0 {
			return out, fmt.Errorf("%s shows %s, which has no rule", c.Name, c.Shows)
		}
		out.Rows[at].Pieces++
		for _, i := range r.Incidents {
			out.Rows[at].Answers[slices.Index(out.Rules, i.Name)].count(
				i.Answer,
				c.Wrong(i) != "",
			)
		}
	}
	return out, nil
}

// Defects says what is wrong: an incident that none of its own evidence shows, and each rule that another's meets.
func (c Cross) Defects() (out []string) {
	for i, row := range c.Rows {
		for j, rule := range c.Rules {
			n := row.Answers[j].Met
			switch {
			case i == j && n+row.Answers[j].Suspected == 0:
				out = append(
					out,
					fmt.Sprintf(
						"none of %d pieces of evidence of %s meets its rule, or has it suspected",
						row.Pieces,
						rule,
					),
				)
			case i != j && n > 0:
				out = append(out, fmt.Sprintf("%d of %d pieces of evidence of %s meet the rule of %s", n, row.Pieces, row.Of, rule))
			}
		}
	}
	return out
}

// Markdown returns the table for a page: the rules are numbered as the rows are.
func (c Cross) Markdown() string {
	out := printing.Table{Header: []string{"", "evidence of", "pieces"}}
	for i := range c.Rules {
		out.Header = append(out.Header, fmt.Sprint(i+1))
	}
	for i, row := range c.Rows {
		number, of := "", row.Of
		if i < len(c.Rules) {
			number, of = fmt.Sprint(i+1), "`"+row.Of+"`"
		}
		cells := []any{number, of, row.Pieces}
		for _, a := range row.Answers {
			cells = append(cells, a.brief())
		}
		out.Add(cells...)
	}
	return strings.TrimRight(out.Markdown(), "\n") + "\n"
}

// brief returns how often a rule is met, and how often its incident is suspected besides; "·" if neither ever is.
func (r CaseRow) brief() string {
	switch {
	case r.Met+r.Suspected == 0:
		return "·"
	case r.Suspected == 0:
		return fmt.Sprint(r.Met)
	}
	return fmt.Sprintf("%d + %d", r.Met, r.Suspected)
}
