package question

import (
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Quantity is a number or a duration in a check's spec, given directly or by the name of one of the subject's
// constants.
type Quantity struct {
	Constant string   `json:"constant,omitempty" refers:"constant" jsonschema:"the name of a constant that the scenario declares"`
	Times    *float64 `json:"times,omitempty" jsonschema:"factor by which the constant is multiplied (above 0; default 1)"`
	Number   *float64 `json:"number,omitempty" jsonschema:"a plain number, instead of a constant"`
	Duration string   `json:"duration,omitempty" jsonschema:"a duration with its unit, instead of a constant"`
}

// Value returns the quantity as a float: a plain number, or nanoseconds for durations.
func (q Quantity) Value(v bundle.View, arm string) (float64, error) {
	switch {
	case q.Constant != "":
		c, ok := v.Constant(arm, q.Constant)
		if !ok {
			c, ok = bundle.Assumed(v.World(), arm, q.Constant)
		}
		if !ok {
			return 0, fmt.Errorf("the constant %s of %s is not known", q.Constant, arm)
		}
		if q.Times != nil {
			return float64(c) * *q.Times, nil
		}
		return float64(c), nil
	case q.Number != nil:
		return *q.Number, nil
	case q.Duration != "":
		d, err := time.ParseDuration(q.Duration)
		return float64(d), err
	}
	return 0, fmt.Errorf("neither constant, number nor duration is given")
}

// Assumed returns a note for the reader if an assumed value stands for an unknown constant, "" otherwise.
func (q Quantity) Assumed(v bundle.View, arm string) string {
	_, known := v.Constant(arm, q.Constant)
	n, assumed := bundle.Assumed(v.World(), arm, q.Constant)
	if q.Constant == "" || known || !assumed {
		return ""
	}
	as := fmt.Sprint(n)
	if n >= int64(time.Second) { // no count is that large
		as = time.Duration(n).String()
	}
	return fmt.Sprintf(" (the %s of %s is not known: %s is assumed)", q.Constant, arm, as)
}

// Validate refuses a quantity that is given twice or not at all, or in the wrong unit: a number would be read as
// nanoseconds. A nil quantity is valid.
func (q *Quantity) Validate(field string, asDuration bool) error {
	switch {
	case q == nil:
		return nil
	case q.Constant != "" && q.Duration != "":
		return fmt.Errorf("%s has a constant and a duration (want one of them)", field)
	case q.Constant != "" && q.Times != nil && *q.Times <= 0:
		return fmt.Errorf("%s.times is %g (want above 0)", field, *q.Times)
	case q.Constant != "":
		return nil
	case q.Times != nil:
		return fmt.Errorf("%s.times multiplies no constant", field)
	case asDuration && q.Number != nil:
		return fmt.Errorf(
			"%s is a plain number (want a duration with its unit, or a constant)",
			field,
		)
	case !asDuration && q.Duration != "":
		return fmt.Errorf(
			"%s is a duration (want a number in the metric's own unit, or a constant)",
			field,
		)
	case asDuration:
		return Positive(field, q.Duration)
	case q.Number == nil:
		return fmt.Errorf("%s has neither a constant nor a number", field)
	}
	return nil
}
