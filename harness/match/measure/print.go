package measure

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/internal/printing"
)

// File is the name of a scenario's table, which lies next to its scenario.yaml.
const File = "match.json"

// labels are the columns, in order.
var labels = []Label{Shows, Without, Baseline, Other}

// Load reads the table next to a scenario's file. ok is false if there is none.
func Load(scenario string) (t Table, ok bool, err error) {
	at := filepath.Join(filepath.Dir(scenario), File)
	b, err := os.ReadFile(at)
	if os.IsNotExist(err) {
		return t, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err == nil && t.Schema != schema {
		err = fmt.Errorf("its schema is %q, want %s", t.Schema, schema)
	}
	if err != nil {
		return t, false, fmt.Errorf("reading %s: %w", at, err)
	}
	return t, true, nil
}

// Write writes the table next to a scenario's file.
func (t Table) Write(scenario string) error {
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(scenario), File), append(b, '\n'), 0o644)
}

// line is a line of the printed table: the rows of all labels for one rule and one kind of evidence.
type line struct {
	rule     string
	evidence match.Evidence
	byLabel  map[Label]Row
}

func (t Table) lines() (out []line) {
	for _, r := range t.Rows {
		if n := len(out); n == 0 || out[n-1].rule != r.Rule || out[n-1].evidence != r.Evidence {
			out = append(out, line{r.Rule, r.Evidence, map[Label]Row{}})
		}
		out[len(out)-1].byLabel[r.Label] = r
	}
	return out
}

// describe returns a cell of the printed table: how many are met, not met and unknown, and the interval.
func (r Row) describe() string {
	c := r.Count()
	if c.N == 0 {
		return "none"
	}
	said := fmt.Sprintf("%d/%d/%d, %s", r.Met, r.NotMet, r.Unknown, rate.Range(r.Low, r.High))
	if r.Suspected > 0 {
		said += fmt.Sprintf(", %d suspected", r.Suspected)
	}
	if r.Defect() {
		said += " DEFECT"
	}
	return said
}

const legend = "met/not met/unknown, and Wilson's interval at 95 % for the share that is met; the version, which " +
	"decides first, was not asked"

// Text returns the table for a terminal.
func (t Table) Text() string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"How often the rules of %s are met (%s)\n%s",
		t.Scenario,
		legend,
		t.printed("").Text(),
	)
	for _, s := range t.ground() {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	return b.String()
}

// Markdown returns the table for a README.
func (t Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"### How often the rules of %s are met\n\n%s\n%s.\n\n",
		t.Scenario,
		t.printed("`").Markdown(),
		strings.ToUpper(legend[:1])+legend[1:],
	)
	for _, s := range t.ground() {
		fmt.Fprintf(&b, "- %s\n", s)
	}
	return b.String()
}

// printed returns the table with a line for each rule and kind of evidence, and a column for each label.
func (t Table) printed(quote string) printing.Table {
	out := printing.Table{Header: []string{"rule", "by"}, Indent: "  "}
	for _, l := range labels {
		out.Header = append(out.Header, string(l))
	}
	for _, l := range t.lines() {
		row := []any{quote + l.rule + quote, l.evidence}
		for _, label := range labels {
			row = append(row, l.byLabel[label].describe())
		}
		out.Add(row...)
	}
	return out
}

// ground lists the bundles that the table rests on, and what was left out.
func (t Table) ground() (out []string) {
	if len(t.Bundles) == 0 {
		out = append(out, "no bundle of this component was there")
	}
	for _, b := range t.Bundles {
		var arms []string
		for _, arm := range slices.Sorted(maps.Keys(b.Outcomes)) {
			arms = append(arms, arm+" "+b.Outcomes[arm])
		}
		out = append(
			out,
			fmt.Sprintf("%s, trial %s: %s, pair %s: %s", b.Run, b.Trial, b.Scenario, b.Pair,
				strings.Join(arms, ", ")),
		)
	}
	for _, s := range t.LeftOut {
		out = append(out, "left out: "+s)
	}
	return out
}
