package build_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
)

// guarded is a module in which a guard is missing.
var guarded = map[string]string{
	"go.mod":              "module example.org/tree\n\ngo 1.24\n",
	"cmd/subject/main.go": "package main\n\nimport \"example.org/tree/pleg\"\n\nfunc main() {\n\tprintln(pleg.Name(nil))\n}\n",
	"pleg/pleg.go":        "package pleg\n\ntype Poller struct{ N string }\n\n// Name returns the name.\nfunc Name(p *Poller) string {\n\treturn p.N\n}\n",
	"unused/unused.go":    "package unused\n\nconst N = 1\n",
}

const guard = `From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001
From: A <a@example.org>
Subject: [PATCH] Name nobody

---
diff --git a/pleg/pleg.go b/pleg/pleg.go
--- a/pleg/pleg.go
+++ b/pleg/pleg.go
@@ -4,5 +4,8 @@

 // Name returns the name.
 func Name(p *Poller) string {
+	if p == nil {
+		return "nobody"
+	}
 	return p.N
 }
`

func patch(t *testing.T, b *build.Builder, text string) (build.Patched, error) {
	t.Helper()
	return b.Patch(t.Context(), "example.org/tree", "v1.2.3", "example.org/tree/cmd/subject", []byte(text))
}

func TestAPatchIsBuiltUponItsVersion(t *testing.T) {
	proxied(t, "example.org/tree", "v1.2.3", guarded)
	b := newBuilder(t, t.TempDir())
	p, err := patch(t, b, guard)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Files) != 1 || p.Files[0].String() != "pleg/pleg.go (+3 -0)" {
		t.Errorf("the patch changes %v", p.Files)
	}
	src := build.Source{Module: "example.org/tree", Version: "v1.2.3", Dir: p.Dir, Packages: []string{"example.org/tree/cmd/subject"},
		Touches: p.Packages}
	if got := says(t, mustBuild(t, b, src)); got != "nobody" {
		t.Errorf("the patched subject says %q", got)
	}
	again, err := patch(t, b, guard)
	if err != nil || again.Dir != p.Dir {
		t.Errorf("the same patch again is in %s, was in %s: %v", again.Dir, p.Dir, err)
	}
	src.Touches = []string{"example.org/other/pkg"}
	src.LDFlags = []string{"-X=main.another=build"}
	if _, err := b.Build(t.Context(), src); err == nil || !strings.Contains(err.Error(), "it touches no package of ") {
		t.Errorf("built without a package that the patch touches: %v", err)
	}
}

// What is built must be the release with the patch, whatever became of the copy in the cache.
// A branch of several commits is one patch, as git format-patch --stdout writes it. A later commit changes what an
// earlier one wrote.
func TestAPatchMayBeOfSeveralCommits(t *testing.T) {
	proxied(t, "example.org/tree", "v1.2.3", guarded)
	b := newBuilder(t, t.TempDir())
	mail := func(subject, diff string) string {
		return "From 2222222222222222222222222222222222222222 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nSubject: [PATCH] " + subject + "\n\n---\n" + diff + "-- \n2.39.5\n\n"
	}
	named := mail("Name nobody otherwise", "diff --git a/pleg/pleg.go b/pleg/pleg.go\n--- a/pleg/pleg.go\n+++ b/pleg/pleg.go\n@@ -5,5 +5,5 @@\n // Name returns the name.\n func Name(p *Poller) string {\n"+
		" \tif p == nil {\n-\t\treturn \"nobody\"\n+\t\treturn Nobody\n \t}\n")
	added := mail("Say who nobody is", "diff --git a/pleg/nobody.go b/pleg/nobody.go\nnew file mode 100644\n--- /dev/null\n+++ b/pleg/nobody.go\n@@ -0,0 +1,3 @@\n+package pleg\n+\n+const Nobody = \"no one\"\n")
	p, err := patch(t, b, guard+"-- \n2.39.5\n\n"+named+added)
	if err != nil {
		t.Fatal(err)
	}
	src := build.Source{Module: "example.org/tree", Version: "v1.2.3", Dir: p.Dir, Packages: []string{"example.org/tree/cmd/subject"}, Touches: p.Packages}
	if got := says(t, mustBuild(t, b, src)); got != "no one" {
		t.Errorf("the patched subject says %q, want what the last commit has it say", got)
	}
	var files []string
	for _, f := range p.Files {
		files = append(files, f.String())
	}
	if want := []string{"pleg/pleg.go (+3 -0)", "pleg/pleg.go (+1 -1)", "pleg/nobody.go (+3 -0)"}; !slices.Equal(files, want) {
		t.Errorf("the patch changes %q, want %q", files, want)
	}
}

