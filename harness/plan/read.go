package plan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/kube-relapse/relapse/harness/evidence/stored"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Read reads the plan of a finished run, for judging. Unlike Decode it doesn't check whether the plan can be run.
// Unknown fields are errors, also in the specs of collectors, loads, faults and checks: ignoring one would weaken a
// check.
func Read(b []byte) (*Plan, error) {
	p := &Plan{}
	b, err := stored.Convert(stored.Plan, b)
	if err != nil {
		return nil, err
	}
	if err := kinds.DecodeStrictly(b, p); err != nil {
		return nil, fmt.Errorf("decoding a plan: %w", err)
	}
	if p.Schema != Schema {
		return nil, fmt.Errorf("plan has schema %q: want %q", p.Schema, Schema)
	}
	return p, nil
}

// UnmarshalJSON reads a trial. Its error names the trial. Raw JSON in the trial loses its indentation, so that a trial
// that was read equals the one that was written.
func (t *Trial) UnmarshalJSON(b []byte) error {
	type fields Trial // without this method
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return err
	}
	if err := kinds.DecodeStrictly(compact.Bytes(), (*fields)(t)); err != nil {
		var named struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(b, &named) // the error is about the rest of the trial
		return fmt.Errorf("trial %s: %w", named.ID, err)
	}
	return nil
}

// UnmarshalJSON reads a load with its spec in the type of its kind.
func (l *Load) UnmarshalJSON(b []byte) error {
	type fields Load
	err := unmarshal(b, kinds.Load, (*fields)(l), &l.Spec)
	l.ItemHeader = withTimes(l.ItemHeader)
	return err
}

// UnmarshalJSON reads a fault with its spec in the type of its kind.
func (f *Fault) UnmarshalJSON(b []byte) error {
	type fields Fault
	err := unmarshal(b, kinds.Fault, (*fields)(f), &f.Spec)
	f.ItemHeader = withTimes(f.ItemHeader)
	return err
}

// UnmarshalJSON reads a collector with its spec in the type of its kind.
func (c *Collector) UnmarshalJSON(b []byte) error {
	type fields Collector
	err := unmarshal(b, kinds.Collector, (*fields)(c), &c.Spec)
	c.Every = orZero(c.Every)
	return err
}

// UnmarshalJSON reads a check with its spec in the type of its kind, or a group of alternatives.
func (c *Check) UnmarshalJSON(b []byte) error {
	type fields Check
	err := unmarshal(b, kinds.Check, (*fields)(c), &c.Spec)
	c.After = orZero(c.After)
	return err
}

// unmarshal reads an item of a category into fields. spec points to the field with the item's spec, which is read over
// the defaults of the item's kind. A group has no kind.
func unmarshal[T any](b []byte, category string, fields any, spec *T) error {
	var is struct {
		Name, Kind string
		AnyOf      []json.RawMessage
	}
	if err := json.Unmarshal(b, &is); err != nil {
		return err
	}
	if len(is.AnyOf) > 0 {
		return kinds.DecodeStrictly(b, fields)
	}
	v, err := kinds.Make[T](category, is.Kind)
	if err == nil {
		*spec = v // the decoder fills in this value
		if err = kinds.DecodeStrictly(b, fields); err != nil {
			err = fmt.Errorf("decoding it as a %s: %w", is.Kind, err)
		}
	}
	if any(*spec) == nil { // null means the defaults
		*spec = v
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", category, is.Name, err)
	}
	return nil
}
