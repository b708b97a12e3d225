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
		Name: "unguard",
		Doc: "Removes a nil check, so that the guarded statements always run.\n\n" +
			"In the named method, including its function literals, the mutation finds each `if X != nil { … }` for " +
			"the named variable, and replaces it by the statements of its body. A check with an else, with a " +
			"statement before its condition, with more than the comparison, or with a body that is empty or declares " +
			"something stays as it is.",
		Example: `kind: unguard
sites: 1
versions: ">=1.26.2"
spec:
  package: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits
  type: CSILimits
  methods: [checkAttachableInlineVolume]
  variable: csiNode
`,
		New: func() Shape { return &Unguard{} },
	})
}

// Unguard replaces `if v != nil { body }` by `body`.
type Unguard struct {
	InMethod
	Variable string `json:"variable"` // variable, or field without the part before its dot, that is compared with nil
}

// Validate implements Shape.
func (u *Unguard) Validate() error {
	return cmp.Or(u.InMethod.Validate(), missing(
		!token.IsIdentifier(u.Variable),
		"no variable, or one that is no name: want a variable or a field without what stands before its dot",
	))
}

// Want implements Shape.
func (u *Unguard) Want() string {
	return fmt.Sprintf("if that only asks whether %s is nil in %s", u.Variable, u.method())
}

// Label implements Shape.
func (u *Unguard) Label() string {
	return fmt.Sprintf("%s doesn't ask whether %s is nil", u.method(), u.Variable)
}

// Find implements Shape.
func (u *Unguard) Find(f *File) Found { return u.find(f, u.search) }

// search inspects every if in a method's body, including those in function literals.
func (u *Unguard) search(f *File, body *ast.BlockStmt, out *Found) {
	elseIf := map[ast.Stmt]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		check, ok := n.(*ast.IfStmt)
		if !ok {
			return true
		}
		elseIf[check.Else] = true
		if !u.compares(check.Cond) {
			return true
		}
		line := f.Line(check.Pos())
		switch {
		case !u.alone(check.Cond):
			out.Near = append(out.Near, fmt.Sprintf("an if that asks for more at line %d", line))
		case check.Init != nil || check.Else != nil || elseIf[check]:
			out.Near = append(
				out.Near,
				fmt.Sprintf("an if with an else or a statement of its own at line %d", line),
			)
		case len(check.Body.List) == 0 || slices.ContainsFunc(check.Body.List, declares):
			out.Near = append(
				out.Near,
				fmt.Sprintf("an if whose body is empty or declares something at line %d", line),
			)
		default:
			out.Edits = append(
				out.Edits,
				Edit{Pos: check.Pos(), End: check.End(), New: bodyOf(f, check)},
			)
		}
		return true
	})
}

// compares reports whether a condition contains the comparison of the variable with nil.
func (u *Unguard) compares(cond ast.Expr) bool {
	found := false
	ast.Inspect(cond, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		found = found || ok && u.alone(x)
		return !found
	})
	return found
}

// alone reports whether an expression is `v != nil`, or `nil != v`.
func (u *Unguard) alone(x ast.Expr) bool {
	b, ok := ast.Unparen(x).(*ast.BinaryExpr)
	return ok && b.Op == token.NEQ &&
		(named(b.X, u.Variable) && named(b.Y, "nil") || named(b.X, "nil") && named(b.Y, u.Variable))
}

// bodyOf returns an if's statements, formatted for the place of the if.
func bodyOf(f *File, check *ast.IfStmt) string {
	list := check.Body.List
	text := indentation(f, check) + f.text(list[0].Pos(), list[len(list)-1].End())
	out, err := format.Source([]byte(text))
	if err != nil { // it was parsed within its file, so it parses alone, too
		return text
	}
	return strings.TrimLeft(string(out), "\t ")
}
