// Package celobject evaluates expressions in CEL over one JSON object. Checks ask them of recorded objects of the API,
// probes of objects as they are, and webhooks of what they are asked.
package celobject

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxCost limits an evaluation to some milliseconds.
const maxCost = 100_000

// Program is a compiled expression. It may be used by several goroutines.
type Program struct {
	program  cel.Program
	variable string
}

// Compile parses and checks an expression whose value is a bool and that has the object as the variable object. The
// error has line and column of each mistake.
func Compile(expression string) (*Program, error) {
	return compile(expression, "object", "bool", cel.BoolType.IsExactType)
}

// CompileAs does what Compile does for an expression that has the object as another variable.
func CompileAs(variable, expression string) (*Program, error) {
	return compile(expression, variable, "bool", cel.BoolType.IsExactType)
}

// CompileMap does what CompileAs does for an expression whose value is a map, which stands for a JSON object.
func CompileMap(variable, expression string) (*Program, error) {
	return compile(
		expression,
		variable,
		"map",
		func(t *cel.Type) bool { return t.Kind() == types.MapKind },
	)
}

// compile compiles an expression over a variable. fits tells whether the type of its value is the wanted one.
func compile(expression, variable, wanted string, fits func(*cel.Type) bool) (*Program, error) {
	if expression == "" {
		return nil, errors.New("expression is empty")
	}
	env, err := cel.NewEnv(
		cel.Variable(variable, cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		ext.Strings(),
		ext.Lists(),
		cel.OptionalTypes(),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals()),
	)
	if err != nil {
		return nil, err
	}
	compiled, issues := env.Compile(expression)
	var errs []error
	for _, e := range issues.Errors() {
		errs = append(
			errs,
			fmt.Errorf(
				"expression, line %d, column %d: %s",
				e.Location.Line(),
				e.Location.Column()+1,
				e.Message,
			),
		)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if out := compiled.OutputType(); !fits(out) && out != cel.DynType {
		return nil, fmt.Errorf(
			"expression, line 1, column 1: it is a %s (want a %s)",
			out,
			wanted,
		)
	}
	program, err := env.Program(compiled, cel.CostLimit(maxCost))
	if err != nil {
		return nil, err
	}
	return &Program{program, variable}, nil
}

// Holds reports whether the expression is true of an object, which is JSON. It is an error if the expression has no
// value: it reads a field that the object doesn't have, without asking has() first.
func (p *Program) Holds(object []byte) (bool, error) {
	out, err := p.value(object)
	if err != nil {
		return false, err
	}
	if out.Type() != types.BoolType {
		return false, fmt.Errorf("the expression is a %s (want a bool)", out.Type())
	}
	return out == types.True, nil
}

// Map returns the expression's value for an object, both as JSON. It is an error if it has none, as with Holds, or one
// that is no JSON object.
func (p *Program) Map(object []byte) (json.RawMessage, error) {
	out, err := p.value(object)
	if err != nil {
		return nil, err
	}
	if out.Type() != types.MapType {
		return nil, fmt.Errorf("the expression is a %s (want a map)", out.Type())
	}
	native, err := out.ConvertToNative(reflect.TypeFor[*structpb.Struct]())
	if err != nil {
		return nil, fmt.Errorf("the expression is no JSON object: %w", err)
	}
	return json.Marshal(native)
}

func (p *Program) value(object []byte) (ref.Val, error) {
	var o map[string]any
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, err
	}
	out, _, err := p.program.Eval(map[string]any{p.variable: o})
	if err != nil {
		return nil, fmt.Errorf("the expression has no value: %w", err)
	}
	return out, nil
}