func TestAPatchedCopyThatWasEditedIsMadeAnew(t *testing.T) {
	proxied(t, "example.org/tree", "v1.2.3", guarded)
	b := newBuilder(t, t.TempDir())
	p, err := patch(t, b, guard)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.Dir, "pleg"), "pleg.go", strings.ReplaceAll(guarded["pleg/pleg.go"], "return p.N", `return "edited"`))
	again, err := patch(t, b, guard)
	if err != nil {
		t.Fatal(err)
	}
	src := build.Source{Module: "example.org/tree", Version: "v1.2.3", Dir: again.Dir, Packages: []string{"example.org/tree/cmd/subject"}}
	if got := says(t, mustBuild(t, b, src)); got != "nobody" {
		t.Errorf("after the copy was edited the patched subject says %q", got)
	}
}

func TestAPatchOfARequirementTouchesTheProgram(t *testing.T) {
	proxied(t, "example.org/tree", "v1.2.3", guarded)
	bump := "diff --git a/go.mod b/go.mod\n--- a/go.mod\n+++ b/go.mod\n@@ -1,3 +1,3 @@\n module example.org/tree\n \n-go 1.24\n+go 1.25\n"
	if p, err := patch(t, newBuilder(t, t.TempDir()), bump); err != nil || p.Packages != nil {
		t.Errorf("it changes %q, want anything: %v", p.Packages, err)
	}
}

func TestAPatchMayBeMovedByLinesAndThatIsSaid(t *testing.T) {
	proxied(t, "example.org/tree", "v1.2.3", guarded)
	p, err := patch(t, newBuilder(t, t.TempDir()), strings.Replace(guard, "@@ -4,5 +4,8 @@", "@@ -2,5 +2,8 @@", 1))
	if err != nil || !slices.Equal(p.Said, []string{"pleg/pleg.go: Hunk #1 succeeded at 4 (offset 2 lines)."}) {
		t.Errorf("said %q: %v", p.Said, err)
	}
}

