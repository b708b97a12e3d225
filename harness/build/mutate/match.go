package mutate

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// listedStatements returns the statements that stand in a list, so that others can stand before and after them.
func listedStatements(root ast.Node) map[ast.Stmt]bool {
	out := map[ast.Stmt]bool{}
	ast.Inspect(root, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		}
		for _, s := range list {
			switch s.(type) {
			case *ast.CaseClause, *ast.CommClause: // cases of a switch or select, whose body is also a block
			default:
				out[s] = true
			}
		}
		return true
	})
	return out
}

// usedValues returns the identifiers and selectors (x.name) below root that are neither declared nor assigned where
// they stand. They are read, called or a type.
func usedValues(root ast.Node) map[ast.Expr]bool {
	out, not := map[ast.Expr]bool{}, map[ast.Expr]bool{}
	except := func(list ...ast.Expr) {
		for _, x := range list {
			not[x] = true
		}
	}
	idents := func(list ...*ast.Ident) {
		for _, x := range list {
			not[x] = true
		}
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			idents(n.Name)
		case *ast.ImportSpec:
			return false
		case *ast.FuncDecl:
			idents(n.Name)
		case *ast.TypeSpec:
			idents(n.Name)
		case *ast.ValueSpec:
			idents(n.Names...)
		case *ast.Field:
			idents(n.Names...)
		case *ast.LabeledStmt:
			idents(n.Label)
		case *ast.BranchStmt:
			idents(n.Label)
		case *ast.AssignStmt:
			except(n.Lhs...)
		case *ast.RangeStmt:
			except(n.Key, n.Value)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				idents(key)
			}
		case *ast.SelectorExpr:
			idents(n.Sel)
			out[n] = !not[n]
		case *ast.Ident:
			out[n] = !not[n]
		}
		return true
	})
	return out
}

// matcher decides which nodes match a shape.
type matcher struct {
	f         *File
	tag, name string
	values    map[ast.Expr]bool
}

// match returns the texts of a node that the new code can refer to, or nil if the node doesn't match the shape.
func (m matcher) match(n ast.Node) map[string]string {
	fits, captured := false, map[string]string{}
	body := func(b *ast.BlockStmt) { captured["$body"] = strings.TrimSpace(m.f.text(b.Lbrace+1, b.Rbrace)) }
	switch n := n.(type) {
	case *ast.SelectStmt:
		fits = m.tag == "select" && m.communicates(n, captured)
	case *ast.SendStmt:
		fits = m.tag == "send" && m.sends(n, captured)
	case *ast.ExprStmt, *ast.AssignStmt, *ast.DeclStmt, *ast.DeferStmt, *ast.ReturnStmt:
		fits = m.simple(n.(ast.Stmt), captured)
	case *ast.GoStmt:
		fits = m.tag == "go" && m.mentioned(n) || m.simple(n, captured)
	case *ast.IfStmt:
		fits = m.tag == "if" && m.mentioned(n.Init, n.Cond)
		body(n.Body)
	case *ast.ForStmt:
		fits = m.tag == "for" && m.mentioned(n.Init, n.Cond, n.Post)
		body(n.Body)
	case *ast.RangeStmt:
		fits = m.tag == "for" && m.mentioned(n.Key, n.Value, n.X)
		body(n.Body)
	case *ast.CallExpr:
		fits = m.tag == "call" && named(n.Fun, m.name)
		if fits && len(n.Args) > 0 {
			captured["$args"] = m.f.text(n.Args[0].Pos(), n.Args[len(n.Args)-1].End())
		} else {
			captured["$args"] = ""
		}
	case *ast.Ident, *ast.SelectorExpr:
		x := n.(ast.Expr)
		fits = m.tag == "use" && m.values[x] && named(x, m.name)
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		fits = m.tag == "string" && n.Kind == token.STRING && err == nil && text == m.name
	case *ast.TypeSpec:
		_, isStruct := n.Type.(*ast.StructType)
		fits = m.tag == "struct" && isStruct && n.Name.Name == m.name
	}
	if !fits {
		return nil
	}
	return captured
}

// communicates reports whether one of a select's cases sends on the named channel or receives from it.
func (m matcher) communicates(sel *ast.SelectStmt, captured map[string]string) bool {
	for _, c := range sel.Body.List {
		comm := c.(*ast.CommClause).Comm
		if send, ok := comm.(*ast.SendStmt); ok && m.sends(send, captured) {
			return true
		}
		if r := received(comm); r != nil && r.Op == token.ARROW && named(r.X, m.name) {
			captured["$channel"] = m.f.Text(r.X)
			return true
		}
	}
	return false
}

func (m matcher) sends(s *ast.SendStmt, captured map[string]string) bool {
	captured["$channel"], captured["$value"] = m.f.Text(s.Chan), m.f.Text(s.Value)
	return named(s.Chan, m.name)
}

// simple reports whether a statement without a body matches.
func (m matcher) simple(s ast.Stmt, captured map[string]string) bool {
	switch m.tag {
	case "statement":
		return m.calls(s)
	case "receive":
		if _, declares := s.(*ast.DeclStmt); declares {
			return false
		}
		r := received(s)
		if r == nil || r.Op != token.ARROW || !named(r.X, m.name) {
			return false
		}
		captured["$channel"] = m.f.Text(r.X)
		return true
	case "assign":
		if a, ok := s.(*ast.AssignStmt); ok {
			return slices.ContainsFunc(a.Lhs, func(x ast.Expr) bool { return named(x, m.name) })
		}
		return m.declares(s)
	}
	return false
}

func (m matcher) declares(s ast.Stmt) bool {
	d, ok := s.(*ast.DeclStmt)
	if !ok {
		return false
	}
	for _, spec := range d.Decl.(*ast.GenDecl).Specs {
		if v, ok := spec.(*ast.ValueSpec); ok &&
			slices.ContainsFunc(v.Names, func(id *ast.Ident) bool { return id.Name == m.name }) {
			return true
		}
	}
	return false
}

// calls reports whether a statement calls the named function, not counting calls inside function literals.
func (m matcher) calls(s ast.Stmt) bool {
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && named(call.Fun, m.name)
		_, literal := n.(*ast.FuncLit)
		return !literal
	})
	return found
}

// mentioned reports whether the name occurs in one of the nodes, of which some may be nil.
func (m matcher) mentioned(nodes ...ast.Node) bool {
	found := false
	for _, n := range nodes {
		if n == nil {
			continue
		}
		ast.Inspect(n, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && id.Name == m.name
			return true
		})
	}
	return found
}
