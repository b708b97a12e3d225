package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "unselect",
		Doc: "Turns a send that gives up when the channel is full into one that blocks.\n\n" +
			"In the named method, the mutation finds each select that has exactly two cases: a send on the named " +
			"channel, and default. It replaces the select by the plain send and the statements of the send's case. " +
			"The statements under default are removed. A select that its case breaks out of stays as it is.",
		Example: `kind: unselect
sites: 1
versions: ">=1.14.0"
spec:
  package: k8s.io/kubernetes/pkg/kubelet/pleg
  type: GenericPLEG
  methods: [Relist, relist]
  channel: eventChannel
`,
		New: func() Shape { return &Unselect{} },
	})
}

// Unselect replaces `select { case ch <- v: body; default: … }` by `ch <- v; body`.
type Unselect struct {
	InMethod
	Channel string `json:"channel"` // variable or field that the send is on
}

// Validate implements Shape.
func (u *Unselect) Validate() error {
	return cmp.Or(u.InMethod.Validate(), missing(u.Channel == "", "no channel"))
}

// Want implements Shape.
func (u *Unselect) Want() string {
	return fmt.Sprintf("select sending on %s with default in %s", u.Channel, u.method())
}

// Label implements Shape.
func (u *Unselect) Label() string {
	return fmt.Sprintf(
		"%s sends on %s without a default: it blocks when the channel is full",
		u.method(),
		u.Channel,
	)
}

// Find implements Shape.
func (u *Unselect) Find(f *File) Found { return u.find(f, u.search) }

// search inspects every select and every send in a method's body, including those in function literals.
func (u *Unselect) search(f *File, body *ast.BlockStmt, out *Found) {
	inSelect := map[*ast.SendStmt]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			for _, c := range n.Body.List {
				if send, ok := c.(*ast.CommClause).Comm.(*ast.SendStmt); ok {
					inSelect[send] = true
				}
			}
			u.inspect(f, n, out)
		case *ast.SendStmt:
			if u.sends(n) && !inSelect[n] {
				out.Near = append(out.Near, fmt.Sprintf("plain send at line %d", f.Line(n.Pos())))
			}
		}
		return true
	})
}

// inspect records one select as a site, a near miss, or neither.
func (u *Unselect) inspect(f *File, sel *ast.SelectStmt, out *Found) {
	var clause *ast.CommClause
	var send *ast.SendStmt
	var withDefault bool
	for _, c := range sel.Body.List {
		c := c.(*ast.CommClause)
		if c.Comm == nil {
			withDefault = true
		} else if s, ok := c.Comm.(*ast.SendStmt); ok && u.sends(s) {
			clause, send = c, s
		}
	}
	line := f.Line(sel.Pos())
	switch {
	case send == nil:
	case !withDefault:
		out.Near = append(out.Near, fmt.Sprintf("select without default at line %d", line))
	case len(sel.Body.List) != 2:
		out.Near = append(
			out.Near,
			fmt.Sprintf("select with %d cases at line %d", len(sel.Body.List), line),
		)
	case breaks(clause.Body):
		out.Near = append(
			out.Near,
			fmt.Sprintf("select that its case breaks out of at line %d", line),
		)
	default:
		text, err := plainSend(f, send, clause.Body)
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

func (u *Unselect) sends(s *ast.SendStmt) bool { return named(s.Chan, u.Channel) }

// plainSend returns the send, followed by the statements of its case, formatted for the place of the select.
func plainSend(f *File, send *ast.SendStmt, body []ast.Stmt) (string, error) {
	text := f.Text(send)
	if len(body) > 0 {
		stmts := f.text(body[0].Pos(), body[len(body)-1].End())
		if slices.ContainsFunc(body, declares) {
			stmts = "{\n" + stmts + "\n}" // a case is its own scope
		}
		text += "\n" + stmts
	}
	indent := indentation(f, send)
	out, err := format.Source([]byte(indent + text))
	return strings.TrimLeft(string(out), "\t "), err
}

// indentation returns the white space at the start of the line on which a node begins. A case is indented like its
// select.
func indentation(f *File, n ast.Node) string {
	from, _ := wholeLines(f.Src, f.offset(n.Pos()), f.offset(n.Pos()))
	line := string(f.Src[from:])
	return line[:len(line)-len(strings.TrimLeft(line, "\t "))]
}

func declares(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.DeclStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok == token.DEFINE
	}
	return false
}

// breaks reports whether body has an unlabelled break that leaves the select. Without the select it would leave a loop
// instead.
func breaks(body []ast.Stmt) bool {
	found := false
	for _, s := range body {
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.FuncLit:
				return false // a break in there leaves only that statement
			case *ast.BranchStmt:
				found = found || n.Tok == token.BREAK && n.Label == nil
			}
			return true
		})
	}
	return found
}
