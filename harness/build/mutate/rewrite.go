package mutate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Mutation, kinds.Kind[Shape]{
		Name: "rewrite",
		Doc: "Puts new code in place of a syntactic shape, before it or after it.\n\n" +
			"Candidates with a known answer are made with this mutation. find names one shape. The mutation looks " +
			"for the shape in the named methods and functions, including their function literals, or in the whole " +
			"package:\n\n" +
			"  select: CH       a select with a case that sends on CH or receives from CH\n" +
			"  send: CH         a whole statement that sends on CH\n" +
			"  receive: CH      a whole statement that receives from CH\n" +
			"  statement: F     a simple statement that calls F; calls in its function literals don't count\n" +
			"  assign: X        a statement that assigns a value to X, or declares X\n" +
			"  go: X            a go statement that names X\n" +
			"  if: X, for: X    an if, or a for, whose header names X\n" +
			"  call: F          a call of F, an expression\n" +
			"  use: X           X where its value is used, an expression\n" +
			"  string: TEXT     a string literal of this value, an expression\n" +
			"  body: true       the body of the methods and functions; before adds code first, after last\n" +
			"  struct: T        the fields of the struct type T; before adds fields first, after last\n\n" +
			"CH, F and X are names without the part before their dot. An expression can only be replaced. In the " +
			"code, $found stands for the source of the match. $channel is the channel of a select, send or receive, " +
			"$value the value that a select or send sends, $args the arguments of a call, and $body the statements " +
			"of an if, a for or a body. So the code names the parts that it keeps and never repeats them.",
		Example: `kind: rewrite
sites: 1
spec:
  package: k8s.io/kubernetes/pkg/kubelet/pleg
  type: GenericPLEG
  methods: [Relist]
  find: {select: eventChannel}
  imports: [time]
  replace: |
    select {
    case $channel <- $value:
    case <-time.After(10 * time.Second):
    }
`,
		New: func() Shape { return &Replacement{} },
	})
}

// Replacement puts Go code in place of each site, before it or after it.
type Replacement struct {
	Where
	Type      string   `json:"type,omitempty"`      // the receiver's type of the methods, without the star
	Methods   []string `json:"methods,omitempty"`   // of Type
	Functions []string `json:"functions,omitempty"` // of the package; if both are empty, all of it is searched
	Pattern   Pattern  `json:"find"`
	Replace   string   `json:"replace,omitempty"` // one of these three: statements, or code for an expression
	Before    string   `json:"before,omitempty"`
	After     string   `json:"after,omitempty"`
	Imports   []string `json:"imports,omitempty"` // imports of the code: PATH, or NAME PATH
	Does      string   `json:"does,omitempty"`    // what the subject does with it, in words
}

// references matches the names in the code that stand for parts of the source.
var references = regexp.MustCompile(`\$[a-z]+`)

// Validate implements Shape.
func (r *Replacement) Validate() error {
	tag, _, err := r.Pattern.tag()
	if err != nil {
		return err
	}
	mode, code, err := r.code()
	if err != nil {
		return err
	}
	switch {
	case r.Type == "" && len(r.Methods) > 0:
		return errors.New("methods without their receiver's type")
	case r.Type != "" && len(r.Methods) == 0:
		return errors.New("a receiver's type without methods")
	case slices.Contains(slices.Concat(r.Methods, r.Functions), ""):
		return errors.New("no method or function name")
	case tag == "body" && len(r.Methods)+len(r.Functions) == 0:
		return errors.New("find has body, which belongs to methods or functions: want their names")
	case tag == "struct" && len(r.Methods)+len(r.Functions) > 0:
		return errors.New("find has struct, which is declared by the package: want neither methods nor functions")
	case shapes[tag].expression && mode != "replace":
		return fmt.Errorf("find has %s, an expression, which is only replaced", tag)
	case tag == "struct" && mode == "replace":
		return errors.New("find has struct, whose fields stay: want before or after")
	}
	if unknown := strange(code, shapes[tag].captures); unknown != "" {
		return fmt.Errorf(
			"%s has %s, which %s does not give (want one of %s)",
			mode,
			unknown,
			tag,
			strings.Join(shapes[tag].captures, ", "),
		)
	}
	text := references.ReplaceAllString(code, "x")
	if tag == "struct" {
		text = "type x struct {\n" + text + "\n}"
	}
	if _, err := format.Source([]byte(text)); err != nil {
		return fmt.Errorf("parsing %s: %w", mode, err)
	}
	for _, i := range r.Imports {
		if _, _, err := splitImport(i); err != nil {
			return err
		}
	}
	return nil
}

