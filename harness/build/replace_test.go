package build_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// Two arms of one program differ in the version of a module that it requires, and mutations are of the version that is
// built.
func TestArmsOfDifferentVersionsOfARequiredModule(t *testing.T) {
	said := func(word string) map[string]string {
		return map[string]string{"go.mod": "module example.net/dep\n\ngo 1.24\n", "dep.go": "package dep\n\nfunc Says() string { return \"" + word + "\" }\n"}
	}
	proxied(t, "example.net/dep", "v1.0.0", said("old"))
	first := os.Getenv("GOPROXY")
	proxied(t, "example.net/dep", "v1.1.0", said("new"))
	t.Setenv("GOPROXY", os.Getenv("GOPROXY")+","+first)
	src := build.Source{Module: "example.org/tree", Version: "v0.0.0", Packages: []string{"example.org/tree/cmd/subject"}, Dir: layDown(t, map[string]string{
		"go.mod":              "module example.org/tree\n\ngo 1.24\n\nrequire example.net/dep v1.1.0\n\nreplace example.net/dep => example.net/dep v1.1.0\n",
		"cmd/subject/main.go": "package main\n\nimport \"example.net/dep\"\n\nfunc main() { println(dep.Says()) }\n",
	})}
	b := newBuilder(t, t.TempDir())
	fixed := mustBuild(t, b, src)
	src.Replace = map[string]string{"example.net/dep": "v1.0.0"}
	vulnerable := mustBuild(t, b, src)
	if now, then := says(t, fixed), says(t, vulnerable); now != "new" || then != "old" {
		t.Errorf("the arms say %q and %q, want new and old", now, then)
	}
	if want := "example.net/dep v1.0.0 in place of v1.1.0"; !slices.Contains(vulnerable.Changes, want) || slices.Contains(fixed.Changes, want) {
		t.Errorf("changes %q and %q: want %q in the first only", vulnerable.Changes, fixed.Changes, want)
	}
	if fixed.GraphSum == vulnerable.GraphSum || !slices.Equal(fixed.Flags, vulnerable.Flags) {
		t.Errorf("want another graph and the same flags: %+v, %+v", fixed, vulnerable)
	}
	m := mutate.Mutation{Kind: "rewrite", Sites: 1, Spec: json.RawMessage(`{"package":"example.net/dep","find":{"string":"old"},"replace":"\"changed\""}`)}
	src.Mutations = []mutate.Mutation{m}
	if got := says(t, mustBuild(t, b, src)); got != "changed" {
		t.Errorf("the mutated arm says %q", got)
	}
	src.Mutations, src.Replace = nil, map[string]string{"example.net/other": "v1.0.0"}
	want := "the go.mod of example.org/tree doesn't require example.net/other, which is to be replaced by v1.0.0"
	if _, err := b.Build(t.Context(), src); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("replacing what isn't required: %v, want %q", err, want)
	}
}
