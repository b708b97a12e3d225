package candidate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// git runs git in a folder, without the settings of whoever runs the test.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// lay writes files below a folder.
func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// of is a scenario of a subject from a module.
func of(module string) *scenario.Scenario {
	return &scenario.Scenario{Spec: scenario.Spec{Subject: "subject", Pairs: []scenario.Pair{{Name: "p", Default: true, Arms: []scenario.Arm{
		{Name: "fixed", Role: scenario.Fixed, Source: scenario.Source{Module: module, Version: "v1.2.3", Package: module + "/cmd/subject"}}}}}}}
}

// Whoever reads of a candidate later finds the commit by its hash, and the branch that stood for it then.
func TestACommitIsNamed(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]string{"go.mod": "module example.org/tree\n\ngo 1.24\n", "cmd/subject/main.go": "package main\n\nfunc main() {}\n"})
	git(t, dir, "init", "-q", "-b", "my-backport")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "all")
	commit := git(t, dir, "rev-parse", "HEAD")
	src, err := candidate.Read(t.Context(), of("example.org/tree"), "git:"+dir+"@my-backport", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if src.Commit != commit || src.Ref != "my-backport" || src.Change() != "commit "+commit[:12]+" (my-backport)" {
		t.Errorf("it is named as %q: %+v, want commit %s", src.Change(), src, commit)
	}
	if src, err = candidate.Read(t.Context(), of("example.org/tree"), "git:"+dir+"@"+commit, t.TempDir(), nil); err != nil || src.Change() != "commit "+commit[:12] {
		t.Errorf("by its hash it is named as %q, %v", src.Change(), err)
	}
}

// A patch is told from another one of its name by its hash.
func TestAPatchIsNamed(t *testing.T) {
	proxy := t.TempDir()
	lay(t, filepath.Join(proxy, "example.org/tree/@v"), map[string]string{"v1.2.3.mod": "module example.org/tree\n\ngo 1.24\n",
		"v1.2.3.info": `{"Version":"v1.2.3"}`, "list": "v1.2.3\n"})
	tree := t.TempDir()
	lay(t, tree, map[string]string{"go.mod": "module example.org/tree\n\ngo 1.24\n", "cmd/subject/main.go": "package main\n\nfunc main() { println(1) }\n"})
	f, err := os.Create(filepath.Join(proxy, "example.org/tree/@v/v1.2.3.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(zip.CreateFromDir(f, module.Version{Path: "example.org/tree", Version: "v1.2.3"}, tree), f.Close()); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOPROXY": "file://" + proxy, "GONOSUMDB": "*", "GOFLAGS": "-modcacherw", "GOMODCACHE": t.TempDir()} {
		t.Setenv(name, value)
	}
	text := "diff --git a/cmd/subject/main.go b/cmd/subject/main.go\n--- a/cmd/subject/main.go\n+++ b/cmd/subject/main.go\n" +
		"@@ -1,3 +1,3 @@\n package main\n \n-func main() { println(1) }\n+func main() { println(2) }\n"
	dir := t.TempDir()
	lay(t, dir, map[string]string{"fix.patch": text})
	src, err := candidate.Read(t.Context(), of("example.org/tree"), "patch:"+filepath.Join(dir, "fix.patch")+"@v1.2.3", t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	if want := hex.EncodeToString(sum[:]); src.PatchSum != want || src.Change() != "the patch fix.patch (SHA-256 "+want[:12]+")" {
		t.Errorf("it is named as %q: %+v, want SHA-256 %s", src.Change(), src, want)
	}
}
