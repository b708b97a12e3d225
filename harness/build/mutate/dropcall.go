package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "dropCall",
		Doc: "Removes a call from a method, so that the called function no longer runs there.\n\n" +
			"In the named method, including its function literals, the mutation finds each statement that is only a " +
			"call of the named function, and removes it with its lines. A call whose result is used, one that is " +
			"deferred or starts a goroutine, and one that shares its line stay as they are. The function itself " +
			"stays, too.",
		Example: `kind: dropCall
sites: 1
spec:
  package: github.com/kube-relapse/relapse/fixtures/fleet-agent/internal/monitor
  type: StatusHandler
  methods: [sync]
  call: dropRelationships
`,
		New: func() Shape { return &DropCall{} },
	})
}

// DropCall removes the statements `f(…)`, `x.f(…)` and `pkg.f(…)` from a method.
type DropCall struct {
	InMethod
	Call string `json:"call"` // name of the called function, method or variable, without the part before its dot
}

// Validate implements Shape.
func (d *DropCall) Validate() error {
	return cmp.Or(d.InMethod.Validate(), missing(
		!token.IsIdentifier(d.Call),
		"no call, or one that is no name: want a function's name without what stands before its dot",
	))
}

// Want implements Shape.
func (d *DropCall) Want() string {
	return fmt.Sprintf("statement that calls %s in %s", d.Call, d.method())
}

// Label implements Shape.
func (d *DropCall) Label() string { return fmt.Sprintf("%s doesn't call %s", d.method(), d.Call) }

// Find implements Shape.
func (d *DropCall) Find(f *File) Found { return d.find(f, d.search) }

// search inspects every call in a method's body, including those in function literals.
func (d *DropCall) search(f *File, body *ast.BlockStmt, out *Found) {
	whole := map[*ast.CallExpr]ast.Stmt{} // calls that are statements of a list
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			statements(n.List, whole)
		case *ast.CaseClause:
			statements(n.Body, whole)
		case *ast.CommClause:
			statements(n.Body, whole)
		case *ast.CallExpr:
			if named(n.Fun, d.Call) {
				d.inspect(f, n, whole[n], out)
			}
		}
		return true
	})
}

// statements records in whole the calls among the statements of a list.
func statements(list []ast.Stmt, whole map[*ast.CallExpr]ast.Stmt) {
	for _, s := range list {
		if x, ok := s.(*ast.ExprStmt); ok {
			if call, ok := ast.Unparen(x.X).(*ast.CallExpr); ok {
				whole[call] = s
			}
		}
	}
}

// inspect records one call as a site or a near miss. s is nil if the call is not a whole statement.
func (d *DropCall) inspect(f *File, call *ast.CallExpr, s ast.Stmt, out *Found) {
	line := f.Line(call.Pos())
	if s == nil {
		out.Near = append(
			out.Near,
			fmt.Sprintf("a call that is no statement by itself at line %d", line),
		)
		return
	}
	f.takeOut(s, "a call", out)
}
