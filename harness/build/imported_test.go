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

// far leaves neither modules nor a proxy.
func far(t *testing.T) {
	t.Helper()
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
}

// What the cache has is found without asking for a module, and with what another Go said of itself even without Go.
func TestWhatIsCachedNeedsNoNetworkAndNoGo(t *testing.T) {
	proxied(t, "example.org/wire", "v1.0.0", map[string]string{"go.mod": "module example.org/wire\n\ngo 1.24\n", "wire.go": "package wire\n\nconst Word = \"hello\"\n"})
	root := layDown(t, map[string]string{
		"go.mod":                 "module example.org/harness\n\ngo 1.24\n\nrequire example.org/wire v1.0.0\n",
		"fixtures/agent/main.go": "package main\n\nimport \"example.org/wire\"\n\nfunc main() { println(wire.Word) }\n",
	})
	tidy := exec.CommandContext(t.Context(), "go", "mod", "tidy")
	tidy.Dir = root
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir, src := t.TempDir(), tinySource(layDown(t, tiny))
	b := newBuilder(t, dir)
	fixture, err := b.Fixture(t.Context(), root, "agent")
	if err != nil {
		t.Fatal(err)
	}
	made := mustBuild(t, b, src)
	tc, err := b.Toolchain(t.Context())
	if err = errors.Join(err, build.AddToolchain(dir, tc), build.AddToolchain(dir, tc)); err != nil {
		t.Fatal(err)
	}

	far(t)
	b = newBuilder(t, dir)
	if again, err := b.Fixture(t.Context(), root, "agent"); err != nil || again != fixture {
		t.Errorf("without modules the fixture is %+v, %v; want %+v", again, err, fixture)
	}
	if again := mustBuild(t, b, src); !again.Cached || again.Key != made.Key {
		t.Errorf("without modules the source is built anew: %+v", again)
	}

	t.Setenv("PATH", t.TempDir())
	const advice = "no go command on PATH: install Go 1.26 or later and put its bin folder on PATH, or relapse cache import FILE what a host with Go exported"
	if _, err := b.Fixture(t.Context(), root, "agent"); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("without Go: %v, want %s", err, advice)
	}
	all, err := build.Toolchains(dir)
	if err != nil || !slices.Equal(all, []build.Toolchain{tc}) {
		t.Fatalf("the toolchains are %+v, %v; want %+v once", all, err, tc)
	}
	b.LookAs(&all[0])
	if again, err := b.Fixture(t.Context(), root, "agent"); err != nil || again != fixture {
		t.Errorf("without Go the fixture is %+v, %v; want %+v", again, err, fixture)
	}
	if again := mustBuild(t, b, src); !again.Cached || again.Key != made.Key || again.Constants["capacity"].Int != 1000 {
		t.Errorf("without Go the source is %+v", again)
	}
	want := "this run takes all programs as they were imported, built by " + tc.GOVERSION + ", and builds none (relapse cache import FILE again)"
	if _, err := b.Build(t.Context(), tinySource(src.Dir, unselect)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without Go, what isn't there: %v, want %s", err, want)
	}
}

// A version without a constant has none for ever, so that nobody is asked for its source twice.
func TestAnUnreadableConstantIsRemembered(t *testing.T) {
	proxied(t, "example.org/tree", "v1.2.3", map[string]string{"go.mod": "module example.org/tree\n\ngo 1.24\n", "cmd/subject/main.go": "package main\n\nfunc main() {}\n"})
	src := build.Source{Module: "example.org/tree", Version: "v1.2.3", Packages: []string{"example.org/tree/cmd/subject"},
		Constants: []build.ConstantRef{{Name: "capacity", Package: "example.org/tree/cmd/subject", Ident: "Capacity"}}}
	b := newBuilder(t, t.TempDir())
	const want = "reading the constants of example.org/tree@v1.2.3: constant Capacity of example.org/tree@v1.2.3, package example.org/tree/cmd/subject: no constant Capacity"
	for range 2 {
		if _, err := b.Constants(t.Context(), src); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		far(t)
	}
	src.Version = "v1.2.4" // what nobody could fetch isn't remembered
	for range 2 {
		if _, err := b.Constants(t.Context(), src); err == nil || !strings.Contains(err.Error(), "a module can't be fetched") {
			t.Errorf("a version that can't be fetched: %v", err)
		}
	}
}

