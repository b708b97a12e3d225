package build_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/mutate"
)

// tiny is a module with two programs, of which one sends events and both know a constant.
var tiny = map[string]string{
	"go.mod": "module example.org/tiny\n\ngo 1.24\n\ngodebug default=go1.23\n\nreplace example.org/forbidden => ./FORBIDDEN\n",
	"pleg/pleg.go": `package pleg

import "fmt"

const Capacity = 1000

type Poller struct{ Events chan int }

func (p *Poller) Relist() {
	select {
	case p.Events <- 1:
	default:
		fmt.Println("discarded")
	}
}

func New() *Poller { return &Poller{Events: make(chan int, Capacity)} }
`,
	"cmd/subject/main.go": "package main\n\nimport \"example.org/tiny/pleg\"\n\nfunc main() { (&pleg.Poller{Events: make(chan int)}).Relist() }\n",
	"cmd/other/main.go":   "package main\n\nfunc main() { println(\"other\") }\n",
	"vendor/modules.txt":  "# a vendor directory that must not be looked at\n",
}

func layDown(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newBuilder(t *testing.T, dir string) *build.Builder {
	t.Helper()
	s, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := os.Lstat(s.GoDir()); err != nil { // or each test would compile the standard library anew
		out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
		if err = errors.Join(err, os.Symlink(strings.TrimSpace(string(out)), s.GoDir())); err != nil {
			t.Fatal(err)
		}
	}
	return &build.Builder{Cache: s}
}

var (
	unselect = mutate.Mutation{Kind: "unselect", Sites: 1,
		Spec: json.RawMessage(`{"package":"example.org/tiny/pleg","type":"Poller","methods":["Relist"],"channel":"Events"}`)}
	capacity40 = mutate.Mutation{Kind: "setConstant", Sites: 1,
		Spec: json.RawMessage(`{"package":"example.org/tiny/pleg","name":"Capacity","value":"40"}`)}
)

func tinySource(dir string, m ...mutate.Mutation) build.Source {
	return build.Source{Module: "example.org/tiny", Version: "v1.2.3", Dir: dir, Mutations: m,
		Packages:  []string{"example.org/tiny/cmd/subject", "example.org/tiny/cmd/other"},
		Constants: []build.ConstantRef{{Name: "capacity", Package: "example.org/tiny/pleg", Ident: "Capacity"}}}
}

func mustBuild(t *testing.T, b *build.Builder, src build.Source) build.Result {
	t.Helper()
	r, err := b.Build(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A pair differs in what was mutated and in nothing else: the program that the mutation can't reach is the same file.
func TestArmsDifferInTheMutationOnly(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir := layDown(t, tiny)
	b := newBuilder(t, t.TempDir())
	fixed, vulnerable := mustBuild(t, b, tinySource(dir)), mustBuild(t, b, tinySource(dir, unselect))
	if fixed.Binaries["subject"].SHA256 == vulnerable.Binaries["subject"].SHA256 {
		t.Error("the mutated subject is the same file as the fixed one")
	}
	if fixed.Binaries["other"].SHA256 != vulnerable.Binaries["other"].SHA256 {
		t.Error("a program without mutated packages differs between the arms")
	}
	if fixed.GraphSum != vulnerable.GraphSum || !slices.Equal(fixed.Flags, vulnerable.Flags) || fixed.GoVersion != vulnerable.GoVersion {
		t.Errorf("arms differ in more than the mutation:\n%+v\n%+v", fixed, vulnerable)
	}
	out, err := exec.CommandContext(t.Context(), fixed.Binaries["subject"].Path).CombinedOutput()
	if err != nil || string(out) != "discarded\n" {
		t.Errorf("the fixed subject says %q (%v), want that it discarded", out, err)
	}
	out, err = exec.CommandContext(t.Context(), vulnerable.Binaries["subject"].Path).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "[chan send]:\nexample.org/tiny/pleg.(*Poller).Relist") {
		t.Errorf("the vulnerable subject says %q (%v), want a goroutine blocked in its send", out, err)
	}
	if len(vulnerable.Sites) != 1 || vulnerable.Sites[0].File != "pleg/pleg.go" || vulnerable.Sites[0].Line != 10 {
		t.Errorf("sites %+v, want pleg/pleg.go:10", vulnerable.Sites)
	}
	if want := "unselect at pleg/pleg.go:10"; !slices.Contains(vulnerable.Changes, want) {
		t.Errorf("changes %q lack %q", vulnerable.Changes, want)
	}
}

// Where the source lies and where it is built leave no trace in a program, or digests would differ from machine to
// machine.
func TestBuildsAreReproducible(t *testing.T) {
	one := mustBuild(t, newBuilder(t, t.TempDir()), tinySource(layDown(t, tiny), unselect))
	two := mustBuild(t, newBuilder(t, t.TempDir()), tinySource(layDown(t, tiny), unselect))
	if one.Binaries["subject"].SHA256 != two.Binaries["subject"].SHA256 || one.GraphSum != two.GraphSum {
		t.Errorf("two builds of one source differ:\n%+v\n%+v", one, two)
	}
}

func TestSecondBuildIsCached(t *testing.T) {
	dir, store := layDown(t, tiny), t.TempDir()
	first := mustBuild(t, newBuilder(t, store), tinySource(dir))
	second := mustBuild(t, newBuilder(t, store), tinySource(dir))
	if first.Cached || !second.Cached {
		t.Errorf("cached %v then %v, want false then true", first.Cached, second.Cached)
	}
	if first.Binaries["subject"] != second.Binaries["subject"] {
		t.Errorf("the cache gave %+v, built was %+v", second.Binaries["subject"], first.Binaries["subject"])
	}
	if elsewhere := mustBuild(t, newBuilder(t, store), tinySource(layDown(t, tiny))); !elsewhere.Cached {
		t.Error("the same tree in another directory was built again")
	}
	if err := os.WriteFile(filepath.Join(dir, "cmd/other/main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if third := mustBuild(t, newBuilder(t, store), tinySource(dir)); third.Cached {
		t.Error("a changed directory was served from the cache")
	}
}

// How many compilers run at once changes nothing that they make; other flags may.
func TestFlagsThatChangeNothingAreNoOtherBuild(t *testing.T) {
	store, dir := t.TempDir(), layDown(t, tiny)
	for _, c := range []struct {
		flags  string
		cached bool
	}{{"-modcacherw", false}, {"-p=1 -modcacherw", true}, {"-modcacherw -tags=other", false}} {
		t.Setenv("GOFLAGS", c.flags)
		if got := mustBuild(t, newBuilder(t, store), tinySource(dir)); got.Cached != c.cached {
			t.Errorf("with GOFLAGS=%q it was in the cache: %v, want %v", c.flags, got.Cached, c.cached)
		}
	}
}

// What is in these files isn't part of a build's key.
func TestFlagsThatNameFilesAreRefused(t *testing.T) {
	b, src := newBuilder(t, t.TempDir()), tinySource(layDown(t, tiny))
	for _, flag := range []string{"-overlay=changes.json", "-modfile=other.mod", "-toolexec=wrapper", "-pgo=cpu.pprof"} {
		t.Setenv("GOFLAGS", "-modcacherw "+flag)
		want := "GOFLAGS has " + flag + ", and what that brings into a build could change without anybody noticing"
		if _, err := b.Build(t.Context(), src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: %v, want %q", flag, err, want)
		}
	}
	t.Setenv("GOFLAGS", "-modcacherw -pgo=off")
	mustBuild(t, b, src)
}

func TestChangedBinaryIsBuiltAgain(t *testing.T) {
	b := newBuilder(t, t.TempDir())
	src := tinySource(layDown(t, tiny))
	first := mustBuild(t, b, src).Binaries["subject"]
	if err := os.WriteFile(first.Path, []byte("not what was built"), 0o755); err != nil {
		t.Fatal(err)
	}
	var said []string
	b.Progress = func(l string) { said = append(said, l) }
	again := mustBuild(t, b, src)
	if again.Cached || again.Binaries["subject"] != first {
		t.Errorf("got %+v (cached %v), want %+v built anew", again.Binaries["subject"], again.Cached, first)
	}
	if !strings.Contains(strings.Join(said, "\n"), "a cached binary was changed") {
		t.Errorf("said nothing of the changed binary: %q", said)
	}
}

func TestBuildFails(t *testing.T) {
	dir := layDown(t, tiny)
	twice := unselect
	twice.Sites = 2
	broken := with(tiny, "cmd/other/main.go", "package main\n\nfunc main() { undefined() }\n")
	needsForbidden := with(tiny, "cmd/other/main.go", "package main\n\nimport _ \"example.org/forbidden\"\n\nfunc main() {}\n")
	needsForbidden["go.mod"] += "require example.org/forbidden v1.0.0\n"
	for _, tc := range []struct {
		name string
		src  build.Source
		want string
	}{
		{"too few sites", tinySource(dir, twice),
			`mutation unselect: v1.2.3: pleg/pleg.go: want 2 select sending on Events with default in (*Poller).Relist, found 1 (found: a site at line 10)`},
		{"does not compile", tinySource(layDown(t, broken)), "undefined: undefined"},
		{"forbidden module", tinySource(layDown(t, needsForbidden)), "example.org/forbidden"},
		{"no packages", build.Source{Module: "m", Version: "v1.0.0"}, "source m@v1.0.0: no packages to build"},
		{"foreign package", build.Source{Module: "m", Version: "v1.0.0", Packages: []string{"n/cmd"}}, "package n/cmd is not in the module"},
		{"one name twice", build.Source{Module: "m", Version: "v1.0.0", Packages: []string{"m/a/x", "m/b/x"}}, "m/a/x and m/b/x are both named x"},
		{"other module", build.Source{Module: "example.org/other", Version: "v1.0.0", Dir: dir, Packages: []string{"example.org/other/cmd"}},
			"is not the go.mod of example.org/other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("GOPROXY", "off")
			b := newBuilder(t, t.TempDir())
			if _, err := b.Build(t.Context(), tc.src); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
			if list, err := b.Cache.List(); err != nil || len(list) != 0 {
				t.Errorf("a failed build left %v (%v) in the cache", list, err)
			}
		})
	}
}

// with is files with one of them replaced.
func with(files map[string]string, name, text string) map[string]string {
	out := map[string]string{name: text}
	for n, s := range files {
		if n != name {
			out[n] = s
		}
	}
	return out
}

// A cancelled build ends the go command and everything that it started.
func TestCancelKillsTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	pidFile, fake := filepath.Join(dir, "pid"), filepath.Join(dir, "go")
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = env ]; then echo '{}'; exit; fi\nsleep 300 &\necho $! > %s.new\nmv %s.new %s\nwait\n", pidFile, pidFile, pidFile)
	if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	b := newBuilder(t, t.TempDir())
	b.Go = fake
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { _, err = b.Build(ctx, tinySource(layDown(t, tiny))) })
	var pid int
	observe(t, "the child's start", func() bool {
		text, err := os.ReadFile(pidFile)
		if err != nil {
			return false
		}
		_, err = fmt.Sscan(string(text), &pid)
		return err == nil
	})
	cancel()
	wg.Wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
	observe(t, "the child's end", func() bool { return gone(pid) })
}

