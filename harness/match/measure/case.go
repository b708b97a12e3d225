package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// CaseFile is the name of the file that makes a folder a case.
const CaseFile = "case.yaml"

// Case is evidence as somebody outside has it, with its right answer.
type Case struct {
	Name   string   `json:"-"` // of its folder
	Dir    string   `json:"-"`
	Files  []string `json:"files" jsonschema:"the evidence, which lies beside the case's file"`
	Shows  string   `json:"shows" jsonschema:"the scenario whose incident it shows; other if it shows another bug or another program; healthy if it shows none"`
	Form   string   `json:"form" jsonschema:"in a word or two, in what form the evidence is; cases are counted by it"`
	Answer Answers  `json:"answer"`
	Says   string   `json:"says,omitempty" jsonschema:"what the answers have to say"`
	Why    string   `json:"why" jsonschema:"why the answer is right"`
	Source string   `json:"source" jsonschema:"where the evidence comes from, and how it was made"`
	Open   string   `json:"open,omitempty" jsonschema:"why relapse doesn't give the right answer yet"`
}

// What a case can show beside the incident of a scenario.
const (
	otherBug = "other"
	noBug    = "healthy"
)

// Answers are the right answers: scenario -> each word that is right. No incident that isn't named here may be met or
// suspected.
type Answers map[string][]match.Answer

// none is what a file has in place of the answers if none is named.
const none = "none"

// UnmarshalJSON reads none, or for each scenario a word or a list of words.
func (a *Answers) UnmarshalJSON(b []byte) error {
	if *a = (Answers{}); string(b) == `"`+none+`"` {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for name, raw := range all {
		var one match.Answer
		var list []match.Answer
		if json.Unmarshal(raw, &one) == nil {
			list = []match.Answer{one}
		} else if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		(*a)[name] = list
	}
	return nil
}

// caseSchema returns the schema of a case's file, in which only these scenarios can be named.
func caseSchema(scenarios []string) (*jsonschema.Schema, error) {
	root, err := jsonschema.For[Case](nil)
	if err != nil {
		return nil, err
	}
	root.ID = "https://relapse.dev/schema/v1alpha1/case.json"
	word := &jsonschema.Schema{
		Type: "string",
		Enum: []any{
			string(match.Met),
			string(match.Suspected),
			string(match.Unknown),
			string(match.NotMet),
		},
	}
	either := func(text, other *jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{If: &jsonschema.Schema{Type: "string"}, Then: text, Else: other}
	}
	byName := &jsonschema.Schema{
		Type:                 "object",
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		MinProperties:        new(1),
		Properties:           map[string]*jsonschema.Schema{},
	}
	shows := root.Properties["shows"]
	shows.Enum = []any{otherBug, noBug}
	for _, name := range scenarios {
		shows.Enum = append(shows.Enum, name)
		byName.Properties[name] = either(
			word,
			&jsonschema.Schema{Type: "array", Items: word, MinItems: new(1)},
		)
	}
	root.Properties["answer"] = either(&jsonschema.Schema{Enum: []any{none}}, byName)
	root.Properties["files"].MinItems = new(1)
	for _, name := range []string{"form", "why", "source"} {
		root.Properties[name].MinLength = new(1)
	}
	return root, nil
}

// IsCases reports whether a path is a case, or a folder of cases.
func IsCases(path string) bool { return len(caseFiles(path)) > 0 }

func caseFiles(path string) []string {
	var out []string
	for _, pattern := range []string{CaseFile, filepath.Join("*", CaseFile)} {
		found, _ := filepath.Glob(filepath.Join(path, pattern)) // the pattern is well-formed
		out = append(out, found...)
	}
	return out
}

// Cases reads the cases in paths, each of which is a case or a folder of cases. Mistakes in their files are returned as
// scenario.Violations.
func Cases(all []*scenario.Scenario, paths []string) (out []Case, err error) {
	var names []string
	for _, s := range all {
		names = append(names, s.Metadata.Name)
	}
	schema, err := caseSchema(names)
	if err != nil {
		return nil, fmt.Errorf("making the schema of a case: %w", err)
	}
	reader, err := scenario.NewReader("case", schema)
	if err != nil {
		return nil, err
	}
	var wrong scenario.Violations
	for _, p := range paths {
		for _, f := range caseFiles(p) {
			c, err := readCase(reader, f)
			var vs scenario.Violations
			switch {
			case errors.As(err, &vs):
				wrong = append(wrong, vs...)
			case err != nil:
				return nil, err
			}
			out = append(out, c)
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return out, nil
}

func readCase(reader *scenario.Reader, file string) (Case, error) {
	c := Case{Dir: filepath.Dir(file), Name: filepath.Base(filepath.Dir(file))}
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	return c, reader.Read(file, text, &c, func(add func(string, ...string)) {
		for i, f := range c.Files {
			if _, err := os.Stat(filepath.Join(c.Dir, f)); err != nil || !filepath.IsLocal(f) {
				add(fmt.Sprintf("%q is no file beside the case", f), "files", fmt.Sprint(i))
			}
		}
		for name, words := range c.Answer {
			if name != c.Shows && slices.Contains(words, match.Met) {
				add(fmt.Sprintf("met can't be right: the case shows %s", c.Shows), "answer", name)
			}
		}
		if c.Shows != otherBug && c.Shows != noBug && c.Shows != "" && len(c.Answer[c.Shows]) == 0 {
			add("there is no right answer for "+c.Shows+", which the case shows", "answer")
		}
	})
}

// Ask asks for all incidents in the evidence of a case.
func (c Case) Ask(
	ctx context.Context,
	all []*scenario.Scenario,
	well []*healthy.Baseline,
) (match.Result, error) {
	var paths []string
	for _, f := range c.Files {
		paths = append(paths, filepath.Join(c.Dir, f))
	}
	return match.Run(ctx, all, well, paths, nil)
}

// Wrong says what is wrong with the answer for an incident, "" if it is right.
func (c Case) Wrong(i match.Incident) string {
	words, named := c.Answer[i.Name]
	said := fmt.Sprintf("%s is %s: %s", i.Name, i.Answer, i.Why)
	switch {
	case !named && (i.Answer == match.Met || i.Answer == match.Suspected):
		return said + "; want unknown or not met"
	case named && !slices.Contains(words, i.Answer):
		var want []string
		for _, w := range words {
			want = append(want, string(w))
		}
		return said + "; want " + strings.Join(want, " or ")
	case named && !strings.Contains(i.Why, c.Says):
		return said + "; that doesn't say " + c.Says
	}
	return ""
}
