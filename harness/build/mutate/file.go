package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// File is one parsed source file.
type File struct {
	Name string // relative to the module's root, with slashes
	Src  []byte
	AST  *ast.File
	fset *token.FileSet
}

func parse(name string, src []byte) (*File, error) {
	fset := token.NewFileSet()
	// Parsing includes the deprecated object resolution. It distinguishes a package's name from a variable's without
	// type-checking the whole module.
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", name, err)
	}
	return &File{Name: name, Src: src, AST: tree, fset: fset}, nil
}

// Line returns the line of a position, from 1. It ignores line directives.
func (f *File) Line(p token.Pos) int { return f.fset.PositionFor(p, false).Line }

// Text returns the source text of a node.
func (f *File) Text(n ast.Node) string { return f.text(n.Pos(), n.End()) }

func (f *File) text(
	from, to token.Pos,
) string {
	return string(f.Src[f.offset(from):f.offset(to)])
}

func (f *File) offset(p token.Pos) int { return f.fset.PositionFor(p, false).Offset }

// rewritten returns the source with edits applied, without the imports that are no longer used because of them.
func (f *File) rewritten(edits []Edit) ([]byte, error) {
	edits = slices.Clone(edits)
	slices.SortFunc(edits, func(a, b Edit) int { return int(b.Pos - a.Pos) })
	src := slices.Clone(f.Src)
	for i, e := range edits {
		if i > 0 && e.End > edits[i-1].Pos {
			return nil, fmt.Errorf(
				"%s: the sites at lines %d and %d lie within each other",
				f.Name,
				f.Line(e.Pos),
				f.Line(edits[i-1].Pos),
			)
		}
		src = slices.Replace(src, f.offset(e.Pos), f.offset(e.End), []byte(e.New)...)
	}
	after, err := parse(f.Name, src)
	if err != nil {
		return nil, fmt.Errorf("the rewritten source does not parse: %w", err)
	}
	return after.withoutImports(f.unusedImports(after))
}

// takeOut adds the edit that removes a statement with its lines. If the statement shares a line with something else,
// takeOut adds a near miss instead.
func (f *File) takeOut(s ast.Stmt, what string, out *Found) {
	from, to := wholeLines(f.Src, f.offset(s.Pos()), f.offset(s.End()))
	before, after := string(f.Src[from:f.offset(s.Pos())]), string(f.Src[f.offset(s.End()):to])
	after = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(after), ";"))
	if strings.TrimSpace(before) != "" || after != "" && !strings.HasPrefix(after, "//") {
		out.Near = append(
			out.Near,
			fmt.Sprintf("%s that shares its line with something else at line %d", what,
				f.Line(s.Pos())),
		)
		return
	}
	start := s.Pos() - token.Pos(f.offset(s.Pos())-from)
	out.Edits = append(out.Edits, Edit{Pos: start, End: start + token.Pos(to-from)})
}
