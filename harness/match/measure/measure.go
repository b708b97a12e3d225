// Package measure tests the rules of relapse match on labelled evidence: bundles of relapse's own, whose arms were
// judged. It counts how often each rule, by each kind of evidence alone, is met where it should be and where it should
// not.
package measure

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/harness/version"
)

// schema is the value of a table's schema field.
const schema = "relapse.dev/match-rates/v1alpha1"

// confidence is the confidence of the intervals.
const confidence = 0.95

// Label is what is known of evidence beforehand.
type Label string

// The labels. Only an arm that was judged Reproduced shows the incident, from the fault on. All other evidence doesn't
// show it.
const (
	Shows    Label = "shows it"                 // an arm that was judged Reproduced, from the fault on
	Without  Label = "doesn't show it"          // an arm that was judged NotReproduced
	Baseline Label = "before the fault"         // any arm of any scenario, in its baseline
	Other    Label = "shows another or nothing" // an arm of another scenario
)

// incident is the rule of all signs together. The version, which would decide first, is left out.
const incident = "the incident"

// Table has the error rates of one scenario's rules.
type Table struct {
	Schema   string   `json:"schema"`
	Scenario string   `json:"scenario"`
	Relapse  string   `json:"relapse"`
	Bundles  []Bundle `json:"bundles"` // the bundles of the scenario's component
	LeftOut  []string `json:"leftOut"`
	Rows     []Row    `json:"rows"`
}

// Bundle is a bundle of which the rules were asked.
type Bundle struct {
	Run      string            `json:"run"`
	Trial    string            `json:"trial"`
	Scenario string            `json:"scenario"`
	Pair     string            `json:"pair"`
	Outcomes map[string]string `json:"outcomes"` // arm -> outcome
}

