package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// NoteChanges compares each trial with the one that scenario s gives for the same choices, and adds every difference to
// the trial's Deviates. A plan can be edited before it is run, and a reader of the verdict knows only the scenario's
// name. base is the provider's own config, as in Options. If there is nothing to compare a trial with, that is noted.
//
// The choices are those of Options. What they weaken is noted, too, if the plan doesn't say it any more.
func (p *Plan) NoteChanges(s *scenario.Scenario, base []byte) error {
	for i := range p.Trials {
		t := &p.Trials[i]
		own, err := p.asPlanned(s, t, base)
		if err != nil {
			t.uncompared(s.Metadata.Name, err)
			continue
		}
		all, err := differences(p, own, t)
		if err != nil {
			return err
		}
		for _, d := range own.Trials[0].Deviates {
			if !slices.Contains(t.Deviates, d) {
				t.Deviates = append(t.Deviates, d)
			}
		}
		var notes []string
		if own.Digest != p.Digest {
			notes = append(
				notes,
				fmt.Sprintf(
					"it was planned from another file than %s is now (SHA-256 %.12s, not %.12s)",
					own.Source,
					p.Digest,
					own.Digest,
				),
			)
		}
		t.Deviates.add(CodeEdited, append(notes, told(all)...)...)
	}
	return nil
}

// NoteUncompared records in each trial that the plan can't be compared with its scenario, and why.
func (p *Plan) NoteUncompared(why error) {
	for i := range p.Trials {
		p.Trials[i].uncompared(p.Scenario, why)
	}
}

func (t *Trial) uncompared(name string, why error) {
	line, _, _ := strings.Cut(why.Error(), "\n")
	t.Deviates.add(
		CodeEdited,
		fmt.Sprintf("its plan can't be compared with the scenario %s: %s", name, line),
	)
}

// asPlanned returns the plan of scenario s with the choices that trial t shows, as its only trial.
func (p *Plan) asPlanned(s *scenario.Scenario, t *Trial, base []byte) (*Plan, error) {
	o := Options{
		Pair:       t.Pair,
		Params:     p.Params,
		Provider:   cmp.Or(p.Provider, providers.Kind),
		Seed:       p.Seed,
		Base:       base,
		Sequential: t.Sequential,
		NoFaults:   t.NoFaults,
		Swap:       map[string]string{},
	}
	for _, f := range s.Spec.Faults {
		if !slices.ContainsFunc(t.Faults, func(have Fault) bool { return have.Name == f.Name }) {
			o.Without = append(o.Without, f.Name)
		}
	}
	pairs, err := selectPairs(s, t.Pair)
	if err != nil {
		return nil, err
	}
	for _, a := range t.Arms {
		if !slices.ContainsFunc(pairs[0].Arms, func(own scenario.Arm) bool { return own.Name == a.Name }) {
			c, err := asGiven(s, a)
			if err != nil {
				return nil, err
			}
			if c == nil { // it is none of the scenario's
				continue
			}
			o.Candidates = append(o.Candidates, *c)
		}
		o.Arms = append(o.Arms, a.Name)
		if a.BuildOf != "" {
			o.Swap[a.Name] = a.BuildOf
		}
	}
	return New(s, o)
}

// asGiven returns an arm of a plan as the candidate that it was planned from, or nil if it is none.
func asGiven(s *scenario.Scenario, a Arm) (*Candidate, error) {
	if a.Role != scenario.Candidate {
		return nil, nil
	}
	if a.Name == scenario.Candidate {
		return &Candidate{Source: &a.Source}, nil
	}
	known, err := s.Candidates()
	if err != nil {
		return nil, err
	}
	for i := range known {
		if known[i].Metadata.Name == a.Name {
			return &Candidate{Known: &known[i]}, nil
		}
	}
	if scenario.IsGiven(a.Name) {
		return &Candidate{Source: &a.Source, Of: strings.TrimPrefix(a.Name, scenario.GivenPrefix)}, nil
	}
	return nil, nil
}

// The fields that aren't compared: how often and in which order a run does its trials, what it runs on, where the
// scenario's file was, what is compared in another way, and texts that decide nothing.
var (
	ofRun   = []string{"nodeImage", "provider", "seed", "until", "source", "digest", "params", "trials", "links", "others", "programs"}
	ofTrial = []string{"id", "sequential", "why", "deviates", "about"}
)

// differences returns where a plan and one of its trials differ from the scenario's own plan and its only trial.
func differences(p, own *Plan, t *Trial) ([]difference, error) {
	var all []difference
	for _, c := range []struct {
		is, want any
		without  []string
	}{{p, own, ofRun}, {t, &own.Trials[0], ofTrial}} {
		is, err := tree(c.is, c.without)
		if err != nil {
			return nil, err
		}
		want, err := tree(c.want, c.without)
		if err != nil {
			return nil, err
		}
		all = append(all, compare("", is, want)...)
	}
	return all, nil
}

// tree returns v as JSON has it, without some of its fields.
func tree(v any, without []string) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a plan, to compare it: %w", err)
	}
	out := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return nil, fmt.Errorf("decoding a plan, to compare it: %w", err)
	}
	for _, name := range without {
		delete(out, name)
	}
	return out, nil
}
