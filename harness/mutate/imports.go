package mutate

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lost lists the imports of f that f uses and after, its rewritten form, uses no more.
//
// An import without a name of its own is taken to be named like its path's last element. Where that guess is wrong the import stays,
// and the compiler refuses the file by name.
func (f *File) lost(after *File) []string {
	was, is := f.qualifiers(), after.qualifiers()
	var out []string
	for _, spec := range f.AST.Imports {
		if name := importName(spec); was[name] && !is[name] {
			out = append(out, spec.Path.Value)
		}
	}
	return out
}

// qualifiers is the set of names used as X in X.Sel that are declared nowhere in the file: its packages, among others.
func (f *File) qualifiers() map[string]bool {
	used := map[string]bool{}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil {
				used[x.Name] = true
			}
		}
		return true
	})
	return used
}

var (
	majorElement = regexp.MustCompile(`^v[0-9]+$`)
	majorSuffix  = regexp.MustCompile(`\.v[0-9]+$`)
)

func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	base := path.Base(p)
	if majorElement.MatchString(base) && strings.Contains(p, "/") {
		base = path.Base(path.Dir(p))
	}
	return majorSuffix.ReplaceAllString(base, "")
}

// withoutImports is the file's source without the named imports (quoted paths), each with its line.
func (f *File) withoutImports(paths []string) ([]byte, error) {
	src := slices.Clone(f.Src)
	for i := len(f.AST.Decls) - 1; i >= 0; i-- {
		decl, ok := f.AST.Decls[i].(*ast.GenDecl)
		if !ok {
			continue
		}
		for j := len(decl.Specs) - 1; j >= 0; j-- {
			spec, ok := decl.Specs[j].(*ast.ImportSpec)
			if !ok || !slices.Contains(paths, spec.Path.Value) {
				continue
			}
			from, to := f.offset(spec.Pos()), f.offset(spec.End())
			if !decl.Lparen.IsValid() {
				from = f.offset(decl.Pos())
			}
			from, to = wholeLines(src, from, to)
			src = slices.Delete(src, from, to)
		}
	}
	if _, err := parse(f.Name, src); err != nil {
		return nil, fmt.Errorf("without imports %s: %w", strings.Join(paths, ", "), err)
	}
	return src, nil
}

// wholeLines widens a range of bytes to the lines that it touches.
func wholeLines(src []byte, from, to int) (int, int) {
	for from > 0 && src[from-1] != '\n' {
		from--
	}
	for to < len(src) && src[to] != '\n' {
		to++
	}
	return from, min(to+1, len(src))
}