// Row counts the answers of one rule to evidence of one kind with one label. Low and High are the ends of Wilson's
// interval for the share of Met.
type Row struct {
	Rule     string         `json:"rule"`
	Is       string         `json:"is"`
	Evidence match.Evidence `json:"evidence"`
	Label    Label          `json:"label"`
	Met      int            `json:"met"`
	NotMet   int            `json:"notMet"`
	Unknown  int            `json:"unknown"`
	// Suspected counts those of Unknown in which something speaks for the incident.
	Suspected int     `json:"suspected"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
}

// Count returns how many answers are met, and how many there are.
func (r Row) Count() rate.Count { return rate.Count{K: r.Met, N: r.Met + r.NotMet + r.Unknown} }

// Defect reports whether a decisive sign, or the incident as a whole, is met where it must not be.
func (r Row) Defect() bool {
	return r.Label != Shows && r.Met > 0 && (r.Is == scenario.Decisive || r.Rule == incident)
}

// labelled is a bundle, and the outcomes that its arms were judged to have.
type labelled struct {
	*match.Trial
	scenario, id, pair, run string
	outcomes                map[string]string // by arm
}

// Run asks the rules of all scenarios of the bundles in paths, and returns a table for each scenario. The error is a
// path that can't be opened, the context's, or a mistake in a scenario. A bundle that can't be judged is left out, and
// named among the problems.
func Run(
	ctx context.Context,
	all []*scenario.Scenario,
	paths []string,
) ([]Table, []archive.Problem, error) {
	trials, problems, done, err := match.Trials(ctx, paths)
	defer done()
	if err != nil {
		return nil, problems, err
	}
	var in []labelled
	for _, t := range trials {
		judged, err := judge.Bundle(t.Dir)
		if err != nil {
			problems = append(
				problems,
				archive.Problem{
					Path:    t.Place,
					Message: strings.ReplaceAll(err.Error(), t.Dir, t.Place),
				},
			)
			continue
		}
		one := labelled{
			Trial:    t,
			scenario: t.Scenario,
			id:       judged.ID,
			pair:     judged.Pair,
			outcomes: map[string]string{},
			run:      path.Base(path.Dir(path.Dir(t.Place))),
		}
		for _, a := range judged.Arms {
			one.outcomes[a.Name] = string(a.Outcome)
		}
		in = append(in, one)
	}
	var out []Table
	for _, s := range all {
		t, err := table(ctx, s, in)
		if err != nil {
			return nil, problems, err
		}
		out = append(out, t)
	}
	return out, problems, nil
}

func table(ctx context.Context, s *scenario.Scenario, in []labelled) (Table, error) {
	t := Table{
		Schema:   schema,
		Scenario: s.Metadata.Name,
		Relapse:  version.Relapse(),
		Bundles:  []Bundle{},
		LeftOut:  []string{},
		Rows:     []Row{},
	}
	rows := map[[3]string]*Row{}
	others := 0
	for _, b := range in {
		if b.Subject != s.Spec.Subject {
			others++
			continue
		}
		t.Bundles = append(t.Bundles, Bundle{b.run, b.id, b.scenario, b.pair, b.outcomes})
		for arm, outcome := range b.outcomes {
			if err := ctx.Err(); err != nil {
				return t, err
			}
			left, err := t.arm(s, b, arm, outcome, rows)
			if err != nil {
				return t, err
			}
			if left != "" {
				t.LeftOut = append(
					t.LeftOut,
					fmt.Sprintf("%s, trial %s, %s: %s", b.run, b.id, arm, left),
				)
			}
		}
	}
	if others > 0 {
		t.LeftOut = append(
			t.LeftOut,
			fmt.Sprintf("of other components, of which the rules are not asked: %d", others),
		)
	}
	slices.Sort(t.LeftOut)
	t.sort(s, rows)
	return t, nil
}

// arm asks the rules of one arm and counts the answers. left says why the arm, or a part of it, was left out.
func (t *Table) arm(
	s *scenario.Scenario,
	b labelled,
	arm, outcome string,
	rows map[[3]string]*Row,
) (left string,
	err error) {
	asked := map[Label]match.When{Baseline: match.Before}
	switch {
	case b.scenario != s.Metadata.Name:
		asked[Other] = match.Throughout
	case outcome == string(verdict.Reproduced):
		asked[Shows] = match.FromFault
	case outcome == string(verdict.NotReproduced):
		asked[Without] = match.Throughout
	default:
		left = "it is " + outcome + ", so only its baseline was asked"
	}
	for label, when := range asked {
		for _, of := range match.Parts {
			j, ok, err := b.Ask(s, arm, of, when)
			if err != nil {
				return "", err
			}
			if !ok {
				left = "it never came to " + string(label)
				continue
			}
			row := func(rule, is string) *Row {
				key := [3]string{rule, string(of), string(label)}
				if rows[key] == nil {
					rows[key] = &Row{Rule: rule, Is: is, Evidence: of, Label: label}
				}
				return rows[key]
			}
			row(incident, "").count(j.Met, j.Suspected)
			for _, sign := range j.Signs {
				row(sign.Name, sign.Is).count(sign.Met, false)
			}
		}
	}
	return left, nil
}

func (r *Row) count(met check.Truth, suspected bool) {
	switch met {
	case check.True:
		r.Met++
	case check.False:
		r.NotMet++
	default:
		r.Unknown++
		if suspected {
			r.Suspected++
		}
	}
	r.Low, r.High = rate.Wilson(r.Count(), confidence)
}

// sort orders rows by rule, evidence and label. It drops the rows of a sign for a kind of evidence that never answered
// it.
func (t *Table) sort(s *scenario.Scenario, rows map[[3]string]*Row) {
	rules := []string{incident}
	for _, sign := range s.Spec.Match.Signs {
		rules = append(rules, sign.Name)
	}
	for _, rule := range rules {
		for _, of := range match.Parts {
			var some []Row
			answered := rule == incident
			for _, label := range []Label{Shows, Without, Baseline, Other} {
				if r := rows[[3]string{rule, string(of), string(label)}]; r != nil {
					some, answered = append(some, *r), answered || r.Met+r.NotMet > 0
				}
			}
			if answered {
				t.Rows = append(t.Rows, some...)
			}
		}
	}
}
