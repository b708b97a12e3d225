package mutate

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// methods are the bodies of a type's methods with one of these names.
func methods(f *File, typ string, names []string) []*ast.BlockStmt {
	var out []*ast.BlockStmt
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Body != nil && slices.Contains(names, fn.Name.Name) && receiver(fn) == typ {
			out = append(out, fn.Body)
		}
	}
	return out
}

// methodName is how messages name a method, with the names that it had in other versions.
func methodName(typ string, names []string) string {
	return fmt.Sprintf("(*%s).%s", typ, strings.Join(names, "|"))
}

// named reports whether an expression is the variable or the field of a name.
func named(x ast.Expr, name string) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return x.Name == name
	case *ast.SelectorExpr:
		return x.Sel.Name == name
	}
	return false
}

// receiver is the name of a method's receiver type, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
