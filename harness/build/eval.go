package build

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"time"
)

// units lists the constants of package time in which durations are written.
var units = map[string]time.Duration{
	"Nanosecond":  time.Nanosecond,
	"Microsecond": time.Microsecond,
	"Millisecond": time.Millisecond,
	"Second":      time.Second,
	"Minute":      time.Minute,
	"Hour":        time.Hour,
}

// integers lists the types whose conversion keeps an integer's value or fails.
var integers = []string{"int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64"}

// eval evaluates an expression of declaration d by Go's rules for constants.
func (p *constants) eval(d declaration, e ast.Expr, stack []string) (value, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return p.eval(d, e.X, stack)
	case *ast.BasicLit:
		if v := constant.MakeFromLiteral(e.Value, e.Kind, 0); v.Kind() == constant.Int || v.Kind() == constant.Float {
			return value{Value: v}, nil
		}
	case *ast.Ident:
		if e.Name == "iota" {
			return value{Value: constant.MakeInt64(int64(d.iota))}, nil
		}
		return p.named(e.Name, stack)
	case *ast.SelectorExpr:
		if u, ok := units[e.Sel.Name]; ok && d.isTime(e.X) {
			return value{Value: constant.MakeInt64(int64(u)), duration: true}, nil
		}
	case *ast.UnaryExpr:
		x, err := p.eval(d, e.X, stack)
		if err != nil {
			return value{}, err
		}
		if e.Op == token.SUB || e.Op == token.ADD {
			return value{Value: constant.UnaryOp(e.Op, x.Value, 0), duration: x.duration}, nil
		}
	case *ast.BinaryExpr:
		return p.binary(d, e, stack)
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			x, err := p.eval(d, e.Args[0], stack)
			if err != nil {
				return value{}, err
			}
			return p.convert(d, e.Fun, x)
		}
	}
	return value{}, fmt.Errorf("%s: %w", printed(e), errUnsupported)
}

func (p *constants) binary(d declaration, e *ast.BinaryExpr, stack []string) (value, error) {
	x, err := p.eval(d, e.X, stack)
	if err != nil {
		return value{}, err
	}
	y, err := p.eval(d, e.Y, stack)
	if err != nil {
		return value{}, err
	}
	duration := x.duration || y.duration
	if duration { // a typed operand turns the other into an integer
		x.Value, y.Value = constant.ToInt(x.Value), constant.ToInt(y.Value)
	}
	bothInts := x.Kind() == constant.Int && y.Kind() == constant.Int
	op := e.Op
	switch op {
	case token.ADD, token.SUB, token.MUL:
	case token.SHL, token.SHR:
		n, exact := constant.Uint64Val(constant.ToInt(y.Value))
		if !bothInts || !exact || n > 63 {
			return value{}, fmt.Errorf("%s: %w", printed(e), errUnsupported)
		}
		return value{Value: constant.Shift(x.Value, op, uint(n)), duration: x.duration}, nil
	case token.QUO, token.REM:
		if constant.Sign(y.Value) == 0 {
			return value{}, fmt.Errorf("%s divides by zero", printed(e))
		}
		if op == token.QUO && bothInts {
			op = token.QUO_ASSIGN // go/constant's name for integer division
		}
	default:
		return value{}, fmt.Errorf("%s: %w", printed(e), errUnsupported)
	}
	if x.Kind() == constant.Unknown || y.Kind() == constant.Unknown || op == token.REM && !bothInts {
		return value{}, fmt.Errorf("%s: %w", printed(e), errUnsupported)
	}
	return value{Value: constant.BinaryOp(x.Value, op, y.Value), duration: duration}, nil
}

// convert converts a value to the type that an expression names: an integer type or time.Duration.
func (p *constants) convert(d declaration, typ ast.Expr, v value) (value, error) {
	switch t := typ.(type) {
	case *ast.ParenExpr:
		return p.convert(d, t.X, v)
	case *ast.Ident:
		if slices.Contains(integers, t.Name) {
			return value{Value: constant.ToInt(v.Value)}, nil
		}
	case *ast.SelectorExpr:
		if t.Sel.Name == "Duration" && d.isTime(t.X) {
			return value{Value: constant.ToInt(v.Value), duration: true}, nil
		}
	}
	return value{}, fmt.Errorf("type %s: %w", printed(typ), errUnsupported)
}

// isTime reports whether an expression is the standard library's package time, by whatever name its file imports it.
func (d declaration) isTime(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && d.imports[id.Name] == "time"
}

func printed(e ast.Expr) string { return types.ExprString(e) }
