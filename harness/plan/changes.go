package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// NoteChanges compares each trial's arms and checks with those that scenario s would give it, and adds the differences
// to the trial's Deviates. A plan can be edited before it is run, and a reader of the verdict knows only the scenario's
// name.
func (p *Plan) NoteChanges(s *scenario.Scenario) error {
	for _, pair := range p.Pairs() {
		own, failed := New(s, Options{Pair: pair, Params: p.Params, Provider: cmp.Or(p.Provider, providers.Kind)})
		for i := range p.Trials {
			t := &p.Trials[i]
			if t.Pair != pair {
				continue
			}
			notes := []string{fmt.Sprintf("its arms and checks can't be compared with those of the scenario %s: %v", s.Metadata.Name, failed)}
			if failed == nil {
				var err error
				if notes, err = t.otherChecks(&own.Trials[0]); err != nil {
					return err
				}
				arms, err := t.otherArms(&own.Trials[0])
				if err != nil {
					return err
				}
				notes = append(arms, notes...)
			}
			for _, n := range notes {
				if !slices.Contains(t.Deviates, n) {
					t.Deviates = append(t.Deviates, n)
				}
			}
		}
	}
	return nil
}

// otherArms describes how the builds of t's arms differ from those of own, the trial as the scenario plans it. Candidates
// and swapped builds are no change of the plan: it says itself what they are.
func (t *Trial) otherArms(own *Trial) (notes []string, err error) {
	sources := map[string]string{} // as JSON, which a plan's encoding doesn't change
	for _, a := range own.Arms {
		if sources[a.Name], err = sourceJSON(a); err != nil {
			return nil, err
		}
	}
	for _, a := range t.Arms {
		is, err := sourceJSON(a)
		if err != nil {
			return nil, err
		}
		switch want, ok := sources[cmp.Or(a.BuildOf, a.Name)]; {
		case a.Role == scenario.Candidate:
		case !ok:
			notes = append(notes, fmt.Sprintf("the arm %s is none of the scenario's", a.Name))
		case is != want:
			notes = append(notes, fmt.Sprintf("the arm %s is not built as the scenario has it", a.Name))
		}
	}
	return notes, nil
}

func sourceJSON(a Arm) (string, error) {
	b, err := json.Marshal(a.Source)
	if err != nil {
		return "", fmt.Errorf("encoding the source of arm %s: %w", a.Name, err)
	}
	return string(b), nil
}

// otherChecks describes how the checks of t differ from those of own, the trial as the scenario plans it.
func (t *Trial) otherChecks(own *Trial) (notes []string, err error) {
	for i, l := range t.deciding() {
		wanted := *own.deciding()[i].checks
		have, err := named(*l.checks)
		if err != nil {
			return nil, err
		}
		want, err := named(wanted)
		if err != nil {
			return nil, err
		}
		for _, c := range wanted {
			switch is, ok := have[c.Name]; {
			case !ok:
				notes = append(notes, fmt.Sprintf("%s lacks the scenario's check %s", l.name, c.Name))
			case is != want[c.Name]:
				notes = append(notes, fmt.Sprintf("the check %s in %s is not as the scenario has it", c.Name, l.name))
			}
		}
		for _, c := range *l.checks {
			if _, ok := want[c.Name]; !ok {
				notes = append(notes, fmt.Sprintf("the check %s in %s is none of the scenario's", c.Name, l.name))
			}
		}
	}
	return notes, nil
}

// named returns checks as JSON, by their names.
func named(list []Check) (map[string]string, error) {
	out := map[string]string{}
	for _, c := range list {
		b, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("encoding check %s: %w", c.Name, err)
		}
		out[c.Name] = string(b)
	}
	return out, nil
}
