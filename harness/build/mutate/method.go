package mutate

import (
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// InMethod is the spec of a shape that searches one method of a type, including the method's function literals.
type InMethod struct {
	Where
	Type    string   `json:"type"`    // the receiver's type, without the star
	Methods []string `json:"methods"` // the method's name, and its names in other versions
}

// Validate returns an error if the spec lacks what is needed to find the method.
func (m InMethod) Validate() error {
	switch {
	case m.Type == "":
		return errors.New("no receiver type")
	case len(m.Methods) == 0 || slices.Contains(m.Methods, ""):
		return errors.New("no method name")
	}
	return nil
}

// missing returns an error with the text what if lacks is true.
func missing(lacks bool, what string) error {
	if lacks {
		return errors.New(what)
	}
	return nil
}

// Declaration implements Shape.
func (m InMethod) Declaration() string { return "method " + m.method() }

// method returns how messages name the method, with its names in other versions.
func (m InMethod) method() string {
	return fmt.Sprintf("(*%s).%s", m.Type, strings.Join(m.Methods, "|"))
}

// find calls search for the body of each such method in a file.
func (m InMethod) find(f *File, search func(*File, *ast.BlockStmt, *Found)) Found {
	var out Found
	for _, body := range methods(f, m.Type, m.Methods) {
		out.Declared = true
		search(f, body, &out)
	}
	return out
}

// methods returns the bodies of a type's methods that have one of these names.
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

// named reports whether an expression is a variable or field with this name.
func named(x ast.Expr, name string) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return x.Name == name
	case *ast.SelectorExpr:
		return x.Sel.Name == name
	}
	return false
}

// receiver returns the name of a method's receiver type, "" for a function.
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
