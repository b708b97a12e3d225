// Package celobject evaluates expressions in CEL over one object of the API. Checks ask them of recorded objects, and
// probes of objects as they are.
package celobject

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// maxCost limits an evaluation to some milliseconds.
const maxCost = 100_000

// Program is a compiled expression. It may be used by several goroutines.
type Program struct{ program cel.Program }

// Compile parses and checks an expression whose value is a bool and that has the object as the variable object. The
// error has line and column of each mistake.
func Compile(expression string) (*Program, error) {
	if expression == "" {
		return nil, errors.New("expression is empty")
	}
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.CrossTypeNumericComparisons(true), ext.Strings(), ext.Lists(),
		cel.OptionalTypes(), cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals()))
	if err != nil {
		return nil, err
	}
	compiled, issues := env.Compile(expression)
	var errs []error
	for _, e := range issues.Errors() {
		errs = append(errs, fmt.Errorf("expression, line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if out := compiled.OutputType(); out != cel.BoolType && out != cel.DynType {
		return nil, fmt.Errorf("expression, line 1, column 1: it is a %s (want a bool)", out)
	}
	program, err := env.Program(compiled, cel.CostLimit(maxCost))
	if err != nil {
		return nil, err
	}
	return &Program{program}, nil
}

// Holds reports whether the expression is true of an object, which is JSON. It is an error if the expression has no
// value: it reads a field that the object doesn't have, without asking has() first.
func (p *Program) Holds(object []byte) (bool, error) {
	var o map[string]any
	if err := json.Unmarshal(object, &o); err != nil {
		return false, err
	}
	out, _, err := p.program.Eval(map[string]any{"object": o})
	if err != nil {
		return false, fmt.Errorf("the expression has no value: %w", err)
	}
	if out.Type() != types.BoolType {
		return false, fmt.Errorf("the expression is a %s (want a bool)", out.Type())
	}
	return out == types.True, nil
}