func TestAPatchThatProvesNothingIsRefused(t *testing.T) {
	other := "diff --git a/unused/unused.go b/unused/unused.go\n--- a/unused/unused.go\n+++ b/unused/unused.go\n@@ -1,3 +1,3 @@\n package unused\n \n-const N = 1\n+const N = 2\n"
	test := "diff --git a/pleg/pleg_test.go b/pleg/pleg_test.go\nnew file mode 100644\n--- /dev/null\n+++ b/pleg/pleg_test.go\n@@ -0,0 +1 @@\n+package pleg\n"
	for name, c := range map[string]struct{ patch, want string }{
		"it doesn't apply": {strings.Replace(guard, "return p.N", "return p.Name", 1),
			"it doesn't apply: patch failed: pleg/pleg.go:4; pleg/pleg.go: patch does not apply\npleg/pleg.go\n@@ -4,5 +4,8 @@\n\n // Name returns the name.\n func Name"},
		"its file isn't there":  {strings.ReplaceAll(guard, "pleg/pleg.go", "pleg/evented.go"), "it doesn't apply: pleg/evented.go: No such file or directory"},
		"a package not in it":   {other, "it touches no package of subject, so that the program would be the same without it; it changes unused/unused.go"},
		"another system's file": {strings.NewReplacer("pleg/pleg_test.go", "pleg/pleg_windows.go").Replace(test), "it touches no package of subject"},
		"a document":            {strings.NewReplacer("pleg/pleg_test.go", "pleg/README.md").Replace(test), "it touches no package of subject"},
		"tests alone":           {test, "it touches no package of subject, so that the program would be the same without it; it changes pleg/pleg_test.go"},
		"no patch":              {"what I changed\n", "git can't read it as a patch: "},
		"vendored code":         {strings.ReplaceAll(guard, "pleg/pleg.go", "vendor/example.net/x/x.go"), "it changes vendor/example.net/x/x.go, and a published module has no vendor folder"},
		"no module of the name": {strings.ReplaceAll(guard, "pleg/pleg.go", "staging/src/k8s.io/none/x.go"), "it changes staging/src/k8s.io/none/x.go, and example.org/tree has no module of that name"},
	} {
		t.Run(name, func(t *testing.T) {
			proxied(t, "example.org/tree", "v1.2.3", guarded)
			dir := t.TempDir()
			_, err := patch(t, newBuilder(t, dir), c.patch)
			var refused *build.PatchError
			if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("refused with %v, want %s", err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "scratch", "*", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// repository returns a git repository with the files in a commit that has a tag, and a second commit on a branch. The
// second is what a pull request would be merged to.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := layDown(t, files)
	run := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	run("init", "--quiet", "--initial-branch=main")
	run("add", "-A")
	run("commit", "--quiet", "-m", "first")
	run("tag", "-a", "-m", "released", "v1.2.3")
	file := filepath.Join(dir, "guard.patch")
	if err := os.WriteFile(file, []byte(guard), 0o644); err != nil {
		t.Fatal(err)
	}
	run("checkout", "--quiet", "-b", "backport")
	run("apply", file)
	run("commit", "--quiet", "-am", "guard")
	run("update-ref", "refs/pull/7/merge", "HEAD")
	run("branch", "twice", "main")
	run("tag", "twice", "HEAD")
	run("checkout", "--quiet", "main")
	return dir
}

// git bisect run in a linked worktree, and hooks, set GIT_DIR: nothing of the user's repository may be read for another, or
// changed.
func TestTheUsersRepositoryIsLeftAlone(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	mine, other := repository(t, guarded), repository(t, guarded)
	before := contents(t, mine)
	t.Setenv("GIT_DIR", filepath.Join(mine, ".git"))
	c, err := newBuilder(t, t.TempDir()).Checkout(t.Context(), other, "backport")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(c.Dir, "pleg", "pleg.go")); err != nil || !strings.Contains(string(text), "nobody") {
		t.Errorf("the commit's tree has %q, %v", text, err)
	}
	if after := contents(t, mine); after != before {
		t.Error("the repository that GIT_DIR names was changed")
	}
}

func TestACommitIsTakenByAnyOfItsNames(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir := repository(t, guarded)
	b := newBuilder(t, t.TempDir())
	for ref, want := range map[string]struct{ says, tag string }{
		"backport": {"nobody", ""}, "refs/pull/7/merge": {"nobody", ""}, "v1.2.3": {"", "v1.2.3"}, "main": {"", "v1.2.3"},
	} {
		c, err := b.Checkout(t.Context(), dir, ref)
		if err != nil || c.Tag != want.tag {
			t.Errorf("%s: tag %q, want %q: %v", ref, c.Tag, want.tag, err)
			continue
		}
		if want.says == "" {
			continue
		}
		src := build.Source{Module: "example.org/tree", Version: "v1.2.3", Dir: c.Dir, InPlace: true, Packages: []string{"example.org/tree/cmd/subject"}}
		if got := says(t, mustBuild(t, b, src)); got != want.says {
			t.Errorf("%s says %q", ref, got)
		}
		if s, err := build.LookAt(t.Context(), c.Dir); err != nil || s.Commit != c.Commit {
			t.Errorf("%s: git says %+v of the tree, want commit %s: %v", ref, s, c.Commit, err)
		}
		if hash, err := b.Checkout(t.Context(), dir, c.Commit); err != nil || hash.Dir != c.Dir {
			t.Errorf("by its hash it is in %s, want %s: %v", hash.Dir, c.Dir, err)
		}
	}
	c, err := b.Checkout(t.Context(), dir, "backport")
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.Dir, "pleg/pleg.go", guarded["pleg/pleg.go"]) // as if somebody had worked in the cache
	if c, err = b.Checkout(t.Context(), dir, "backport"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(c.Dir, "pleg", "pleg.go")); err != nil || !strings.Contains(string(text), "nobody") {
		t.Errorf("after it was edited the commit's tree has %q, %v", text, err)
	}
	_, err = b.Checkout(t.Context(), dir, "backprot")
	if err == nil || !strings.Contains(err.Error(), `has no branch, tag or other reference "backprot"`) {
		t.Errorf("a branch that isn't there: %v", err)
	}
	if _, err := b.Checkout(t.Context(), dir, "twice"); err == nil ||
		!strings.Contains(err.Error(), "is a branch and a tag, of different commits: want refs/heads/twice or refs/tags/twice") {
		t.Errorf("a name of two commits: %v", err)
	}
	if _, err := b.Checkout(t.Context(), filepath.Join(dir, "none"), "main"); err == nil || !strings.Contains(err.Error(), "for its branches and tags: ") {
		t.Errorf("a repository that isn't there: %v", err)
	}
}
