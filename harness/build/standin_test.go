package build_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// staged is tiny with the package that sends in a module of its own, as Kubernetes has its staging modules.
func staged() map[string]string {
	out := maps.Clone(tiny)
	out["staging/pleg/pleg.go"] = tiny["pleg/pleg.go"]
	out["staging/pleg/go.mod"] = "module example.org/tiny/pleg\n\ngo 1.24\n"
	out["go.mod"] += "require example.org/tiny/pleg v0.0.0\nreplace example.org/tiny/pleg => ./staging/pleg\n"
	out["limits/limits.go"] = "package limits\n\nconst Limit = 3\n\nvar full = make(chan int, Limit)\n"
	delete(out, "pleg/pleg.go")
	return out
}

// Arms whose difference lies in a required module still have one graph, and only the mutated one has the mutation.
func TestMutationOfARequiredModule(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir := layDown(t, staged())
	b := newBuilder(t, t.TempDir())
	source := tinySource(dir)
	source.Constants = []build.ConstantRef{{Name: "limit", Package: "example.org/tiny/limits", Ident: "Limit"}}
	fixed := mustBuild(t, b, source)
	source.Mutations = []mutate.Mutation{unselect}
	vulnerable := mustBuild(t, b, source)
	if fixed.GraphSum != vulnerable.GraphSum || !slices.Equal(fixed.Flags, vulnerable.Flags) {
		t.Errorf("arms differ in more than the mutation:\n%+v\n%+v", fixed, vulnerable)
	}
	if fixed.Binaries["subject"].SHA256 == vulnerable.Binaries["subject"].SHA256 || fixed.Binaries["other"].SHA256 != vulnerable.Binaries["other"].SHA256 {
		t.Errorf("want another subject and the same other program: %+v\n%+v", fixed.Binaries, vulnerable.Binaries)
	}
	out, err := exec.CommandContext(t.Context(), fixed.Binaries["subject"].Path).CombinedOutput()
	if err != nil || string(out) != "discarded\n" {
		t.Errorf("the fixed subject says %q (%v), want that it discarded", out, err)
	}
	out, err = exec.CommandContext(t.Context(), vulnerable.Binaries["subject"].Path).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "[chan send]:\nexample.org/tiny/pleg.(*Poller).Relist") {
		t.Errorf("the vulnerable subject says %q (%v), want a goroutine blocked in its send", out, err)
	}
	if len(vulnerable.Sites) != 1 || vulnerable.Sites[0].File != "example.org/tiny/pleg/pleg.go" {
		t.Errorf("sites %+v, want one in example.org/tiny/pleg/pleg.go", vulnerable.Sites)
	}
	if got := vulnerable.Constants["limit"].Int; got != 3 {
		t.Errorf("the constant of the own module is %d, want 3", got)
	}
	for _, want := range []string{"a mutated copy stands in for example.org/tiny/pleg", "unselect at example.org/tiny/pleg/pleg.go:10"} {
		if !slices.Contains(vulnerable.Changes, want) || slices.Contains(fixed.Changes, want) {
			t.Errorf("changes %q and %q: want %q in the first only", vulnerable.Changes, fixed.Changes, want)
		}
	}
}

func TestMutationOfNoModule(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	m := unselect
	m.Spec = json.RawMessage(strings.Replace(string(m.Spec), "example.org/tiny/pleg", "example.org/tinier/pleg", 1))
	want := "package example.org/tinier/pleg is not in module example.org/tiny"
	if _, err := newBuilder(t, t.TempDir()).Build(t.Context(), tinySource(layDown(t, staged()), m)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	twice := unselect
	twice.Sites = 2
	want = "mutation unselect: v1.2.3: pleg.go: want 2 select sending on Events with default in (*Poller).Relist, found 1 (found: a site at line 10)"
	if _, err := newBuilder(t, t.TempDir()).Build(t.Context(), tinySource(layDown(t, staged()), twice)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
