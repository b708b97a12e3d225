package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/mutate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// TestCandidatesOfFixturesApply rewrites each fixture as each candidate of each scenario does: Kubernetes' own source isn't at hand, a fixture's is.
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

// rewriteFixture wants each mutation of an arm to find as many sites as it states.
func rewriteFixture(t *testing.T, arm scenario.Arm) {
	dir := filepath.Join("..", "..", "fixtures", arm.Source.Fixture)
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var mutations []mutate.Mutation
	want := 0
	for _, m := range arm.Source.Mutations {
		mutations = append(mutations, mutate.Mutation(m))
		want += m.Sites
	}
	got, err := mutate.Rewrite(mutate.Module{Path: modfile.ModulePath(text), Version: "v0.0.0", FS: os.DirFS(dir)}, mutations)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Sites) != want {
		t.Errorf("%d sites were changed, want %d", len(got.Sites), want)
	}
}
