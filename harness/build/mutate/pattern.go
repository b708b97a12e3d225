package mutate

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
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

// shapes says, for each field of a Pattern, what messages call a match, and which parts of the match new code can refer
// to.
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

// tag returns the name of the field that is set, and its value.
func (p Pattern) tag() (tag, name string, err error) {
	set := 0
	for _, f := range []struct{ tag, name string }{
		{"select", p.Select}, {"send", p.Send}, {"receive", p.Receive}, {"statement", p.Statement},
		{"assign", p.Assign}, {"go", p.Go},
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
		return "", "", fmt.Errorf(
			"find %s %q is no name (want one without what stands before its dot)",
			tag,
			name,
		)
	}
	return tag, name, nil
}

// String describes the shape that is looked for.
func (p Pattern) String() string {
	tag, name, err := p.tag()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf(shapes[tag].says, name)
}

// site is one place that matches. A block is the source between two braces, which stay.
type site struct {
	from, to token.Pos
	block    bool
	fields   bool   // of a struct; the formatter can't format them alone
	indent   string // of the code that stands there
	captured map[string]string
}

// indented returns code formatted for the site, without indentation on its first line.
func (s site) indented(code string) (string, error) {
	if s.fields {
		return strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n"+s.indent), nil
	}
	out, err := format.Source([]byte(s.indent + strings.TrimSpace(code)))
	return strings.TrimSpace(string(out)), err
}

// sites returns the places below root that match. near lists near misses.
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
			near = append(
				near,
				fmt.Sprintf(
					"%s at line %d, which stands in no list of statements",
					p,
					f.Line(n.Pos()),
				),
			)
		default:
			captured["$found"] = f.Text(n)
			sites = append(
				sites,
				site{from: n.Pos(), to: n.End(), indent: indentation(f, n), captured: captured},
			)
		}
		return true
	})
	return sites, near
}

// block returns the site between two braces, which belong to n, without the white space at its end.
func block(f *File, open, closing token.Pos, n ast.Node) site {
	inner := strings.TrimRight(f.text(open+1, closing), " \t\n")
	return site{
		from:   open + 1,
		to:     open + 1 + token.Pos(len(inner)),
		block:  true,
		indent: indentation(f, n) + "\t",
	}
}
