// Package match answers the scenarios' questions from somebody else's evidence: a production bundle, a dump, a log. It
// turns the evidence into a bundle.View with one phase, so that the same checks answer, with the same three values. If
// a form of evidence can't hold something, match says so and the question stays unknown: that is never taken for a no.
package match

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// schema is the value of a result's schema field.
const schema = "relapse.dev/match/v1alpha1"

// Result says for each known incident whether the evidence shows it, the worst first. Schema describes it as JSON.
type Result struct {
	Schema      string            `json:"schema" jsonschema:"the version of this form"`
	Answer      Answer            `json:"answer" jsonschema:"of all incidents together; the exit code follows it"`
	Incidents   []Incident        `json:"incidents" jsonschema:"every known incident that leaves something to look for, the worst first"`
	Unexplained Unexplained       `json:"unexplained" jsonschema:"what stands out, whether a scenario knows it or not; it decides nothing"`
	Inputs      []Input           `json:"inputs" jsonschema:"the files that were read"`
	Problems    []archive.Problem `json:"problems" jsonschema:"what was hostile, broken or cut off; the rest was read"`
}

// Input is a file, and the form in which it was read.
type Input struct {
	Path  string `json:"path"`
	As    string `json:"as" jsonschema:"the form in which it was read"`
	Lacks string `json:"lacks,omitempty" jsonschema:"what that form can't hold"`
}

// Incident is the answer for one scenario's incident. It is suspected if the answer is unknown, and something speaks
// for the incident.
type Incident struct {
	Name       string      `json:"name" jsonschema:"the scenario's name"`
	Title      string      `json:"title"`
	Component  string      `json:"component" jsonschema:"the component that has the incident"`
	Answer     Answer      `json:"answer" jsonschema:"the worst of its subjects' answers"`
	Met        check.Truth `json:"-"`
	Suspected  bool        `json:"-"`
	Why        string      `json:"why"`
	Settle     string      `json:"settle,omitempty" jsonschema:"the command that would settle an unknown"`
	Prove      string      `json:"prove,omitempty" jsonschema:"the command that proves it on that very version"`
	Fixed      string      `json:"fixed,omitempty" jsonschema:"the versions with the fix"`
	References []string    `json:"references" jsonschema:"links to the bug and its fix"`
	Subjects   []Judgment  `json:"subjects" jsonschema:"the processes that the evidence is about, the worst first"`
}

// Judgment is the answer for one process, or for evidence in one place that may be of several processes.
type Judgment struct {
	Component string      `json:"component" jsonschema:"empty if it isn't known to be the component's evidence"`
	Whose     string      `json:"whose,omitempty" jsonschema:"the program whose evidence it is, and what shows that"`
	Place     string      `json:"place" jsonschema:"where the evidence lies"`
	Version   string      `json:"version,omitempty"`
	Answer    Answer      `json:"answer"`
	Met       check.Truth `json:"-"`
	Suspected bool        `json:"-"`
	Why       string      `json:"why"`
	Settle    string      `json:"settle,omitempty" jsonschema:"the command that would settle an unknown"`
	Signs     []Sign      `json:"signs"`
}

// Sign is the answer for one sign, and where it was found.
type Sign struct {
	Name   string      `json:"name"`
	Is     string      `json:"is" jsonschema:"what the sign shows by itself: decisive or suspicious"`
	Answer Answer      `json:"answer" jsonschema:"never suspected"`
	Met    check.Truth `json:"-"`
	Likely bool        `json:"-"` // it is unknown, and what it asks for is there, but may be of something else
	Ground string      `json:"ground" jsonschema:"why the sign is decisive, or only suspicious"`
	Seen   string      `json:"seen"`
	Where  []string    `json:"where" jsonschema:"file:line, or an artifact of a relapse bundle"`
	Detail string      `json:"detail,omitempty" jsonschema:"the stack or the line"`
}

