package build

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"slices"
	"strings"
)

// A constant's value predicts what a program does only if the program uses the value unchanged: `make(chan T,
// capacity*5)` holds five times the declared number. So each use is checked. The constant has to stand alone as an
// argument, as an initializer or in a comparison, and so does every variable or parameter of the package that takes its
// value. Otherwise the constant's effect counts as unknown, which is always safe.

// asDeclared returns an error if the package changes a constant's value where it uses it. The error has the place and
// the expression.
func (p *constants) asDeclared(name string) error {
	uses, err := p.checkUses(name, nil, 0)
	if err == nil && uses == 0 {
		err = fmt.Errorf(
			"%s is never used in its package, so what stands in its place is not known",
			name,
		)
	}
	return err
}

// maxFollowed is how many variables and parameters a constant's value is followed through.
const maxFollowed = 8

// checkUses checks every use of a name, in a function or in the whole package, and returns the number of uses. depth is
// how many variables the value has come through.
func (p *constants) checkUses(name string, within ast.Node, depth int) (uses int, err error) {
	if depth > maxFollowed {
		return 0, fmt.Errorf("%s: it goes through more than %d variables", name, maxFollowed)
	}
	roots := []ast.Node{within}
	if within == nil {
		roots = nil
		for _, f := range p.files {
			roots = append(roots, f)
		}
	}
	declared := 0
	for _, root := range roots {
		for _, path := range occurrences(root, name) {
			if declares(path, within != nil) {
				if declared++; declared > 1 { // := gives an existing variable another value
					return uses, p.changed(path[len(path)-2])
				}
				continue
			}
			uses++
			if err := p.plain(path, depth); err != nil {
				return uses, err
			}
		}
	}
	return uses, nil
}

// occurrences returns the identifiers of a name below a node that may be a value, each with the path of nodes that
// leads to it.
func occurrences(root ast.Node, name string) (out [][]ast.Node) {
	var path []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		if id, ok := n.(*ast.Ident); ok && id.Name == name && !namesElse(path) {
			out = append(out, slices.Clone(path))
		}
		return true
	})
	return out
}

// namesElse reports whether an identifier names a field, a method, a label or a composite's key, and not a value in the
// package's scope.
func namesElse(path []ast.Node) bool {
	id := path[len(path)-1]
	if len(path) < 2 {
		return false
	}
	switch parent := path[len(path)-2].(type) {
	case *ast.SelectorExpr:
		return parent.Sel == id
	case *ast.KeyValueExpr:
		return parent.Key == id
	case *ast.FuncDecl:
		return parent.Name == id
	case *ast.LabeledStmt, *ast.BranchStmt:
		return true
	case *ast.Field:
		return len(path) > 3 && isStruct(path[len(path)-4])
	}
	return false
}

func isStruct(n ast.Node) bool {
	_, ok := n.(*ast.StructType)
	return ok
}

// declares reports whether an identifier is a declaration of its name: at the top level or, if local, as a parameter, a
// variable's declaration or by :=. The caller treats a second declaration as a change of the value.
func declares(path []ast.Node, local bool) bool {
	id := path[len(path)-1]
	switch parent := path[len(path)-2].(type) {
	case *ast.ValueSpec:
		return slices.Contains(parent.Names, id.(*ast.Ident)) && (local || len(path) == 4) // file, declaration, specification, name
	case *ast.Field:
		return local
	case *ast.AssignStmt:
		return local && parent.Tok == token.DEFINE &&
			slices.Contains(parent.Lhs, ast.Expr(id.(*ast.Ident)))
	}
	return false
}

