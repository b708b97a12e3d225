package build_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// Go compiles what a link in a package's folder leads to, so a copy has it, too, and a change of it is another build.
func TestLinkedFilesAreInTheCopyOfATree(t *testing.T) {
	dir, elsewhere := layDown(t, map[string]string{
		"go.mod":              "module example.org/tree\n\ngo 1.24\n",
		"cmd/subject/main.go": "package main\n\nvar said = \"nothing\"\n\nfunc main() { println(said) }\n",
	}), filepath.Join(t.TempDir(), "init.go")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "cmd/subject/init.go")); err != nil {
		t.Fatal(err)
	}
	b := newBuilder(t, t.TempDir())
	src := build.Source{Module: "example.org/tree", Version: "v0.0.0", Packages: []string{"example.org/tree/cmd/subject"}, Dir: dir}
	src.Mutations = []mutate.Mutation{{Kind: "rewrite", Sites: 1,
		Spec: json.RawMessage(`{"package":"example.org/tree/cmd/subject","file":"main.go","find":{"string":"nothing"},"replace":"\"too little\""}`)}}
	for _, word := range []string{"linked", "changed"} {
		if err := os.WriteFile(elsewhere, []byte("package main\n\nfunc init() { said = \""+word+"\" }\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := says(t, mustBuild(t, b, src)); got != word {
			t.Errorf("the program says %q, want %q of the linked file", got, word)
		}
	}
}
