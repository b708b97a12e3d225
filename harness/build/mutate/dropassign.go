package mutate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "dropAssign",
		Doc: "Removes an assignment from a function, so that the variable or field keeps its earlier value.\n\n" +
			"In the named function, including its function literals, the mutation finds each statement that only " +
			"assigns a value to the named variable or field, and removes it with its lines. A declaration, an " +
			"assignment to several variables, one that adds to the earlier value, and one that shares its line stay " +
			"as they are.",
		Example: `kind: dropAssign
sites: 1
versions: ">=1.34.1"
spec:
  package: k8s.io/cloud-provider-openstack/pkg/openstack
  functions: [NewOpenStack]
  assign: Timeout
`,
		New: func() Shape { return &DropAssign{} },
	})
}

// DropAssign removes the statements `v = …` and `x.v = …` from a function.
type DropAssign struct {
	Where
	Functions []string `json:"functions"` // the function's name, and its names in other versions
	Assign    string   `json:"assign"`    // what gets the value: a variable, or a field without the part before its dot
}

// Validate implements Shape.
func (d *DropAssign) Validate() error {
	switch {
	case len(d.Functions) == 0 || slices.Contains(d.Functions, ""):
		return errors.New("no function name")
	case !token.IsIdentifier(d.Assign):
		return errors.New(
			"no assign, or one that is no name: want a variable or a field without what stands before " +
				"its dot",
		)
	}
	return nil
}

func (d *DropAssign) function() string { return strings.Join(d.Functions, "|") }

// Declaration implements Shape.
func (d *DropAssign) Declaration() string { return "function " + d.function() }

// Want implements Shape.
func (d *DropAssign) Want() string {
	return fmt.Sprintf("statement that gives %s a value in %s", d.Assign, d.function())
}

// Label implements Shape.
func (d *DropAssign) Label() string { return fmt.Sprintf("%s doesn't set %s", d.function(), d.Assign) }

// Find implements Shape.
func (d *DropAssign) Find(f *File) (out Found) {
	for _, body := range methods(f, "", d.Functions) {
		out.Declared = true
		listed := listedStatements(body)
		ast.Inspect(body, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok || !slices.ContainsFunc(a.Lhs, func(x ast.Expr) bool { return named(x, d.Assign) }) {
				return true
			}
			if !listed[a] || a.Tok != token.ASSIGN || len(a.Lhs) != 1 {
				out.Near = append(
					out.Near,
					fmt.Sprintf("an assignment that does more at line %d", f.Line(a.Pos())),
				)
			} else {
				f.takeOut(a, "an assignment", &out)
			}
			return true
		})
	}
	return out
}
