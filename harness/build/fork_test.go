package build_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/kube-relapse/relapse/harness/build"
)

// proxied publishes a module's files under a path and version on a module proxy of the test's own.
func proxied(t *testing.T, path, version string, files map[string]string) {
	t.Helper()
	proxy := t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(zip.CreateFromDir(f, module.Version{Path: path, Version: version}, layDown(t, files)), f.Close()); err != nil {
		t.Fatal(err)
	}
	write(t, at, version+".mod", files["go.mod"])
	write(t, at, version+".info", `{"Version":"`+version+`"}`)
	write(t, at, "list", version+"\n")
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOFLAGS", "-modcacherw") // or the test's directory can't be removed
	t.Setenv("GOMODCACHE", t.TempDir())
}

func TestAForkIsBuiltInPlaceOfItsModule(t *testing.T) {
	files := map[string]string{
		"go.mod":              "module example.org/tree\n\ngo 1.24\n",
		"cmd/subject/main.go": "package main\n\nconst Capacity = 5000\n\nvar events = make(chan int, Capacity)\n\nfunc main() { println(\"forked\") }\n",
	}
	proxied(t, "example.net/fork", "v1.2.3-acme.1", files)
	version, err := build.Resolve(t.Context(), "example.net/fork", "latest")
	if err != nil || version != "v1.2.3-acme.1" {
		t.Fatalf("latest is %q, %v", version, err)
	}
	src := build.Source{Module: "example.org/tree", Version: "v1.2.3", Fork: "example.net/fork@" + version, Packages: []string{"example.org/tree/cmd/subject"},
		Constants: []build.ConstantRef{{Name: "capacity", Package: "example.org/tree/cmd/subject", Ident: "Capacity"}}}
	r := mustBuild(t, newBuilder(t, t.TempDir()), src)
	if got := says(t, r); got != "forked" || r.Constants["capacity"].Int != 5000 {
		t.Errorf("the subject says %q, its capacity is %d", got, r.Constants["capacity"].Int)
	}
	if want := "built from a copy of example.net/fork@v1.2.3-acme.1, in place of example.org/tree v1.2.3, with -trimpath"; !slices.ContainsFunc(r.Changes,
		func(c string) bool { return strings.HasPrefix(c, want) }) {
		t.Errorf("changes %q lack %q", r.Changes, want)
	}
	if _, err := build.Resolve(t.Context(), "example.net/none", "v1.0.0"); err == nil || !strings.Contains(err.Error(), "looking for example.net/none@v1.0.0: ") {
		t.Errorf("a module that isn't there: %v", err)
	}
}