// plain returns an error unless the identifier at the end of path is used unchanged.
func (p *constants) plain(path []ast.Node, depth int) error {
	node := path[len(path)-1]
	for i := len(path) - 2; i >= 0; i-- {
		switch parent := path[i].(type) {
		case *ast.ParenExpr:
			node = parent
			continue
		case *ast.CallExpr:
			if conversion(parent) {
				node = parent
				continue
			}
			return p.passed(parent, node, path[:i], depth)
		case *ast.KeyValueExpr:
			if key, ok := parent.Key.(*ast.Ident); ok {
				return p.assigned(key.Name, nil)
			}
			return nil
		case *ast.CompositeLit:
			return nil
		case *ast.BinaryExpr:
			if slices.Contains([]token.Token{token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ},
				parent.Op) {
				return nil
			}
			return p.changed(parent)
		case *ast.ValueSpec:
			if at := slices.Index(parent.Values, asExpr(node)); at >= 0 && at < len(parent.Names) {
				return p.follow(parent.Names[at], path, depth)
			}
			return p.changed(parent)
		case *ast.AssignStmt:
			at := slices.Index(parent.Rhs, asExpr(node))
			if at < 0 || len(parent.Lhs) != len(parent.Rhs) || parent.Tok != token.DEFINE &&
				parent.Tok != token.ASSIGN {
				return p.changed(parent)
			}
			switch to := parent.Lhs[at].(type) {
			case *ast.Ident:
				return p.follow(to, path, depth)
			case *ast.SelectorExpr:
				return p.assigned(to.Sel.Name, parent)
			}
			return p.changed(parent)
		default:
			return p.changed(parent)
		}
	}
	return p.changed(node)
}

// passed checks a value that is passed as an argument. A function of this package is followed. The result of any other
// function has to stand alone, because it could be the changed value.
func (p *constants) passed(call *ast.CallExpr, arg ast.Node, above []ast.Node, depth int) error {
	callee, _ := call.Fun.(*ast.Ident)
	switch {
	case arg == call.Fun:
		return p.changed(call)
	case callee != nil && callee.Name == "make":
		return nil
	case callee != nil:
		f := p.function(callee.Name)
		at := slices.Index(call.Args, asExpr(arg))
		param := parameter(f, at)
		if param == nil {
			return p.changed(call)
		}
		_, err := p.checkUses(param.Name, f, depth+1)
		return err
	}
	if len(above) > 0 {
		switch above[len(above)-1].(type) {
		case *ast.BinaryExpr, *ast.CallExpr, *ast.ParenExpr:
			return p.changed(above[len(above)-1])
		}
	}
	return nil
}

// follow checks the uses of a variable or constant that was given the value.
func (p *constants) follow(to *ast.Ident, path []ast.Node, depth int) error {
	if to.Name == "_" {
		return nil
	}
	for _, n := range path {
		if f, ok := n.(*ast.FuncDecl); ok {
			_, err := p.checkUses(to.Name, f, depth+1)
			return err
		}
	}
	_, err := p.checkUses(to.Name, nil, depth+1)
	return err
}

// assigned returns an error if a field that takes a constant is also assigned elsewhere in the package, because its
// value may be changed there. It matches fields by name, so a field of another type counts, too.
func (p *constants) assigned(field string, here ast.Node) (err error) {
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			var to []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				to = n.Lhs
			case *ast.IncDecStmt:
				to = []ast.Expr{n.X}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					to = []ast.Expr{n.X}
				}
			}
			for _, e := range to {
				if s, ok := e.(*ast.SelectorExpr); ok && s.Sel.Name == field && n != here && err == nil {
					err = p.changed(n)
				}
			}
			return true
		})
	}
	return err
}

func (p *constants) changed(n ast.Node) error {
	var text bytes.Buffer
	if f, ok := n.(*ast.Field); ok {
		n = f.Names[0]
	}
	if format.Node(&text, p.fset, n) != nil {
		text.WriteString("this")
	}
	return fmt.Errorf("%s: %s is not the constant as it is declared, so its effect is not known",
		p.fset.PositionFor(n.Pos(), false), strings.Join(strings.Fields(text.String()), " "))
}

// conversion reports whether a call only converts a value to another numeric type.
func conversion(call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return false
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return slices.Contains(integers, f.Name)
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		return ok && x.Name == "time" && f.Sel.Name == "Duration"
	}
	return false
}

// function returns the package's function with this name, or nil.
func (p *constants) function(name string) *ast.FuncDecl {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == name {
				return fn
			}
		}
	}
	return nil
}

// parameter returns the parameter of a function at a position, or nil if it can't be determined.
func parameter(f *ast.FuncDecl, at int) *ast.Ident {
	if f == nil || f.Body == nil || at < 0 {
		return nil
	}
	for _, field := range f.Type.Params.List {
		if _, variadic := field.Type.(*ast.Ellipsis); variadic || len(field.Names) == 0 {
			return nil
		}
		if at < len(field.Names) {
			return field.Names[at]
		}
		at -= len(field.Names)
	}
	return nil
}

func asExpr(n ast.Node) ast.Expr {
	e, _ := n.(ast.Expr)
	return e
}
