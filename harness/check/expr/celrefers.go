package expr

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// calls returns the calls of functions that read evidence, or none if the expression doesn't compile.
func (c *CEL) calls() (out []ast.CallExpr) {
	_, compiled, err := c.compile(nil)
	if err != nil {
		return nil
	}
	ast.PostOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		if _, reads := asks[e.AsCall().FunctionName()]; reads {
			out = append(out, e.AsCall())
		}
	}))
	return out
}

// References names the metrics, logs and resources that the expression asks for by a plain text.
func (c *CEL) References() (out []kinds.Reference) {
	for _, call := range c.calls() {
		to := asks[call.FunctionName()].of
		if to == "" || len(call.Args()) == 0 || call.Args()[0].Kind() != ast.LiteralKind {
			continue
		}
		if name, ok := call.Args()[0].AsLiteral().(types.String); ok && name != "" {
			out = append(
				out,
				kinds.Reference{To: to, Name: string(name), Path: []string{"expression"}},
			)
		}
	}
	return out
}

// Vacuous reports whether the expression is true where each list of evidence is empty, and no metric was read.
func (c *CEL) Vacuous() bool {
	a := &asked{}
	env, compiled, err := c.compile(a)
	if err != nil {
		return false
	}
	program, err := env.Program(compiled, cel.CostLimit(maxCost))
	if err != nil {
		return false
	}
	a.adapter = env.CELTypeAdapter()
	out, _, err := program.Eval(cel.NoVars())
	return err == nil && out == types.True
}

// nothing returns what a function gives where there is nothing for it to read: an empty list, or no value.
func (a *asked) nothing(name string) ref.Val {
	if asks[name].many {
		return a.adapter.NativeToValue([]string{})
	}
	return types.WrapErr(noAnswer{check.Doubt(check.NotRecorded, "there is nothing to read")})
}
