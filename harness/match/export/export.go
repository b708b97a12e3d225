// Package export translates the rules of relapse match for other tools: to analyzers of troubleshoot, to alerts of
// Prometheus and to rules of CRE, which preq looks for in logs. All of them can express less than relapse match, and the
// export names what was lost.
package export

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Forms are the tools that rules can be written for.
var Forms = []string{"troubleshoot", "prometheus", "cre"}

// Write writes the rules of all scenarios that have any. The YAML begins with comments that name what was lost.
func Write(b *bytes.Buffer, all []*scenario.Scenario, form string) error {
	t := &translation{form: form}
	if form == "cre" {
		t.lost = slices.Clone(creAbout)
	}
	for _, s := range all {
		if s.Spec.Match == nil {
			continue
		}
		if s.Spec.Match.Affected != "" && form != "cre" {
			t.recordLoss(
				s,
				"",
				"the versions that are affected (%s): %s can't tell by them",
				s.Spec.Match.Affected,
				form,
			)
		}
		for _, sign := range s.Spec.Match.Signs {
			if err := t.sign(s, sign); err != nil {
				return fmt.Errorf("exporting %s: %w", s.Metadata.Name, err)
			}
		}
	}
	text, err := yaml.Marshal(t.document())
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "# Written by relapse match --export %s: %d signs of %d. What says less than relapse match, and how:\n",
		form, t.said, t.all)
	for _, l := range t.lost {
		fmt.Fprintf(b, "# - %s\n", strings.ReplaceAll(l, "\n", " "))
	}
	b.Write(text)
	return nil
}

// translation collects what a tool can express, and what is lost.
type translation struct {
	form      string
	said, all int // signs that could be translated, and all signs
	lost      []string
	analyzers []any
	alerts    []any
	rules     []any
}

func (t *translation) recordLoss(s *scenario.Scenario, sign, format string, args ...any) {
	at := s.Metadata.Name
	if sign != "" {
		at += ", " + sign
	}
	t.lost = append(t.lost, at+": "+fmt.Sprintf(format, args...))
}

// sign translates the checks of a sign that the tool can express. The tool evaluates each of them separately, although
// the sign wants all of them together; that is recorded as a loss.
func (t *translation) sign(s *scenario.Scenario, sign scenario.Sign) error {
	t.all++
	if t.form == "cre" {
		return t.incident(s, sign)
	}
	flat := leaves(sign.Checks)
	said := 0
	for _, c := range flat {
		k, err := kinds.Decode[check.Check](kinds.Check, c.Kind, c.Spec)
		if err != nil {
			return err
		}
		one := rule{t, s, sign, c.Name}
		if t.form == "prometheus" && one.alert(k) || t.form == "troubleshoot" && one.analyze(k) {
			said++
		} else {
			t.recordLoss(s, sign.Name, "%s (%s) can't be said", c.Name, c.Kind)
		}
	}
	if said > 0 {
		t.said++
	}
	if said > 1 && len(sign.Checks) > 1 {
		t.recordLoss(
			s,
			sign.Name,
			"its %d checks have to be met together, and are told one by one",
			len(sign.Checks),
		)
	}
	return nil
}

// leaves returns the checks of a sign. Alternatives stand in place of the check that offers them.
func leaves(all []scenario.Check) (out []scenario.Check) {
	for _, c := range all {
		if len(c.AnyOf) > 0 {
			out = append(out, leaves(c.AnyOf)...)
		} else {
			out = append(out, c)
		}
	}
	return out
}

// rule is one check of a sign.
type rule struct {
	*translation
	s    *scenario.Scenario
	sign scenario.Sign
	name string
}

func (r rule) recordLoss(format string, args ...any) {
	r.translation.recordLoss(r.s, r.sign.Name, r.name+": "+format, args...)
}

// message returns the text that the tool shows.
func (r rule) message() string {
	is := "may be"
	if r.sign.Is == scenario.Decisive {
		is = "is"
	}
	return fmt.Sprintf(
		"This %s %s: %s. %s. relapse match says more.",
		is,
		r.s.Metadata.Name,
		strings.TrimRight(
			r.s.Spec.Title,
			".",
		),
		strings.ToUpper(r.sign.Ground[:1])+r.sign.Ground[1:],
	)
}

// object is a mapping in YAML.
type object = map[string]any

func (t *translation) document() any {
	if t.form == "cre" {
		return object{"rules": slices.Clone(t.rules)}
	}
	if t.form == "prometheus" {
		return object{"groups": []any{object{"name": "relapse", "rules": slices.Clone(t.alerts)}}}
	}
	return object{
		"apiVersion": "troubleshoot.sh/v1beta2",
		"kind":       "SupportBundle",
		"metadata":   object{"name": "relapse"},
		"spec": object{
			"collectors": []any{
				object{"clusterInfo": object{}},
				object{"clusterResources": object{}},
			},
			"analyzers": slices.Clone(t.analyzers),
		},
	}
}
