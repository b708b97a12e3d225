package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
)

// workspace is a tree with a module of its own beside the subject's, as Kubernetes' checkouts have them.
var workspace = map[string]string{
	"go.mod":  "module example.org/tree\n\ngo 1.24\n\nrequire example.org/staged v0.0.0\n\nreplace example.org/staged => ./staging/staged\n",
	"go.work": "go 1.24\n\nuse (\n\t.\n\t./staging/staged\n)\n",
	"cmd/subject/main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.org/staged\"\n)\n\nconst Capacity = 5 * staged.Unit\n\n" +
		"func main() { fmt.Println(staged.Word) }\n",
	"staging/staged/go.mod":    "module example.org/staged\n\ngo 1.24\n",
	"staging/staged/staged.go": "package staged\n\nconst (\n\tWord = \"first\"\n\tUnit = 1000\n)\n",
}

func treeSource(dir string) build.Source {
	return build.Source{Module: "example.org/tree", Version: "v1.2.3", Dir: dir, InPlace: true, Packages: []string{"example.org/tree/cmd/subject"}}
}

func says(t *testing.T, r build.Result) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), r.Binaries["subject"].Path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// contents are the names, modes and bytes of all files of a tree.
func contents(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-ec", `cd "$1"; find . -printf '%p %m %T@\n' | sort; find . -type f | sort | xargs sha256sum`, "sh", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestATreeIsBuiltInPlace(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir := layDown(t, workspace)
	b := newBuilder(t, t.TempDir())
	before := contents(t, dir)
	r := mustBuild(t, b, treeSource(dir))
	if got := contents(t, dir); got != before {
		t.Errorf("the tree was written to:\n%s\nbefore:\n%s", got, before)
	}
	if got := says(t, r); got != "first" {
		t.Errorf("the subject says %q, want first", got)
	}
	if want := "built in place with its own go.work (-mod=readonly)"; !strings.HasPrefix(r.Changes[0], want) {
		t.Errorf("changes %q don't begin with %q", r.Changes, want)
	}
	if !slices.Contains(r.Flags, "-trimpath") || r.GraphSum == "" {
		t.Errorf("flags %q, graph %q", r.Flags, r.GraphSum)
	}
	if again := mustBuild(t, b, treeSource(dir)); !again.Cached || again.Key != r.Key {
		t.Errorf("the same tree was built again: %+v", again)
	}
	write(t, dir, "staging/staged/staged.go", "package staged\n\nconst (\n\tWord = \"second\"\n\tUnit = 1000\n)\n")
	if changed := mustBuild(t, b, treeSource(dir)); changed.Cached || says(t, changed) != "second" {
		t.Errorf("a change beside the subject's module went unnoticed: %+v", changed)
	}
}

func TestATreeWithVendoredCodeIsBuiltFromIt(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	files := map[string]string{
		"go.mod":              "module example.org/tree\n\ngo 1.24\n\nrequire example.org/vendored v1.0.0\n",
		"cmd/subject/main.go": "package main\n\nimport \"example.org/vendored\"\n\nfunc main() { println(vendored.Word) }\n",
		"vendor/modules.txt":  "# example.org/vendored v1.0.0\n## explicit; go 1.24\nexample.org/vendored\n",
		"vendor/example.org/vendored/vendored.go": "package vendored\n\nconst Word = \"patched\"\n",
	}
	dir := layDown(t, files)
	b := newBuilder(t, t.TempDir())
	r := mustBuild(t, b, treeSource(dir))
	if got := says(t, r); got != "patched" {
		t.Errorf("the subject says %q, want patched", got)
	}
	if want := "built in place with its own go.mod and vendor directory (-mod=vendor)"; !strings.HasPrefix(r.Changes[0], want) {
		t.Errorf("changes %q don't begin with %q", r.Changes, want)
	}
	write(t, dir, "vendor/example.org/vendored/vendored.go", "package vendored\n\nconst Word = \"patched again\"\n")
	if changed := mustBuild(t, b, treeSource(dir)); says(t, changed) != "patched again" {
		t.Errorf("a change of vendored code went unnoticed: %+v", changed)
	}
}

