package plan

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// Deviation is one way in which a trial is weaker than its scenario's own, or other than it.
type Deviation struct {
	Code string `json:"code"`           // one of the codes below
	Name string `json:"name,omitempty"` // of what is set, with CodeSetting
	Text string `json:"text"`           // one phrase, as verdicts have it
}

// The codes of deviations.
const (
	CodeSetting = "setting" // a parameter, or a field of the scenario, is set
	CodeDoubt   = "doubt"   // something is unknown of the candidate, which says nothing about other arms
	CodeOption  = "option"  // an option weakens the trial
	CodeEdited  = "edited"  // the plan is other than the scenario's, or nobody can tell
)

// Deviations are a trial's, in the order in which they are told.
type Deviations []Deviation

// Texts returns the phrases.
func (d Deviations) Texts() []string {
	var out []string
	for _, one := range d {
		out = append(out, one.Text)
	}
	return out
}

// add appends deviations of a code that aren't there yet.
func (d *Deviations) add(code string, texts ...string) {
	for _, text := range texts {
		if one := (Deviation{Code: code, Text: text}); !slices.Contains(*d, one) {
			*d = append(*d, one)
		}
	}
}

// setTo says that a setting was made.
func setTo(name, value string) Deviation {
	return Deviation{
		Code: CodeSetting,
		Name: name,
		Text: fmt.Sprintf("%s is set to %s", name, value),
	}
}

// wasSet and wasDoubt match the phrases for which earlier versions had no code.
var (
	wasSet   = regexp.MustCompile(`^(\S+) is set to `)
	wasDoubt = regexp.MustCompile(`^(the candidate doesn't say its version|the version of the candidate can't be told)`)
)

// UnmarshalJSON reads a deviation, or the phrase alone that earlier versions of relapse wrote.
func (d *Deviation) UnmarshalJSON(b []byte) error {
	if !strings.HasPrefix(string(b), `"`) {
		type fields Deviation // without this method
		return kinds.DecodeStrictly(b, (*fields)(d))
	}
	*d = Deviation{Code: CodeOption}
	if err := json.Unmarshal(b, &d.Text); err != nil {
		return err
	}
	if m := wasSet.FindStringSubmatch(d.Text); m != nil {
		d.Code, d.Name = CodeSetting, m[1]
	} else if wasDoubt.MatchString(d.Text) {
		d.Code = CodeDoubt
	}
	return nil
}

// Apart returns what makes a trial other than the one that its scenario describes, one phrase each. The outcomes of
// such a trial say nothing about how often the scenario brings its incident back. Settings of declared parameters don't
// set a trial apart, and neither does a candidate beside the scenario's own arms.
func (p *Plan) Apart(t *Trial) []string {
	var out Deviations
	for _, d := range t.Deviates {
		if _, declared := p.Values[d.Name]; d.Code != CodeDoubt && (d.Code != CodeSetting || !declared) {
			out = append(out, d)
		}
	}
	return out.Texts()
}
