package plan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// Encode writes p as JSON, indented by two spaces, with a newline at its end. The same plan gives the same bytes.
func Encode(p *Plan) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encoding the plan of %s: %w", p.Scenario, err)
	}
	return b.Bytes(), nil
}

// Decode reads what Encode wrote, or what a person made of it: unknown fields, another schema, anything behind the plan and all that
// Validate objects to are errors.
func Decode(b []byte) (*Plan, error) {
	p := &Plan{}
	if err := kinds.DecodeStrictly(b, p); err != nil {
		return nil, fmt.Errorf("decoding a plan: %w", err)
	}
	for i := range p.Trials {
		p.Trials[i].compact()
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// compact takes the indentation out of raw specs, so that a plan that was read equals the one that was written.
func (t *Trial) compact() {
	squeeze := func(raw *json.RawMessage) {
		var b bytes.Buffer
		if json.Compact(&b, *raw) == nil {
			*raw = b.Bytes()
		}
	}
	for i := range t.Cells {
		for j := range t.Cells[i].Arm.Source.Mutations {
			squeeze(&t.Cells[i].Arm.Source.Mutations[j].Spec)
		}
	}
	for i := range t.Collectors {
		squeeze(&t.Collectors[i].Spec)
	}
	for _, list := range [][]Item{t.Loads, t.Faults} {
		for i := range list {
			squeeze(&list[i].Spec)
		}
	}
	var group func([]Check)
	group = func(list []Check) {
		for i := range list {
			if list[i].Spec != nil {
				squeeze(&list[i].Spec)
			}
			group(list[i].AnyOf)
		}
	}
	for _, list := range [][]Check{t.Steady, t.Exposure, t.Signature, t.Healed} {
		group(list)
	}
}
