package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "dropCase",
		Doc: "Removes one case from a select, so that the select waits only for its other cases.\n\n" +
			"In the named method, including its function literals, the mutation finds each select with exactly one " +
			"case that receives from the named channel, and removes that case with its statements. If only a send is " +
			"left, the plain send replaces the select, unless its case breaks out of the select. The channel stays, " +
			"and so does other code that closes it or waits for it.",
		Example: `kind: dropCase
sites: 1
versions: ">=1.29.0"
spec:
  package: k8s.io/apiserver/pkg/registry/generic/registry
  type: Store
  methods: [DeleteCollection]
  channel: workersExited
`,
		New: func() Shape { return &DropCase{} },
	})
}

// DropCase removes the case `case <-ch: …` from a select. If a send is the only case that remains, it replaces the
// select by the plain send.
type DropCase struct {
	InMethod
	Channel string `json:"channel"` // variable or field that the case receives from
}

// Validate implements Shape.
func (d *DropCase) Validate() error {
	return cmp.Or(d.InMethod.Validate(), missing(d.Channel == "", "no channel"))
}

// Want implements Shape.
func (d *DropCase) Want() string {
	return fmt.Sprintf("select with a case that receives from %s in %s", d.Channel, d.method())
}

// Label implements Shape.
func (d *DropCase) Label() string {
	return fmt.Sprintf(
		"a select of %s has no case for %s: it waits for its other cases alone",
		d.method(),
		d.Channel,
	)
}

// Find implements Shape.
func (d *DropCase) Find(f *File) Found { return d.find(f, d.search) }

// search inspects every select and every receive in a method's body, including those in function literals.
func (d *DropCase) search(f *File, body *ast.BlockStmt, out *Found) {
	inSelect := map[*ast.UnaryExpr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			for _, c := range n.Body.List {
				if r := received(c.(*ast.CommClause).Comm); r != nil {
					inSelect[r] = true
				}
			}
			d.inspect(f, n, out)
		case *ast.UnaryExpr:
			if d.receives(n) && !inSelect[n] {
				out.Near = append(
					out.Near,
					fmt.Sprintf("plain receive at line %d", f.Line(n.Pos())),
				)
			}
		}
		return true
	})
}

// inspect records one select as a site, a near miss, or neither.
func (d *DropCase) inspect(f *File, sel *ast.SelectStmt, out *Found) {
	var dropped, kept []*ast.CommClause
	for _, c := range sel.Body.List {
		c := c.(*ast.CommClause)
		if d.receives(received(c.Comm)) {
			dropped = append(dropped, c)
		} else {
			kept = append(kept, c)
		}
	}
	line := f.Line(sel.Pos())
	switch {
	case len(dropped) == 0:
	case len(dropped) > 1:
		out.Near = append(
			out.Near,
			fmt.Sprintf(
				"select with %d cases that receive from it at line %d",
				len(dropped),
				line,
			),
		)
	case len(kept) == 0:
		out.Near = append(out.Near, fmt.Sprintf("select without another case at line %d", line))
	default:
		text, err := selectWithout(f, sel, dropped[0], kept)
		if err != nil {
			out.Near = append(
				out.Near,
				fmt.Sprintf("select at line %d whose case can't be taken out: %v", line, err),
			)
			return
		}
		out.Edits = append(out.Edits, Edit{Pos: sel.Pos(), End: sel.End(), New: text})
	}
}

// receives reports whether x, which may be nil, is a receive from the channel.
func (d *DropCase) receives(x *ast.UnaryExpr) bool {
	return x != nil && x.Op == token.ARROW && named(x.X, d.Channel)
}

// received returns the receive expression of a case (`<-ch`, `v := <-ch`, `v, ok = <-ch`), or nil for a send or
// default.
func received(comm ast.Stmt) *ast.UnaryExpr {
	var x ast.Expr
	switch s := comm.(type) {
	case *ast.ExprStmt:
		x = s.X
	case *ast.AssignStmt:
		x = s.Rhs[0] // the parser guarantees one
	default:
		return nil
	}
	r, _ := ast.Unparen(x).(*ast.UnaryExpr)
	return r
}

// selectWithout returns the replacement of a select without one case, formatted for its place. That is a plain send if
// only a send remains and nothing breaks out of its case, and otherwise a select with the other cases.
func selectWithout(
	f *File,
	sel *ast.SelectStmt,
	dropped *ast.CommClause,
	kept []*ast.CommClause,
) (string, error) {
	if send, ok := kept[0].Comm.(*ast.SendStmt); ok && len(kept) == 1 && !breaks(kept[0].Body) {
		return plainSend(f, send, kept[0].Body)
	}
	before, after := sel.Body.Lbrace+1, sel.Body.Rbrace
	for _, c := range kept {
		if c.Pos() < dropped.Pos() {
			before = c.End()
		} else {
			after = min(after, c.Pos())
		}
	}
	// A comment behind the case's last statement is removed, too; lines of the cases around it stay.
	from, to := wholeLines(f.Src, f.offset(dropped.Pos()), f.offset(dropped.End()))
	from, to = max(from, f.offset(before)), min(to, f.offset(after))
	text := string(f.Src[f.offset(sel.Pos()):from]) + string(f.Src[to:f.offset(sel.End())])
	out, err := format.Source([]byte(indentation(f, sel) + text))
	return strings.TrimLeft(string(out), "\t "), err
}
