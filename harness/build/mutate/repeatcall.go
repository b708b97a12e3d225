package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "repeatCall",
		Doc: "Repeats a call in a loop, so that a result that was computed once is computed for every element, " +
			"too.\n\n" +
			"In the named method, the mutation takes the one assignment of a call of the function call. It repeats " +
			"that call, and drops the results, in each loop over the variable over: at the beginning of each `if` of " +
			"the loop whose condition calls the function where. The assignment stays as it is. If the method has " +
			"several such assignments, there is no site.",
		Example: `kind: repeatCall
sites: 1
versions: ">=1.19.0"
spec:
  package: k8s.io/kubernetes/pkg/proxy/iptables
  type: Proxier
  methods: [syncProxyRules]
  call: GetNodeIPs
  over: svcPortMap
  where: NodePort
`,
		New: func() Shape { return &RepeatCall{} },
	})
}

// RepeatCall repeats an assigned call in each `for … range over { if where() … { } }`.
type RepeatCall struct {
	InMethod
	Call  string `json:"call"`  // the function or method whose call is repeated
	Over  string `json:"over"`  // what the loop ranges over: a variable, or a field without the part before its dot
	Where string `json:"where"` // the function or method that the condition calls
}

// Validate implements Shape.
func (r *RepeatCall) Validate() error {
	return cmp.Or(r.InMethod.Validate(), missing(!token.IsIdentifier(r.Call) || !token.IsIdentifier(r.Over) ||
		!token.IsIdentifier(r.Where), "no call, over or where, or one that is no name: want names without what stands "+
		"before their dot"))
}

// Want implements Shape.
func (r *RepeatCall) Want() string {
	return fmt.Sprintf(
		"if that asks %s() in a loop over %s, beside one assigned call of %s, in %s",
		r.Where,
		r.Over,
		r.Call,
		r.method(),
	)
}

// Label implements Shape.
func (r *RepeatCall) Label() string {
	return fmt.Sprintf(
		"%s calls %s again for each of %s with a %s",
		r.method(),
		r.Call,
		r.Over,
		r.Where,
	)
}

// Find implements Shape.
func (r *RepeatCall) Find(f *File) Found { return r.find(f, r.search) }

// search finds the call, and then the places where to repeat it.
func (r *RepeatCall) search(f *File, body *ast.BlockStmt, out *Found) {
	var assigned []*ast.AssignStmt
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Rhs) == 1 && called(a.Rhs[0], r.Call) {
			assigned = append(assigned, a)
		}
		return true
	})
	if len(assigned) != 1 {
		for _, a := range assigned {
			out.Near = append(
				out.Near,
				fmt.Sprintf(
					"one of %d assigned calls at line %d",
					len(assigned),
					f.Line(a.Pos()),
				),
			)
		}
		return
	}
	again := strings.Repeat("_, ", len(assigned[0].Lhs)-1) + "_ = " + f.Text(assigned[0].Rhs[0])
	ast.Inspect(body, func(n ast.Node) bool {
		loop, ok := n.(*ast.RangeStmt)
		if !ok || !named(loop.X, r.Over) {
			return true
		}
		found := false
		ast.Inspect(loop.Body, func(n ast.Node) bool {
			check, ok := n.(*ast.IfStmt)
			if ok && asks(check.Cond, r.Where) {
				found = true
				at := check.Body.Lbrace + 1
				out.Edits = append(out.Edits, Edit{Pos: at, End: at,
					New: "\n" + indentation(f, check) + "\t" + again})
			}
			return true
		})
		if !found {
			out.Near = append(
				out.Near,
				fmt.Sprintf("a loop over %s that asks no %s() at line %d", r.Over, r.Where,
					f.Line(loop.Pos())),
			)
		}
		return true
	})
}

// called reports whether an expression is a call of the function or method with this name.
func called(x ast.Expr, name string) bool {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok && named(call.Fun, name)
}

// asks reports whether a condition calls the function or method with this name.
func asks(cond ast.Expr, name string) bool {
	found := false
	ast.Inspect(cond, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		found = found || ok && called(x, name)
		return !found
	})
	return found
}
