package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/plan/rate"
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
	if err == nil && t.Schema != Schema {
		err = fmt.Errorf("its schema is %q, want %s", t.Schema, Schema)
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
	rule, is string
	evidence match.Evidence
	byLabel  map[Label]Row
}

func (t Table) lines() (out []line) {
	for _, r := range t.Rows {
		if n := len(out); n == 0 || out[n-1].rule != r.Rule || out[n-1].evidence != r.Evidence {
			out = append(out, line{r.Rule, r.Is, r.Evidence, map[Label]Row{}})
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
	said := fmt.Sprintf("%d/%d/%d, %s to %s", r.Met, r.NotMet, r.Unknown, rate.Percent(r.Low, false),
		rate.Percent(r.High, true))
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
func (t Table) Text() (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "How often the rules of %s are met (%s)\n", t.Scenario, legend)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  RULE\tBY\t%s\n", strings.ToUpper(t.header("\t")))
	for _, l := range t.lines() {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", l.rule, l.evidence, l.row("\t"))
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	for _, s := range t.ground() {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	return b.String(), nil
}

// Markdown returns the table for a README.
func (t Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### How often the rules of %s are met\n\n| rule | by | %s |\n|---|---|%s\n", t.Scenario,
		t.header(" | "), strings.Repeat("---|", len(labels)))
	for _, l := range t.lines() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", l.rule, l.evidence, l.row(" | "))
	}
	fmt.Fprintf(&b, "\n%s.\n\n", strings.ToUpper(legend[:1])+legend[1:])
	for _, s := range t.ground() {
		fmt.Fprintf(&b, "- %s\n", s)
	}
	return b.String()
}

func (t Table) header(by string) string {
	var out []string
	for _, l := range labels {
		out = append(out, string(l))
	}
	return strings.Join(out, by)
}

func (l line) row(by string) string {
	var out []string
	for _, label := range labels {
		out = append(out, l.byLabel[label].describe())
	}
	return strings.Join(out, by)
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
		out = append(out, fmt.Sprintf("%s, trial %s: %s, pair %s: %s", b.Run, b.Trial, b.Scenario, b.Pair,
			strings.Join(arms, ", ")))
	}
	for _, s := range t.LeftOut {
		out = append(out, "left out: "+s)
	}
	return out
}
