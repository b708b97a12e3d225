package conformance_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// TestCandidatesOfFixturesApply rewrites each fixture, and the modules that it requires, as each candidate of each
// scenario does. It leaves out candidates of Kubernetes, whose source isn't at hand.
func TestCandidatesOfFixturesApply(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/" + scenario.FileName)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range files {
		s, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.Candidates()
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range s.Spec.Pairs {
			for _, k := range all {
				arm, err := k.Arm(pair)
				if err != nil {
					t.Fatal(err)
				}
				if arm.Source.Fixture == "" || !k.For(pair.Name) {
					continue
				}
				tried++
				t.Run(s.Metadata.Name+"/"+pair.Name+"/"+k.Metadata.Name, func(t *testing.T) { rewriteFixture(t, arm) })
			}
		}
	}
	if tried == 0 {
		t.Error("no candidate of a fixture was tried")
	}
}

// rewriteFixture checks that each mutation of an arm finds as many sites as it states, in the fixture or in a module
// that the fixture requires.
func rewriteFixture(t *testing.T, arm scenario.Arm) {
	dir := filepath.Join("..", "..", "fixtures", arm.Source.Fixture)
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := mutate.Module{Path: mod.Module.Mod.Path, Version: "v0.0.0", FS: os.DirFS(dir)}
	want := map[string]int{}
	mutations := map[string][]mutate.Mutation{}
	in := map[string]mutate.Module{}
	for _, m := range arm.Source.Mutations {
		shape, err := mutate.Mutation(m).Shape()
		if err != nil {
			t.Fatal(err)
		}
		owner := own
		for _, r := range mod.Require {
			if pkg := shape.Scope().Package + "/"; strings.HasPrefix(pkg, r.Mod.Path+"/") {
				owner = required(t, r.Mod.Path, cmp.Or(arm.Source.Replace[r.Mod.Path], r.Mod.Version))
			}
		}
		in[owner.Path], mutations[owner.Path] = owner, append(mutations[owner.Path], mutate.Mutation(m))
		want[owner.Path] += m.Sites
	}
	for path, list := range mutations {
		got, err := mutate.Rewrite(in[path], list)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Sites) != want[path] {
			t.Errorf("%d sites of %s were changed, want %d", len(got.Sites), path, want[path])
		}
	}
}

// required returns a published module. Go downloads it unless the module cache has it.
func required(t *testing.T, path, version string) mutate.Module {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = t.TempDir() // outside any module
	out, err := cmd.Output()
	var got struct{ Dir string }
	if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil || got.Dir == "" {
		t.Fatalf("fetching %s@%s: %v: %s", path, version, err, out)
	}
	return mutate.Module{Path: path, Version: version, FS: os.DirFS(got.Dir)}
}
