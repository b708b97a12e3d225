package harness_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Through what it imports, check reaches no cluster client at all. verdict and judge reach one by way of plan's types
// only, which name the kinds of collectors and faults.
func TestJudgingReachesNoClient(t *testing.T) {
	all := listPackages(t)
	from := map[string][]string{"harness/match": nil, "harness/verdict": {"harness/plan"}, "harness/judge": {"harness/plan"}} // -> packages that are not looked behind
	for name := range all {
		if below(name, "harness/check") {
			from[name] = nil
		}
	}
	for name, past := range from {
		for _, client := range clients {
			if way := wayTo(all, name, client, past); way != nil {
				t.Errorf("%s reaches %s: a verdict is a function of the bundle alone", strings.Join(way, " -> "), client)
			}
		}
	}
	if wayTo(all, "harness/evidence/collectors", "k8s.io/client-go", nil) == nil {
		t.Error("harness/evidence/collectors reaches no client-go: the search finds nothing")
	}
}

// In a scenario's folder checks lie beside faults and collectors, which need a client.
func TestFilesOfChecksImportNoClient(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*/kinds/*.go")
	if err != nil {
		t.Fatal(err)
	}
	refused := slices.Concat(clients, []string{"harness/cluster", "harness/inject", "harness/evidence/capture", "harness/evidence/collectors"})
	checks := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") || !strings.Contains(string(src), "check.Register(") {
			continue
		}
		checks++
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if imported := short(strings.Trim(i.Path.Value, `"`)); oneBelow(imported, refused) {
				t.Errorf("%s imports %s: a verdict is a function of the bundle alone", file, imported)
			}
		}
	}
	if checks == 0 {
		t.Error("no file of a scenario registers a check")
	}
}

// wayTo finds a chain of imports from a package to one below target.
func wayTo(all map[string]listed, from, target string, past []string) []string {
	seen := map[string]bool{}
	var walk func(string) []string
	walk = func(name string) []string {
		if below(name, target) {
			return []string{name}
		}
		if seen[name] || slices.Contains(past, name) {
			return nil
		}
		seen[name] = true
		for _, imported := range all[name].Imports {
			if way := walk(short(imported)); way != nil {
				return append([]string{name}, way...)
			}
		}
		return nil
	}
	return walk(from)
}