// Run reads paths and judges the incident of each scenario that has a match section. Of a scenario it asks only what
// Rules has. It also compares dumps with the baselines in well, which are of healthy processes. The error is a path that
// can't be opened, a mistake in a scenario, or the context's.
func Run(
	ctx context.Context,
	all []*scenario.Scenario,
	well []*healthy.Baseline,
	paths []string,
	stdin io.Reader,
) (Result,
	error) {
	out := Result{
		Schema:    schema,
		Answer:    Unknown,
		Incidents: []Incident{},
		Inputs:    []Input{},
		Problems:  []archive.Problem{},
	}
	all = slices.DeleteFunc(
		slices.Clone(all),
		func(s *scenario.Scenario) bool { return s.Spec.Match == nil },
	)
	rules, err := compile(all)
	if err != nil {
		return out, err
	}
	e := &evidence{rules: rules, versions: map[string][]string{}, close: func() {}}
	defer func() { e.close() }()
	if err := e.read(ctx, paths, stdin); err != nil {
		return out, err
	}
	for _, s := range all {
		one, err := e.incident(s)
		if err != nil {
			return out, fmt.Errorf("matching %s: %w", s.Metadata.Name, err)
		}
		out.Incidents = append(out.Incidents, one)
	}
	slices.SortStableFunc(out.Incidents, func(a, b Incident) int {
		return cmp.Or(
			cmp.Compare(badness(b.Met, b.Suspected), badness(a.Met, a.Suspected)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	out.Inputs, out.Unexplained = append(out.Inputs, e.inputs...), e.unexplained(well)
	out.Problems = append(out.Problems, e.problems...)
	for i := range out.Incidents {
		out.Incidents[i].answered()
	}
	out.Answer = out.answer()
	out.shown()
	return out, nil
}

func badness(met check.Truth, suspected bool) int {
	switch {
	case met == check.True:
		return 3
	case suspected:
		return 2
	case met == check.Unknown:
		return 1
	}
	return 0
}

// Answer is the answer for an incident, or for all of them together.
type Answer string

// The answers. Suspected means that nothing is decided, and something speaks for the incident.
const (
	Met       Answer = "met"
	Suspected Answer = "suspected"
	Unknown   Answer = "unknown"
	NotMet    Answer = "not met"
)

// Word returns the answer as text: met, suspected, unknown or not met.
func (i Incident) Word() string { return string(i.Answer) }

func answerOf(met check.Truth, suspected bool) Answer {
	if suspected && met == check.Unknown {
		return Suspected
	}
	return Answer(met.String())
}

// answered names the answers of an incident, of its subjects and of their signs in one word each, as JSON has them.
func (i *Incident) answered() {
	i.Answer = answerOf(i.Met, i.Suspected)
	for s := range i.Subjects {
		j := &i.Subjects[s]
		j.Answer = answerOf(j.Met, j.Suspected)
		for n := range j.Signs {
			j.Signs[n].Answer = answerOf(j.Signs[n].Met, false)
		}
	}
}

// Nothing reports whether there was nothing to read: no file, or only empty ones.
func (r Result) Nothing() bool {
	return len(r.Problems) == 0 &&
		!slices.ContainsFunc(r.Inputs, func(i Input) bool { return i.As != "empty" })
}

// Recognised reports whether evidence of the incident's component was found.
func (i Incident) Recognised() bool {
	return slices.ContainsFunc(i.Subjects, func(j Judgment) bool { return j.Component != "" })
}

// answer returns met if any incident is met, or else suspected if any is. It is not met if evidence of some component was
// recognised and every incident of the components in it is ruled out, and unknown otherwise.
func (r Result) answer() Answer {
	out := Unknown
	for _, i := range r.Incidents {
		switch word := Answer(i.Word()); {
		case word == Met:
			return Met
		case word == Suspected:
			out = Suspected
		}
	}
	if out == Suspected {
		return out
	}
	for _, i := range r.Incidents {
		switch {
		case i.Recognised() && i.Met != check.False:
			return Unknown
		case i.Recognised():
			out = NotMet
		}
	}
	return out
}

// incident judges one scenario's incident in every process that the evidence is about.
func (e *evidence) incident(s *scenario.Scenario) (Incident, error) {
	m := s.Spec.Match
	out := Incident{Name: s.Metadata.Name, Title: s.Spec.Title, Component: s.Spec.Subject, Fixed: m.Fixed,
		References: append([]string{}, s.Spec.References...), Subjects: []Judgment{}}
	for _, sub := range e.subjects(s.Spec.Subject, m.Packages) {
		j, err := e.judge(s, sub)
		if err != nil {
			return out, err
		}
		if j.Component != "" || badness(j.Met, j.Suspected) >= 2 {
			out.Subjects = append(out.Subjects, j)
		}
	}
	if len(out.Subjects) == 0 {
		out.Why, out.Settle = "nothing here is known to be of "+s.Spec.Subject, m.Signs[0].Settle
		return out, nil
	}
	slices.SortStableFunc(out.Subjects, func(a, b Judgment) int {
		return cmp.Compare(badness(b.Met, b.Suspected), badness(a.Met, a.Suspected))
	})
	worst := out.Subjects[0]
	out.Met, out.Suspected = worst.Met, worst.Suspected
	out.Why, out.Settle = fmt.Sprintf("%s: %s", worst.Place, worst.Why), worst.Settle
	if more := len(out.Subjects) - 1; more > 0 && worst.Met == check.False {
		out.Why += fmt.Sprintf(" (and likewise not in %d more)", more)
	}
	if worst.Met == check.False && len(e.problems) > 0 { // it may be in what could not be read
		p := e.problems[0]
		out.Met, out.Settle = check.Unknown, m.Signs[0].Settle
		out.Why += fmt.Sprintf("; but not everything could be read: %s: %s", p.Path, p.Message)
	}
	if m := pairModule(s); m != "" && out.Met != check.False && plain(worst.Version) {
		out.Prove = fmt.Sprintf(
			"relapse run %s --candidate mod:%s@%s",
			out.Name,
			m,
			worst.Version,
		)
	}
	return out, nil
}

// pairModule returns the module of the first pair whose arms are modules, "" if there is none.
func pairModule(s *scenario.Scenario) string {
	for _, p := range s.Spec.Pairs {
		if m := p.Arms[0].Source.Module; m != "" {
			return m
		}
	}
	return ""
}

// list joins words with commas.
func list(words []string) string { return strings.Join(words, ", ") }
