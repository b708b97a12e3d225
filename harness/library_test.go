package harness_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The test that the page shows is one that a module of somebody else compiles.
func TestThePageOfTheLibraryShowsATestThatIsCompiled(t *testing.T) {
	page, err := os.ReadFile("../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```go\n")
	block, _, _ = strings.Cut(block, "```")
	file, err := os.ReadFile("../e2e/outside/scenario/scenario_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(block, "\n"); lines < 8 || lines > 12 {
		t.Errorf("the test in docs/library.md has %d lines, want ten or so:\n%s", lines, block)
	}
	if _, is, _ := strings.Cut(string(file), "\npackage "); "package "+is != block {
		t.Errorf("docs/library.md has\n%s\nand e2e/outside/scenario\npackage %s", block, is)
	}
}

// Each function of the packages for other people's tests is called in an example, so that go vet compiles the call and
// go doc shows it, and docs/library.md names it.
func TestEveryFunctionOfTheLibraryHasAnExample(t *testing.T) {
	page, err := os.ReadFile("../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"watch", "e2eframework", "relapsetest"} {
		files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var functions, called []string
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case filepath.Base(file) == "example_test.go":
				called = callsOf(f, pkg)
			case !strings.HasSuffix(file, "_test.go"):
				for _, d := range f.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() {
						functions = append(functions, fn.Name.Name)
					}
				}
			}
		}
		if len(functions) < 2 {
			t.Errorf("%s exports %q", pkg, functions)
		}
		for _, name := range functions {
			if !slices.Contains(called, name) {
				t.Errorf("no example of %s calls %s", pkg, name)
			}
			if !strings.Contains(string(page), name+"(") {
				t.Errorf("docs/library.md doesn't name %s of %s", name, pkg)
			}
		}
	}
}

// callsOf returns the names of a package's functions that the examples in a file call.
func callsOf(f *ast.File, pkg string) (out []string) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Example") {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok {
				if of, ok := s.X.(*ast.Ident); ok && of.Name == pkg {
					out = append(out, s.Sel.Name)
				}
			}
			return true
		})
	}
	return out
}