// gone reports whether a process is no more, or only waits for its new parent to notice.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func observe(t *testing.T, what string, seen func() bool) {
	t.Helper()
	const within = time.Minute
	deadline := time.After(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !seen() {
		select {
		case <-deadline:
			t.Fatalf("did not see %s within %s", what, within)
		case <-tick.C:
		}
	}
}

func TestFixture(t *testing.T) {
	root := layDown(t, map[string]string{
		"go.mod":                 "module example.org/harness\n\ngo 1.24\n",
		"wire/wire.go":           "package wire\n\nconst Word = \"hello\"\n",
		"fixtures/agent/main.go": "package main\n\nimport \"example.org/harness/wire\"\n\nfunc main() { println(wire.Word) }\n",
	})
	b := newBuilder(t, t.TempDir())
	fixture := func() build.Binary {
		bin, err := b.Fixture(t.Context(), root, "agent")
		if err != nil {
			t.Fatal(err)
		}
		return bin
	}
	first := fixture()
	if out, err := exec.CommandContext(t.Context(), first.Path).CombinedOutput(); err != nil || string(out) != "hello\n" {
		t.Errorf("the fixture says %q (%v)", out, err)
	}
	if first.Package != "example.org/harness/fixtures/agent" || fixture() != first {
		t.Errorf("fixture %+v, want the same again and its import path", first)
	}
	if err := os.WriteFile(filepath.Join(root, "wire/wire.go"), []byte("package wire\n\nconst Word = \"bye\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if changed := fixture(); changed.SHA256 == first.SHA256 {
		t.Error("a changed package of the fixture's module was not noticed")
	}
	for name, want := range map[string]string{"../agent": "is not one plain path element", "none": "reading fixture none"} {
		if _, err := b.Fixture(t.Context(), root, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fixture %q: error %v, want %s", name, err, want)
		}
	}
}
