package mutate

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unusedImports returns the imports of f that f uses and that after, its rewritten form, no longer uses.
//
// An import without a name is assumed to be named like the last element of its path. If that is wrong the import stays,
// and the compiler rejects the file.
func (f *File) unusedImports(after *File) []string {
	was, is := f.qualifiers(), after.qualifiers()
	var out []string
	for _, spec := range f.AST.Imports {
		if name := importName(spec); was[name] && !is[name] {
			out = append(out, spec.Path.Value)
		}
	}
	return out
}

// qualifiers returns the set of names used as X in X.Sel that are declared nowhere in the file. The file's packages are
// among them.
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

// withoutImports returns the file's source without the lines of the given imports (quoted paths).
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

// wholeLines extends a range of bytes to whole lines.
func wholeLines(src []byte, from, to int) (int, int) {
	for from > 0 && src[from-1] != '\n' {
		from--
	}
	for to < len(src) && src[to] != '\n' {
		to++
	}
	return from, min(to+1, len(src))
}

// splitImport splits an import of a mutation, which is PATH or NAME PATH.
func splitImport(s string) (name, path string, err error) {
	words := strings.Fields(s)
	switch {
	case len(words) == 1:
		return "", words[0], nil
	case len(words) == 2 && token.IsIdentifier(words[0]):
		return words[0], words[1], nil
	}
	return "", "", fmt.Errorf("import %q is neither PATH nor NAME PATH", s)
}

// withImports returns a file's source with those of imports added that it lacks.
func withImports(name string, src []byte, imports []string) ([]byte, error) {
	f, err := parse(name, src)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	at := f.AST.Name.End()
	for _, spec := range f.AST.Imports {
		has[importName(spec)+" "+spec.Path.Value] = true
	}
	for _, d := range f.AST.Decls {
		if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.IMPORT {
			at = decl.End()
		}
	}
	var lines strings.Builder
	for _, i := range imports {
		as, path, err := splitImport(i)
		if err != nil {
			return nil, err
		}
		spec := &ast.ImportSpec{
			Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(path)},
		}
		if as != "" {
			spec.Name = ast.NewIdent(as)
		}
		if !has[importName(spec)+" "+spec.Path.Value] {
			lines.WriteString("\nimport " + strings.TrimSpace(as+" "+spec.Path.Value))
		}
	}
	if lines.Len() == 0 {
		return src, nil
	}
	return slices.Insert(slices.Clone(src), f.offset(at), []byte("\n"+lines.String())...), nil
}