// code returns the code, and which of replace, before and after it is.
func (r *Replacement) code() (mode, text string, err error) {
	all := map[string]string{"replace": r.Replace, "before": r.Before, "after": r.After}
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	if len(all) != 1 {
		return "", "", errors.New("want exactly one of replace, before and after")
	}
	for mode, text = range all {
	}
	return mode, text, nil
}

// Declaration implements Shape.
func (r *Replacement) Declaration() string {
	if tag, name, _ := r.Pattern.tag(); tag == "struct" {
		return "type " + name
	}
	if len(r.Methods)+len(r.Functions) == 0 {
		return "package " + r.Package
	}
	return r.describeScope()
}

// describeScope describes where the shape is looked for.
func (r *Replacement) describeScope() string {
	var out []string
	if len(r.Methods) > 0 {
		out = append(out, "method "+InMethod{Type: r.Type, Methods: r.Methods}.method())
	}
	if len(r.Functions) > 0 {
		out = append(out, "function "+strings.Join(r.Functions, "|"))
	}
	if len(out) == 0 {
		return "package " + r.Package
	}
	return strings.Join(out, " or ")
}

// Want implements Shape.
func (r *Replacement) Want() string { return r.Pattern.String() + " in " + r.describeScope() }

// Label implements Shape.
func (r *Replacement) Label() string {
	if r.Does != "" {
		return r.Does
	}
	mode, _, err := r.code()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf(
		"%s: code of ours %s",
		r.Want(),
		map[string]string{"replace": "in its place", "before": "before it", "after": "behind it"}[mode],
	)
}

// Describe returns the plan's description of the mutation, without the code.
func (r *Replacement) Describe() string { return r.Label() }

// AddImports implements Importer.
func (r *Replacement) AddImports() []string { return r.Imports }

// Find implements Shape.
func (r *Replacement) Find(f *File) Found {
	var out Found
	for _, root := range r.roots(f) {
		out.Declared = true
		sites, near := r.Pattern.sites(f, root)
		out.Near = append(out.Near, near...)
		for _, s := range sites {
			e, err := r.edit(s)
			if err != nil {
				out.Near = append(
					out.Near,
					fmt.Sprintf(
						"%s at line %d, where the code does not fit: %v",
						r.Pattern,
						f.Line(s.from),
						err,
					),
				)
				continue
			}
			out.Edits = append(out.Edits, e)
		}
	}
	return out
}

// roots returns the parts of a file that are searched.
func (r *Replacement) roots(f *File) []ast.Node {
	if len(r.Methods)+len(r.Functions) == 0 {
		return []ast.Node{f.AST}
	}
	var out []ast.Node
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if fn.Recv == nil && slices.Contains(r.Functions, fn.Name.Name) || r.Type != "" && receiver(fn) == r.Type &&
			slices.Contains(r.Methods, fn.Name.Name) {
			out = append(out, fn)
		}
	}
	return out
}

// edit returns the edit for one site.
func (r *Replacement) edit(s site) (Edit, error) {
	mode, code, err := r.code()
	if err != nil {
		return Edit{}, err
	}
	if missing := strange(code, slices.Collect(maps.Keys(s.captured))); missing != "" {
		return Edit{}, fmt.Errorf("it has no %s", missing)
	}
	text := references.ReplaceAllStringFunc(
		code,
		func(name string) string { return s.captured[name] },
	)
	if text, err = s.indented(text); err != nil {
		return Edit{}, err
	}
	switch {
	case s.block && mode == "before":
		return Edit{Pos: s.from, End: s.from, New: "\n" + s.indent + text}, nil
	case s.block && mode == "replace":
		return Edit{Pos: s.from, End: s.to, New: "\n" + s.indent + text}, nil
	case mode == "before":
		return Edit{Pos: s.from, End: s.from, New: text + "\n" + s.indent}, nil
	case mode == "after":
		return Edit{Pos: s.to, End: s.to, New: "\n" + s.indent + text}, nil
	}
	return Edit{Pos: s.from, End: s.to, New: text}, nil
}

// strange returns the first reference in the code that is not among the known ones, "" if there is none.
func strange(code string, known []string) string {
	for _, name := range references.FindAllString(code, -1) {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}
