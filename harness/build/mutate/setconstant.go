package mutate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "setConstant",
		Doc: "Gives a constant of a package another value.\n\n" +
			"The mutation removes no fix: it compresses an incident, so that a test of the harness takes seconds " +
			"instead of minutes. The verdict names it among the things that are modelled.",
		Example: `kind: setConstant
sites: 1
spec:
  package: k8s.io/kubernetes/pkg/kubelet
  name: genericPlegRelistThreshold
  value: time.Second * 12
`,
		New: func() Shape { return &SetConstant{} },
	})
}

// SetConstant replaces the expression of a package-level constant.
type SetConstant struct {
	Where
	Name  string `json:"name"`
	Value string `json:"value"` // a Go expression; the file must already import the packages that it names
}

// Validate implements Shape.
func (c *SetConstant) Validate() error {
	if c.Name == "" {
		return errors.New("no constant name")
	}
	if _, err := parser.ParseExpr(c.Value); err != nil {
		return fmt.Errorf("parsing value %q: %w", c.Value, err)
	}
	return nil
}

// Declaration implements Shape.
func (c *SetConstant) Declaration() string { return "constant " + c.Name }

// Want implements Shape.
func (c *SetConstant) Want() string { return "constant " + c.Name + " with a value of its own" }

// Label implements Shape.
func (c *SetConstant) Label() string {
	return fmt.Sprintf(
		"the constant %s is set to %s instead of the subject's own value",
		c.Name,
		c.Value,
	)
}

// Compresses implements Compressor.
func (c *SetConstant) Compresses() {}

// Find implements Shape.
func (c *SetConstant) Find(f *File) Found {
	var out Found
	for _, d := range f.AST.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST && decl.Tok != token.VAR {
			continue
		}
		for i, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			for j, id := range spec.Names {
				if id.Name == c.Name {
					out.Declared = true
					c.inspect(f, decl, i, j, &out)
				}
			}
		}
	}
	return out
}

// inspect records name j of specification i of a declaration as a site or a near miss.
func (c *SetConstant) inspect(f *File, decl *ast.GenDecl, i, j int, out *Found) {
	spec := decl.Specs[i].(*ast.ValueSpec)
	line := f.Line(spec.Pos())
	repeated := i+1 < len(decl.Specs) && decl.Tok == token.CONST &&
		len(decl.Specs[i+1].(*ast.ValueSpec).Values) == 0
	switch {
	case decl.Tok == token.VAR:
		out.Near = append(out.Near, fmt.Sprintf("a variable at line %d", line))
	case j >= len(spec.Values):
		out.Near = append(
			out.Near,
			fmt.Sprintf("a constant that repeats another's expression at line %d", line),
		)
	case repeated:
		out.Near = append(
			out.Near,
			fmt.Sprintf("a constant whose expression the next one repeats at line %d", line),
		)
	default:
		out.Edits = append(
			out.Edits,
			Edit{Pos: spec.Values[j].Pos(), End: spec.Values[j].End(), New: c.Value},
		)
	}
}
