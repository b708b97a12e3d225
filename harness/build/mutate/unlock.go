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
		Name: "unlock",
		Doc: "Removes a lock from a method, so that the method does the same work without the lock.\n\n" +
			"In the named method, including its function literals, the mutation finds each `X.Lock()` of the named " +
			"mutex whose next statement is `defer X.Unlock()`, and removes both with their lines. It does the same " +
			"with RLock and RUnlock. A lock that is released in another way, and statements that share a line, stay " +
			"as they are. The mutex itself stays, too, for the other methods that use it.",
		Example: `kind: unlock
sites: 1
versions: ">=1.34.0"
spec:
  package: k8s.io/apiserver/pkg/audit
  type: AuditContext
  methods: [visitEvent]
  mutex: lock
`,
		New: func() Shape { return &Unlock{} },
	})
}

// Unlock removes `m.Lock()` and the `defer m.Unlock()` after it.
type Unlock struct {
	InMethod
	Mutex string `json:"mutex"` // a variable, or a field without the part before its dot
}

// Validate implements Shape.
func (u *Unlock) Validate() error {
	return cmp.Or(u.InMethod.Validate(), missing(
		!token.IsIdentifier(u.Mutex),
		"no mutex, or one that is no name: want a variable or a field without what stands before its dot",
	))
}

// Want implements Shape.
func (u *Unlock) Want() string {
	return fmt.Sprintf("lock of %s with its deferred unlock in %s", u.Mutex, u.method())
}

// Label implements Shape.
func (u *Unlock) Label() string { return fmt.Sprintf("%s doesn't lock %s", u.method(), u.Mutex) }

// Find implements Shape.
func (u *Unlock) Find(f *File) Found { return u.find(f, u.search) }

// search inspects every list of statements in a method's body, including those in function literals.
func (u *Unlock) search(f *File, body *ast.BlockStmt, out *Found) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			u.inspect(f, n.List, out)
		case *ast.CaseClause:
			u.inspect(f, n.Body, out)
		case *ast.CommClause:
			u.inspect(f, n.Body, out)
		}
		return true
	})
}

// inspect sorts the Lock and RLock calls in a list of statements into sites and near misses.
func (u *Unlock) inspect(f *File, list []ast.Stmt, out *Found) {
	for i, s := range list {
		locked, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		by := u.called(locked.X)
		if by != "Lock" && by != "RLock" {
			continue
		}
		line := f.Line(s.Pos())
		var next *ast.DeferStmt
		if i+1 < len(list) {
			next, _ = list[i+1].(*ast.DeferStmt)
		}
		if next == nil || u.called(next.Call) != strings.Replace(by, "Lock", "Unlock", 1) {
			out.Near = append(
				out.Near,
				fmt.Sprintf("a lock without its deferred unlock after it at line %d", line),
			)
			continue
		}
		from, to := wholeLines(f.Src, f.offset(s.Pos()), f.offset(next.End()))
		around := string(f.Src[from:f.offset(s.Pos())]) + string(f.Src[f.offset(next.End()):to])
		if strings.TrimSpace(around) != "" {
			out.Near = append(
				out.Near,
				fmt.Sprintf("a lock that shares its lines with something else at line %d", line),
			)
			continue
		}
		start := s.Pos() - token.Pos(f.offset(s.Pos())-from)
		out.Edits = append(out.Edits, Edit{Pos: start, End: start + token.Pos(to-from)})
	}
}

// called returns which method of the mutex an expression calls, "" if none.
func (u *Unlock) called(x ast.Expr) string {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return ""
	}
	fn, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !named(fn.X, u.Mutex) {
		return ""
	}
	return fn.Sel.Name
}
