package artifacts_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
)

// proxied has a module proxy of the test's own serve a Kubernetes at a version, with these programs.
func proxied(t *testing.T, version string, programs ...string) {
	t.Helper()
	const path = "k8s.io/kubernetes"
	tree, proxy := t.TempDir(), t.TempDir()
	mod := "module " + path + "\n\ngo 1.24\n"
	must(t, os.WriteFile(filepath.Join(tree, "go.mod"), []byte(mod), 0o644))
	must(t, os.MkdirAll(filepath.Join(tree, "pkg/version"), 0o755))
	must(t, os.WriteFile(filepath.Join(tree, "pkg/version/version.go"), []byte("package version\n\nvar gitVersion = \""+version+"\"\n\nfunc Get() string { return gitVersion }\n"), 0o644))
	for _, name := range programs {
		must(t, os.MkdirAll(filepath.Join(tree, "cmd", name), 0o755))
		must(t, os.WriteFile(filepath.Join(tree, "cmd", name, "main.go"), []byte("package main\n\nimport \"k8s.io/kubernetes/pkg/version\"\n\nfunc main() { println(version.Get()) }\n"), 0o644))
	}
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	must(t, os.MkdirAll(at, 0o755))
	f, err := os.Create(filepath.Join(at, version+".zip"))
	must(t, err)
	must(t, errors.Join(zip.CreateFromDir(f, module.Version{Path: path, Version: version}, tree), f.Close()))
	must(t, os.WriteFile(filepath.Join(at, version+".mod"), []byte(mod), 0o644))
	must(t, os.WriteFile(filepath.Join(at, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644))
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOFLAGS", "-modcacherw") // or the test's directory can't be removed
	t.Setenv("GOMODCACHE", t.TempDir())
}

// A part that had to be built beside published programs differs from them in more than its version. A trial says so if
// its clusters have that part.
func TestPartsThatAreBuiltBesidePublishedProgramsDeviate(t *testing.T) {
	const path, old, cured = "k8s.io/kubernetes", "v1.33.1", "v1.33.2"
	from, _, _ := publishing(t, old, cured)
	proxied(t, cured, "kube-apiserver", "kube-scheduler")
	p, dir := apiservers(old, cured), t.TempDir()
	compiled, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	must(t, err)
	must(t, os.Symlink(strings.TrimSpace(string(compiled)), filepath.Join(dir, "go-build"))) // or all is compiled anew
	a, err := artifacts.Open(artifacts.Options{CacheDir: dir, Publisher: from})
	must(t, err)
	defer func() { must(t, a.Close()) }()
	must(t, a.Decide(t.Context(), p))
	in := func(versions ...string) plan.Trial {
		one := p.Trials[0]
		for _, v := range versions {
			one.Clusters = append(one.Clusters, plan.Cluster{Topology: cluster.Topology{Version: v}})
		}
		return one
	}
	get := func(name string) {
		t.Helper()
		_, err := a.BuildPrograms(t.Context(), path, cured, path+"/cmd/"+name)
		must(t, err)
	}
	get("kube-apiserver")
	if said := a.MixedParts(in(old, cured)); len(said) != 0 {
		t.Errorf("where all parts are published, it is said that %q", said)
	}
	get("kube-scheduler") // nobody publishes it
	want := []string{"the clusters' kube-scheduler v1.33.2 was built here and other programs of the run were published: they differ in compiler and flags"}
	for _, one := range []plan.Trial{in(old, cured), in(cured)} {
		if diff := cmp.Diff(want, a.MixedParts(one)); diff != "" {
			t.Errorf("of clusters with that part (-want +got):\n%s", diff)
		}
	}
	if said := a.MixedParts(in(old)); len(said) != 0 {
		t.Errorf("of clusters without that part it is said that %q", said)
	}
	if said := a.Parts(); !strings.Contains(said, "as published: kube-apiserver v1.33.2; built from source: k8s.io/kubernetes@v1.33.2") {
		t.Errorf("the parts are said to come %q", said)
	}

	built := apiservers(old, cured)
	built.Programs = &plan.Programs{From: plan.Built, Why: "--build asks for it"}
	b, err := artifacts.Open(artifacts.Options{CacheDir: dir, Publisher: from})
	must(t, err)
	defer func() { must(t, b.Close()) }()
	must(t, b.Decide(t.Context(), built))
	_, err = b.BuildPrograms(t.Context(), path, cured, path+"/cmd/kube-scheduler")
	must(t, err)
	if said := b.MixedParts(in(old, cured)); len(said) != 0 {
		t.Errorf("where all is built, it is said that %q", said)
	}
}
