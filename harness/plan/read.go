package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// Read reads the plan that a run left behind, to judge by it. Unlike Decode it doesn't ask whether the plan could be run; but what it can't understand is
// an error, in the specs of collectors, loads, faults and checks too: a field that is passed over is a question asked more weakly.
func Read(b []byte) (*Plan, error) {
	p := &Plan{}
	if err := kinds.DecodeStrictly(b, p); err != nil {
		return nil, fmt.Errorf("decoding a plan: %w", err)
	}
	if p.Schema != Schema {
		return nil, fmt.Errorf("plan has schema %q, want %q", p.Schema, Schema)
	}
	var errs []error
	for _, t := range p.Trials {
		if err := t.understood(); err != nil {
			errs = append(errs, fmt.Errorf("trial %s: %w", t.ID, err))
		}
	}
	return p, errors.Join(errs...)
}

// Sum is the SHA-256 of the plan as Encode writes it, in hex: what a run's trials name it by.
func Sum(p *Plan) (string, error) {
	b, err := Encode(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// understood decodes every spec, for what is in it that this program doesn't know.
func (t *Trial) understood() error {
	var errs []error
	ask := func(category, kind, name string, spec json.RawMessage) {
		if _, err := kinds.Decode[any](category, kind, spec); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", category, name, err))
		}
	}
	for _, c := range t.Collectors {
		ask(kinds.Collector, c.Kind, c.Name, c.Spec)
	}
	for _, l := range t.Loads {
		ask(kinds.Load, l.Kind, l.Name, l.Spec)
	}
	for _, f := range t.Faults {
		ask(kinds.Fault, f.Kind, f.Name, f.Spec)
	}
	var checks func([]Check)
	checks = func(list []Check) {
		for _, c := range list {
			if len(c.AnyOf) == 0 {
				ask(kinds.Check, c.Kind, c.Name, c.Spec)
			}
			checks(c.AnyOf)
		}
	}
	for _, list := range [][]Check{t.Steady, t.Exposure, t.Signature, t.Healed, t.Info} {
		checks(list)
	}
	return errors.Join(errs...)
}
