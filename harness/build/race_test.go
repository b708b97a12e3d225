package build_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// A program built with the race detector says which two sides race, and runs without any library.
func TestRace(t *testing.T) {
	src := build.Source{Module: "example.org/tree", Version: "v0.0.0", Packages: []string{"example.org/tree/cmd/subject"}, Race: true, Dir: layDown(t, map[string]string{
		"go.mod": "module example.org/tree\n\ngo 1.24\n",
		"cmd/subject/main.go": `package main

var shared int

func write(done chan bool) { shared++; done <- true }

func main() {
	done := make(chan bool)
	go write(done)
	println(shared)
	<-done
}
`,
	})}
	b := newBuilder(t, t.TempDir())
	r := mustBuild(t, b, src)
	if !slices.Contains(r.Flags, "-race") || !slices.Contains(r.Flags, "CGO_ENABLED=1") || !strings.Contains(strings.Join(r.Changes, "\n"), "with the race detector and static") {
		t.Errorf("flags %q and changes %q don't say that it has the race detector", r.Flags, r.Changes)
	}
	p, err := build.Inspect(t.Context(), r.Binaries["subject"].Path, "subject")
	if err != nil || p.Loader != "" {
		t.Errorf("it needs %q of the node (%v), want a static program", p.Loader, err)
	}
	out, _ := exec.CommandContext(t.Context(), r.Binaries["subject"].Path).CombinedOutput() // it exits with 66
	races, cut := goroutine.Races(strings.Split(string(out), "\n"))
	if len(races) != 1 || cut || !races[0].Sides[0].Has("main.write") && !races[0].Sides[1].Has("main.write") {
		t.Errorf("races %+v, cut %t, in:\n%s", races, cut, out)
	}
	src.Race = false
	if slices.Contains(mustBuild(t, b, src).Flags, "-race") {
		t.Error("the same source without the detector is taken for the one with it")
	}
	t.Setenv("CC", "no-such-compiler")
	src.Race, src.LDFlags = true, []string{"-X main.x=1"}
	if _, err := b.Build(t.Context(), src); err == nil || !strings.Contains(err.Error(), "no-such-compiler is not on PATH: as root on Debian: apt-get install") {
		t.Errorf("without a C compiler: %v", err)
	}
}

// With the race detector a build takes other files of a tree than without it: a change in these makes another program.
func TestATreeChangesWithTheFilesOfItsRaceDetector(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	raced := func(word string) string {
		return "//go:build race && netgo\n\npackage main\n\nconst word = \"" + word + "\"\n"
	}
	inC := func(number string) string {
		return "//go:build cgo\n\npackage main\n\n// static int number(void) { return " + number + "; }\nimport \"C\"\n\nfunc number() int { return int(C.number()) }\n"
	}
	dir := layDown(t, map[string]string{
		"go.mod":                "module example.org/tree\n\ngo 1.24\n",
		"cmd/subject/main.go":   "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(word, number()) }\n",
		"cmd/subject/plain.go":  "//go:build !race\n\npackage main\n\nconst word = \"plain\"\n",
		"cmd/subject/raced.go":  raced("raced"),
		"cmd/subject/number.go": "//go:build !cgo\n\npackage main\n\nfunc number() int { return 0 }\n",
		"cmd/subject/c.go":      inC("1"),
	})
	b, src := newBuilder(t, t.TempDir()), treeSource(dir)
	src.Race = true
	if got := says(t, mustBuild(t, b, src)); got != "raced 1" {
		t.Fatalf("it says %q, want raced 1", got)
	}
	write(t, dir, "cmd/subject/raced.go", raced("changed"))
	if got := says(t, mustBuild(t, b, src)); got != "changed 1" {
		t.Errorf("after a change of a file that only the detector's build takes, it says %q", got)
	}
	write(t, dir, "cmd/subject/c.go", inC("2"))
	if got := says(t, mustBuild(t, b, src)); got != "changed 2" {
		t.Errorf("after a change of a file of cgo's, it says %q", got)
	}
}
