package build_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
)

// repositoryWithModules is a tree whose repository has a second module, published by itself, and that needs a third one.
var repositoryWithModules = map[string]string{
	"go.mod": "module example.org/tree\n\ngo 1.24\n\nrequire example.org/staged v0.2.3\n\nrequire example.org/needed v1.0.0\n\n" +
		"replace example.org/staged => ./staging/staged\n",
	"cmd/subject/main.go": "package main\n\nimport (\n\t\"example.org/needed\"\n\t\"example.org/staged\"\n)\n\nfunc main() { println(staged.Word, needed.Word) }\n",
	"unused/unused.go":    "package unused\n\nconst N = 1\n",
}

var (
	stagedModule = map[string]string{"go.mod": "module example.org/staged\n\ngo 1.24\n", "staged.go": "package staged\n\nconst Word = \"first\"\n"}
	neededModule = map[string]string{"go.mod": "module example.org/needed\n\ngo 1.24\n", "needed.go": "package needed\n\nconst Word = \"one\"\n"}
)

// publishedModules publishes the modules on proxies of the test's own, and returns the first one as a source.
func publishedModules(t *testing.T) build.Source {
	t.Helper()
	var proxies []string
	for _, m := range []struct {
		path, version string
		files         map[string]string
	}{{"example.org/needed", "v1.0.0", neededModule}, {"example.org/staged", "v0.2.3", stagedModule}, {"example.org/tree", "v1.2.3", repositoryWithModules}} {
		proxied(t, m.path, m.version, m.files)
		proxies = append(proxies, os.Getenv("GOPROXY"))
	}
	t.Setenv("GOPROXY", strings.Join(proxies, ","))
	return build.Source{Module: "example.org/tree", Version: "v1.2.3", Packages: []string{"example.org/tree/cmd/subject"}}
}

// checkout is a checkout of the repository with what changes, vendored as Kubernetes' is.
func checkout(t *testing.T, changes map[string]string) build.Source {
	t.Helper()
	files := maps.Clone(repositoryWithModules)
	for name, text := range stagedModule {
		files["staging/staged/"+name] = text
	}
	files["vendor/modules.txt"] = "# example.org/needed v1.0.0\n## explicit; go 1.24\nexample.org/needed\n" +
		"# example.org/staged v0.2.3 => ./staging/staged\n## explicit; go 1.24\nexample.org/staged\n# example.org/staged => ./staging/staged\n"
	files["vendor/example.org/needed/needed.go"] = neededModule["needed.go"]
	files["vendor/example.org/staged/staged.go"] = stagedModule["staged.go"]
	maps.Copy(files, changes)
	return treeSource(layDown(t, files))
}

func difference(t *testing.T, b *build.Builder, src, base build.Source) string {
	t.Helper()
	out, err := b.Difference(t.Context(), src, base, mustBuild(t, b, src).Key)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A candidate's tree is compared with what the other arm is built from, module by module, wherever its repository has them.
func TestATreeIsComparedWithWhatWasPublished(t *testing.T) {
	base, b := publishedModules(t), newBuilder(t, t.TempDir())
	if got, want := difference(t, b, checkout(t, nil), base),
		"# What goes into subject: example.org/tree v1.2.3 (-) and the source that was built (+). Of 3 files, 0 differ.\n"; got != want {
		t.Errorf("the same source differs by %q, want %q", got, want)
	}
	src := checkout(t, map[string]string{
		"vendor/example.org/staged/staged.go": "package staged\n\nconst Word = \"second\"\n",
		"vendor/example.org/needed/needed.go": "package needed\n\nconst Word = \"patched\"\n",
		"cmd/subject/more.go":                 "package main\n\nconst more = 1\n",
		"cmd/subject/main_test.go":            "package main\n",
		"unused/unused.go":                    "package unused\n\nconst N = 2\n",
	})
	got := difference(t, b, src, base)
	for _, want := range []string{
		"# What goes into subject: example.org/tree v1.2.3 (-) and the source that was built (+). Of 4 files, 3 differ.\ndiff --git ",
		"\n--- a/example.org/staged/staged.go\n+++ b/example.org/staged/staged.go\n@@ -1,3 +1,3 @@\n package staged\n \n-const Word = \"first\"\n+const Word = \"second\"\n",
		"\n-const Word = \"one\"\n+const Word = \"patched\"\n",
		"\n--- /dev/null\n+++ b/example.org/tree/cmd/subject/more.go\n@@ -0,0 +1,3 @@\n+package main\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the difference lacks %q:\n%s", want, got)
		}
	}
	for _, not := range []string{"unused", "main_test", src.Dir} {
		if strings.Contains(got, not) {
			t.Errorf("the difference has %q:\n%s", not, got)
		}
	}
	if again := difference(t, b, src, base); again != got {
		t.Errorf("asked again it is\n%s\nwas\n%s", again, got)
	}
	write(t, src.Dir, "cmd/subject/more.go", "package main\n\nconst more = 2\n")
	if changed := difference(t, b, src, base); !strings.Contains(changed, "+const more = 2\n") {
		t.Errorf("after a change it is\n%s", changed)
	}
}