// A file that couldn't be read this time may be read the next time.
func TestAHostThatFailedIsNotRemembered(t *testing.T) {
	proxied(t, "example.org/tree", "v1.2.3", map[string]string{"go.mod": "module example.org/tree\n\ngo 1.24\n",
		"pleg/pleg.go": "package pleg\n\nconst Capacity = 7\n\nfunc Make() chan int { return make(chan int, Capacity) }\n"})
	b := newBuilder(t, t.TempDir())
	read := func(ident string) (map[string]build.Constant, error) {
		return b.Constants(t.Context(), build.Source{Module: "example.org/tree", Version: "v1.2.3", Packages: []string{"example.org/tree/pleg"},
			Constants: []build.ConstantRef{{Name: "capacity", Package: "example.org/tree/pleg", Ident: ident}}})
	}
	if _, err := read("Nothing"); err == nil {
		t.Fatal("a constant that isn't there was read")
	}
	loop := filepath.Join(os.Getenv("GOMODCACHE"), "example.org/tree@v1.2.3/pleg/loop.go")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	if _, err := read("Capacity"); err == nil || !strings.Contains(err.Error(), "too many levels of symbolic links") {
		t.Fatalf("with a file that can't be read: %v", err)
	}
	if err := os.Remove(loop); err != nil {
		t.Fatal(err)
	}
	if got, err := read("Capacity"); err != nil || got["capacity"].Int != 7 {
		t.Errorf("once the file can be read: %+v, %v", got, err)
	}
}

// A fixture is built again when anything of its own module that it may take in has changed, and not for a stranger.
func TestAFixturesKey(t *testing.T) {
	root := layDown(t, map[string]string{
		"go.mod":                     "module example.org/harness\n\ngo 1.24\n",
		"wire/wire.go":               "package wire\n\nimport _ \"embed\"\n\n//go:embed unit.service\nvar Word string\n",
		"wire/unit.service":          "hello",
		"other/other.go":             "package other\n",
		"fixtures/agent/main.go":     "package main\n\nimport \"example.org/harness/wire\"\n\nfunc main() { println(wire.Word) }\n",
		"fixtures/library/nobody.go": "package library\n",
	})
	b := newBuilder(t, t.TempDir())
	fixture := func() string {
		t.Helper()
		bin, err := b.Fixture(t.Context(), root, "agent")
		if err != nil {
			t.Fatal(err)
		}
		return bin.Path
	}
	first := fixture()
	write(t, filepath.Join(root, "other"), "other.go", "package other\n\nvar X int\n")
	if fixture() != first {
		t.Error("it is built again for a package that it doesn't import")
	}
	write(t, filepath.Join(root, "wire"), "unit.service", "bye")
	if fixture() == first {
		t.Error("a file that is embedded was changed, and it isn't built again")
	}
	// Go reads what links lead to: a build of before such a file was changed would be another program than the source.
	elsewhere := layDown(t, map[string]string{"said.go": "package main\n\nconst said = 1\n", "far/far.go": "package far\n\nconst Said = 1\n"})
	linked := filepath.Join(root, "fixtures", "agent", "said.go")
	if err := errors.Join(os.Symlink(filepath.Join(elsewhere, "said.go"), linked), os.Symlink(filepath.Join(elsewhere, "far"), filepath.Join(root, "far"))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "fixtures", "agent"), "main.go", "package main\n\nimport \"example.org/harness/far\"\n\nfunc main() { println(said, far.Said) }\n")
	for file, text := range map[string]string{"said.go": "package main\n\nconst said = 2\n", "far/far.go": "package far\n\nconst Said = 2\n"} {
		before := fixture()
		write(t, elsewhere, file, text)
		if fixture() == before {
			t.Errorf("%s was changed, to which a link leads, and the fixture isn't built again", file)
		}
	}
	if _, err := b.Fixture(t.Context(), root, "library"); err == nil || !strings.Contains(err.Error(), "reading fixture library: there is no program in "+filepath.Join(root, "fixtures", "library")) {
		t.Errorf("a fixture without a program: %v", err)
	}
	if err := os.Remove(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Fixture(t.Context(), root, "agent"); err == nil || !strings.Contains(err.Error(), " is in no Go module") {
		t.Errorf("a fixture in no module: %v", err)
	}
}
