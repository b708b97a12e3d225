package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// NoteOtherChecks compares each trial's checks with those that scenario s would give it, and adds the differences to
// the trial's Deviates. A plan can be edited before it is run, and a reader of the verdict knows only the scenario's
// name.
func (p *Plan) NoteOtherChecks(s *scenario.Scenario) error {
	for i := range p.Trials {
		t := &p.Trials[i]
		o := Options{Pair: t.Pair, Params: p.Params, Provider: p.Provider}
		if o.Provider == "" {
			o.Provider = providers.Kind
		}
		var notes []string
		if own, err := New(s, o); err != nil {
			notes = []string{fmt.Sprintf("its checks can't be compared with those of the scenario %s: %v", s.Metadata.Name, err)}
		} else if notes, err = t.otherChecks(&own.Trials[0]); err != nil {
			return err
		}
		for _, n := range notes {
			if !slices.Contains(t.Deviates, n) {
				t.Deviates = append(t.Deviates, n)
			}
		}
	}
	return nil
}

// otherChecks describes how the checks of t differ from those of own, the trial as the scenario plans it.
func (t *Trial) otherChecks(own *Trial) (notes []string, err error) {
	for _, l := range []struct {
		name       string
		have, want []Check
	}{
		{"steady", t.Steady, own.Steady}, {"exposure", t.Exposure, own.Exposure},
		{"signature", t.Signature, own.Signature}, {"healed", t.Healed, own.Healed},
	} {
		have, err := named(l.have)
		if err != nil {
			return nil, err
		}
		want, err := named(l.want)
		if err != nil {
			return nil, err
		}
		for _, c := range l.want {
			switch is, ok := have[c.Name]; {
			case !ok:
				notes = append(notes, fmt.Sprintf("%s lacks the scenario's check %s", l.name, c.Name))
			case is != want[c.Name]:
				notes = append(notes, fmt.Sprintf("the check %s in %s is not as the scenario has it", c.Name, l.name))
			}
		}
		for _, c := range l.have {
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
