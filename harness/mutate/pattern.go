package mutate

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Pattern names one syntactic shape. Exactly one field is set; the Doc of the kind rewrite says what each finds.
type Pattern struct {
	Select    string `json:"select,omitempty"`
	Send      string `json:"send,omitempty"`
	Receive   string `json:"receive,omitempty"`
	Statement string `json:"statement,omitempty"`
	Assign    string `json:"assign,omitempty"`
	Go        string `json:"go,omitempty"`
	If        string `json:"if,omitempty"`
	For       string `json:"for,omitempty"`
	Call      string `json:"call,omitempty"`
	Use       string `json:"use,omitempty"`
	Text      string `json:"string,omitempty"`
	Body      bool   `json:"body,omitempty"`
	Struct    string `json:"struct,omitempty"`
}

// shapes say of each field of a Pattern how messages call its find, and what of a site its code can refer to.
var shapes = map[string]struct {
	says       string
	captures   []string
	expression bool
}{
	"select":    {"select on %s", []string{"$found", "$channel", "$value"}, false},
	"send":      {"plain send on %s", []string{"$found", "$channel", "$value"}, false},
	"receive":   {"plain receive from %s", []string{"$found", "$channel"}, false},
	"statement": {"statement that calls %s", []string{"$found"}, false},
	"assign":    {"statement that gives %s a value", []string{"$found"}, false},
	"go":        {"go statement that names %s", []string{"$found"}, false},
	"if":        {"if whose header names %s", []string{"$found", "$body"}, false},
	"for":       {"for whose header names %s", []string{"$found", "$body"}, false},
	"call":      {"call of %s", []string{"$found", "$args"}, true},
	"use":       {"use of %s", []string{"$found"}, true},
	"string":    {"string %q", []string{"$found"}, true},
	"body":      {"body%.0s", []string{"$body"}, false},
	"struct":    {"fields of the struct %s", nil, false},
}

// tag is the field that is set, and its value.
func (p Pattern) tag() (tag, name string, err error) {
	set := 0
	for _, f := range []struct{ tag, name string }{
		{"select", p.Select}, {"send", p.Send}, {"receive", p.Receive}, {"statement", p.Statement}, {"assign", p.Assign}, {"go", p.Go},
		{"if", p.If}, {"for", p.For}, {"call", p.Call}, {"use", p.Use}, {"string", p.Text}, {"struct", p.Struct},
	} {
		if f.name != "" {
			tag, name = f.tag, f.name
			set++
		}
	}
	if p.Body {
		tag = "body"
		set++
	}
	switch {
	case set != 1:
		return "", "", fmt.Errorf("find names %d shapes: want exactly one", set)
	case tag != "string" && tag != "body" && !token.IsIdentifier(name):
		return "", "", fmt.Errorf("find %s %q is no name (want one without what stands before its dot)", tag, name)
	}
	return tag, name, nil
}

// String says what is looked for.
func (p Pattern) String() string {
	tag, name, err := p.tag()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf(shapes[tag].says, name)
}

// site is one place that fits. A block is what lies between braces, which stay.
type site struct {
	from, to token.Pos
	block    bool
	fields   bool   // of a struct, which the formatter does not take by themselves
	indent   string // of code in its place
	captured map[string]string
}

// indented is code formatted for the site, its first line without indentation.
func (s site) indented(code string) (string, error) {
	if s.fields {
		return strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n"+s.indent), nil
	}
	out, err := format.Source([]byte(s.indent + strings.TrimSpace(code)))
	return strings.TrimSpace(string(out)), err
}

// sites are the places below root that fit, and near what looks like one and is not.
func (p Pattern) sites(f *File, root ast.Node) (sites []site, near []string) {
	tag, name, _ := p.tag() // validated before
	if fn, ok := root.(*ast.FuncDecl); ok && tag == "body" {
		s := block(f, fn.Body.Lbrace, fn.Body.Rbrace, fn)
		s.captured = map[string]string{"$body": strings.TrimSpace(f.text(s.from, s.to))}
		return []site{s}, nil
	}
	m := matcher{f: f, tag: tag, name: name, values: usedValues(root)}
	listed := listedStatements(root)
	ast.Inspect(root, func(n ast.Node) bool {
		captured := m.match(n)
		stmt, isStmt := n.(ast.Stmt)
		switch {
		case captured == nil:
		case tag == "struct":
			fields := n.(*ast.TypeSpec).Type.(*ast.StructType).Fields
			s := block(f, fields.Opening, fields.Closing, n)
			s.fields = true
			sites = append(sites, s)
		case isStmt && !listed[stmt]:
			near = append(near, fmt.Sprintf("%s at line %d, which stands in no list of statements", p, f.Line(n.Pos())))
		default:
			captured["$found"] = f.Text(n)
			sites = append(sites, site{from: n.Pos(), to: n.End(), indent: indentation(f, n), captured: captured})
		}
		return true
	})
	return sites, near
}

// block is what lies between two braces, which belong to n, without the white space at its end.
func block(f *File, open, closing token.Pos, n ast.Node) site {
	inner := strings.TrimRight(f.text(open+1, closing), " \t\n")
	return site{from: open + 1, to: open + 1 + token.Pos(len(inner)), block: true, indent: indentation(f, n) + "\t"}
}

// listedStatements are those that stand in a list, where others can stand before and behind them.
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
			case *ast.CaseClause, *ast.CommClause: // of a switch or a select, whose body is a block, too
			default:
				out[s] = true
			}
		}
		return true
	})
	return out
}

// usedValues are the names, with what stands before their dot, that are no declaration and nothing that gets a value: what is left is read, called
// or a type.
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

// matcher tells which nodes are a shape.
type matcher struct {
	f         *File
	tag, name string
	values    map[ast.Expr]bool
}

// match is what a node gives to the code, nil if it is not the shape.
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

// communicates reports whether one of a select's cases sends on the channel or receives from it.
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

// simple judges a statement without a body of its own.
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
		if v, ok := spec.(*ast.ValueSpec); ok && slices.ContainsFunc(v.Names, func(id *ast.Ident) bool { return id.Name == m.name }) {
			return true
		}
	}
	return false
}

// calls reports whether a statement calls the function, other than in a function literal of its own.
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

// mentioned reports whether the name is in one of the nodes, of which some may be nil.
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