// What go.mod says of the language and of the runtime's settings is part of the program, though no file of a package has it.
func TestAChangeOfGoModAloneIsBuilt(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	const program = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tvar all []func() int\n\tfor i := 0; i < 2; i++ {\n" +
		"\t\tall = append(all, func() int { return i })\n\t}\n" +
		"\tdefer func() { fmt.Println(all[0](), recover() == nil) }()\n\tpanic(nil)\n}\n"
	b := newBuilder(t, t.TempDir())
	dir := layDown(t, map[string]string{"go.mod": "module example.org/tree\n\ngo 1.21\n", "cmd/subject/main.go": program})
	for _, c := range []struct{ mod, want string }{
		{"go 1.21\n", "2 false"},
		{"go 1.22\n", "0 false"}, // each turn of a loop has its own variable since then
		{"go 1.22\n\ngodebug panicnil=1\n", "0 true"},
	} {
		write(t, dir, "go.mod", "module example.org/tree\n\n"+c.mod)
		r := mustBuild(t, b, treeSource(dir))
		if got := says(t, r); got != c.want || r.Cached {
			t.Errorf("with %q the subject says %q, want %q (from the cache: %t)", c.mod, got, c.want, r.Cached)
		}
	}
}

func TestATreeWithoutItsOtherModulesIsBuiltFromACopy(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	files := map[string]string{
		"go.mod":              "module example.org/tree\n\ngo 1.24\n",
		"go.work":             "go 1.24\n\nuse (\n\t.\n\t./staging/staged\n)\n",
		"cmd/subject/main.go": "package main\n\nfunc main() { println(\"copied\") }\n",
	}
	dir := layDown(t, files)
	r := mustBuild(t, newBuilder(t, t.TempDir()), treeSource(dir))
	if got := says(t, r); got != "copied" {
		t.Errorf("the subject says %q, want copied", got)
	}
	want := "not built in place: what its go.mod or go.work names isn't there, as in a tree from a module cache: " +
		filepath.Join(dir, "staging/staged") + ", and 0 more like it"
	if r.Changes[0] != want {
		t.Errorf("changes %q don't begin with %q", r.Changes, want)
	}
}

func TestTreesThatCantBeBuilt(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	for _, c := range []struct {
		name, file, text, want string
		change                 func(*build.Source)
	}{
		{name: "a syntax error", file: "cmd/subject/main.go", text: "package main\n\nfunc main() {\n", want: "main.go:4:1: syntax error: unexpected EOF"},
		{name: "a type error", file: "cmd/subject/main.go", text: "package main\n\nfunc main() { undefined() }\n", want: "main.go:3:15: undefined: undefined"},
		{name: "another module", file: "go.mod", text: "module example.org/other\n\ngo 1.24\n", want: "go.mod is not the go.mod of example.org/tree"},
		{name: "a module outside of a tree that can't be built in place", file: "go.mod",
			text: "module example.org/tree\n\ngo 1.20\n\nrequire (\n\texample.org/beside v0.0.0\n\tgithub.com/modern-go/reflect2 v1.0.1\n)\n\nreplace example.org/beside => ../beside\n",
			change: func(s *build.Source) {
				beside := filepath.Join(s.Dir, "../beside")
				if err := os.MkdirAll(beside, 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, beside, "go.mod", "module example.org/beside\n")
			},
			want: "go.mod replaces example.org/beside by ../beside, which is not in its tree, and it can't be built in place"},
		{name: "a module that a link in a tree leads to, which can't be built in place", file: "go.mod",
			text: "module example.org/tree\n\ngo 1.20\n\nrequire (\n\texample.org/beside v0.0.0\n\tgithub.com/modern-go/reflect2 v1.0.1\n)\n\nreplace example.org/beside => ./beside\n",
			change: func(s *build.Source) {
				beside := filepath.Join(s.Dir, "../beside")
				if err := os.MkdirAll(beside, 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, beside, "go.mod", "module example.org/beside\n")
				if err := os.Symlink(beside, filepath.Join(s.Dir, "beside")); err != nil {
					t.Fatal(err)
				}
			},
			want: "go.mod replaces example.org/beside by ./beside, which is not in its tree, and it can't be built in place"},
		{name: "a module by its whole path, in a tree that can't be built in place", file: "go.mod", text: "to be written",
			change: func(s *build.Source) {
				beside := filepath.Join(t.TempDir(), "beside")
				if err := os.MkdirAll(beside, 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, beside, "go.mod", "module example.org/beside\n")
				write(t, s.Dir, "go.mod", "module example.org/tree\n\ngo 1.20\n\nrequire (\n\texample.org/beside v1.0.0\n\tgithub.com/modern-go/reflect2 v1.0.1\n)\n\n"+
					"replace example.org/beside => "+beside+"\n")
			},
			want: "/beside, which is not in its tree, and it can't be built in place"},
		{name: "a module that only go.work has here, in a tree that can't be built in place", file: "go.work",
			text: "go 1.24\n\nuse (\n\t.\n\t./staging/gone\n\t./staging/staged\n)\n",
			change: func(s *build.Source) {
				write(t, s.Dir, "go.mod", "module example.org/tree\n\ngo 1.24\n\nrequire example.org/staged v1.0.0\n")
			},
			want: "/go.work takes example.org/staged from ./staging/staged, its go.mod doesn't, and it can't be built in place"},
		{name: "a replacement that only go.work has, in a tree that can't be built in place", file: "go.work",
			text: "go 1.24\n\nuse (\n\t.\n\t./staging/gone\n)\n\nreplace example.org/needed => example.org/patched v1.0.1\n",
			want: "/go.work takes example.org/needed from example.org/patched v1.0.1, its go.mod doesn't, and it can't be built in place"},
		{name: "no directory", file: "go.mod", text: workspace["go.mod"], change: func(s *build.Source) { s.Dir = "" },
			want: "source example.org/tree@v1.2.3: only a directory without mutations and replaced modules is built in place"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := layDown(t, workspace)
			write(t, dir, c.file, c.text)
			src := treeSource(dir)
			if c.change != nil {
				c.change(&src)
			}
			_, err := newBuilder(t, t.TempDir()).Build(t.Context(), src)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func inRepository(t *testing.T, dir string) {
	t.Helper()
	script := `cd "$1"; git init -q; git add -A; git -c user.name=t -c user.email=t@example.org commit -qm tree; git tag v1.2.3`
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", script, "sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestTheStateOfATree(t *testing.T) {
	dir := layDown(t, workspace)
	look := func(dir string) build.State {
		t.Helper()
		s, err := build.LookAt(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := look(dir); s.Sentence() != "the tree is in no git repository: what it was made from is not known" {
		t.Errorf("outside of a repository: %q", s.Sentence())
	}
	inRepository(t, dir)
	if s := look(dir); s.Sentence() != "commit "+s.Commit+", nothing changed" || s.Version != "v1.2.3" || len(s.Commit) != 40 {
		t.Errorf("clean: %+v: %s", s, s.Sentence())
	}
	write(t, dir, "staging/staged/staged.go", "package staged\n\nconst (\n\t-- no Go at all\n\tUnit = 1000\n)\n")
	write(t, dir, "new.go", "package tree\n")
	before := contents(t, dir)
	s := look(dir)
	if !strings.HasPrefix(s.Sentence(), "commit "+s.Commit+" with uncommitted changes: 2 files, +2 -1 lines, SHA-256 of the diff ") {
		t.Errorf("dirty: %s\n%s", s.Sentence(), s.Diff)
	}
	if !strings.Contains(string(s.Diff), "+package tree\n") || !strings.Contains(string(s.Diff), "+\t-- no Go at all\n") {
		t.Errorf("the diff lacks something:\n%s", s.Diff)
	}
	if got := contents(t, dir); got != before {
		t.Errorf("looking wrote to the tree:\n%s\nbefore:\n%s", got, before)
	}
	inner := filepath.Join(dir, "ignored")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, inner, "go.mod", "module example.org/inner\n")
	if s := look(inner); s.Commit != "" {
		t.Errorf("a tree that the repository around it doesn't know has its commit: %+v", s)
	}
}

func TestVersionsOfTreesWithoutATag(t *testing.T) {
	log := "<!-- TOC -->\n\n- [v1.34.3](#v1343)\n  - [Downloads](#d)\n- [v1.34.2](#v1342)\n"
	for _, c := range []struct {
		name, dir, version string
		files              map[string]string
		exact              bool
	}{
		{"a module cache's", "kubernetes@v1.34.4", "v1.34.4", map[string]string{"CHANGELOG/CHANGELOG-1.34.md": log}, true},
		{"a release's", "tree", "v1.34.3", map[string]string{"CHANGELOG/CHANGELOG-1.34.md": log}, false},
		{"a branch's", "tree", "", map[string]string{"CHANGELOG/CHANGELOG-1.34.md": log, "CHANGELOG/CHANGELOG-1.33.md": log}, false},
		{"none", "tree", "", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), c.dir)
			for name, text := range c.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, dir, name, text)
			}
			if v, exact := build.VersionOfTree(dir); v != c.version || exact != c.exact {
				t.Errorf("got %q, %t, want %q, %t", v, exact, c.version, c.exact)
			}
		})
	}
}