// What only go.mod says differs without any file of a package.
func TestSettingsOfGoModAreCompared(t *testing.T) {
	base, b := publishedModules(t), newBuilder(t, t.TempDir())
	mod := strings.Replace(repositoryWithModules["go.mod"], "go 1.24\n", "go 1.23\n\ngodebug panicnil=1\n", 1)
	got := difference(t, b, checkout(t, map[string]string{"go.mod": mod, "vendor/modules.txt": "", "go.work": "go 1.24\n\nuse (\n\t.\n\t./staging/gone\n)\n"}), base)
	for _, want := range []string{
		"Of 3 files, 0 differ.\n",
		"# the version of Go in which example.org/tree is compiled: \"1.24\" (-), and \"1.23\" (+)\n",
		"# the GODEBUG settings of subject: ", "panicnil=1",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the difference lacks %q:\n%s", want, got)
		}
	}
}

// A tree that is built from a copy is compared as it is built.
func TestACopiedTreeIsComparedToo(t *testing.T) {
	base, b := publishedModules(t), newBuilder(t, t.TempDir())
	src := checkout(t, map[string]string{
		"go.work":                  "go 1.24\n\nuse (\n\t.\n\t./staging/gone\n)\n",
		"staging/staged/staged.go": "package staged\n\nconst Word = \"second\"\n",
	})
	if got := difference(t, b, src, base); !strings.Contains(got, "Of 3 files, 1 differ.\n") || !strings.Contains(got, "+const Word = \"second\"\n") {
		t.Errorf("the difference is\n%s", got)
	}
}

func TestALongDifferenceIsCutOffAndSaysSo(t *testing.T) {
	base, b := publishedModules(t), newBuilder(t, t.TempDir())
	got := difference(t, b, checkout(t, map[string]string{"cmd/subject/long.go": "package main\n" + strings.Repeat("// a line of text\n", 100_000)}), base)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if last := lines[len(lines)-1]; len(got) > 1<<20+500 || len(got) < 1<<20-500 || !strings.HasPrefix(last, "# Cut off here: the whole difference has 19") ||
		!strings.Contains(last, ", with SHA-256 ") || lines[len(lines)-2] != "+// a line of text" {
		t.Errorf("it has %d bytes and ends with %q", len(got), lines[len(lines)-2:])
	}
}

// What can't be compared is an error, and no empty difference.
func TestASourceThatCantBeHadIsNotCompared(t *testing.T) {
	base, b := publishedModules(t), newBuilder(t, t.TempDir())
	tree := checkout(t, nil)
	built := mustBuild(t, b, tree).Key
	base.Version = "v1.2.9"
	if out, err := b.Difference(t.Context(), tree, base, built); err == nil || !strings.Contains(err.Error(), "example.org/tree@v1.2.9") {
		t.Errorf("%q, %v", out, err)
	}
	base.Version = "v1.2.3"
	t.Setenv("PATH", slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "git"))
		return err == nil
	})[0])
	if out, err := b.Difference(t.Context(), tree, base, built); err == nil || err.Error() != "the sources are compared by git, which is not on PATH" {
		t.Errorf("without git: %q, %v", out, err)
	}
}

// What differs in a tree that was changed after it was built says nothing about the program.
func TestATreeThatWasChangedSinceItWasBuiltIsNotCompared(t *testing.T) {
	base, b, tree := publishedModules(t), newBuilder(t, t.TempDir()), checkout(t, nil)
	built := mustBuild(t, b, tree).Key
	write(t, tree.Dir, "vendor/example.org/needed/needed.go", neededModule["needed.go"]+"\n// later\n")
	if out, err := b.Difference(t.Context(), tree, base, built); err == nil || err.Error() != "the tree "+tree.Dir+" was changed after it was built" {
		t.Errorf("%q, %v", out, err)
	}
}

// A copy is built from published modules, so that a patch in the vendor directory would be lost.
func TestACopiedTreeMayNotLoseVendoredCode(t *testing.T) {
	_, b := publishedModules(t), newBuilder(t, t.TempDir())
	work := "go 1.24\n\nuse (\n\t.\n\t./staging/gone\n)\n"
	src := checkout(t, map[string]string{"go.work": work})
	if r := mustBuild(t, b, src); !strings.HasPrefix(r.Changes[0], "not built in place: ") || says(t, r) != "first one" {
		t.Errorf("vendored as published, it says %q: %q", says(t, r), r.Changes)
	}
	needed := filepath.Join(src.Dir, "vendor/example.org/needed")
	for _, c := range []struct{ file, text string }{
		{"needed.go", "package needed\n\nconst Word = \"patched\"\n"},
		{"more.go", "package needed\n\nfunc init() { println(\"patched\") }\n"},
	} {
		write(t, needed, c.file, c.text)
		want := filepath.Join(needed, c.file) + " is not as in example.org/needed v1.0.0, and the tree can't be built in place, where its vendor directory would count"
		if _, err := b.Build(t.Context(), src); err == nil || !strings.HasSuffix(err.Error(), want) || !errors.As(err, new(*build.TreeError)) {
			t.Errorf("with another %s: %v, want %s", c.file, err, want)
		}
		write(t, needed, "needed.go", neededModule["needed.go"])
	}
}
