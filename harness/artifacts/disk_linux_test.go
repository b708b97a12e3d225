package artifacts_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/disktest"
)

// A candidate for which the disk is too small is no mistake in its source. The arm that was built before is kept, and with
// more room the same plan goes on from there.
func TestACandidateThatIsBuiltOnAFullDisk(t *testing.T) {
	dir := disktest.Small(t, "16")
	if dir == "" {
		return
	}
	compiled, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	must(t, err)
	must(t, os.Symlink(strings.TrimSpace(string(compiled)), filepath.Join(dir, "go-build"))) // or all is compiled anew
	t.Setenv("GOPROXY", "off")
	tree := func(main string) scenario.Source {
		at := t.TempDir()
		must(t, os.WriteFile(filepath.Join(at, "go.mod"), []byte("module example.org/subject\n\ngo 1.24\n"), 0o644))
		must(t, os.WriteFile(filepath.Join(at, "main.go"), []byte("package main\n\n"+main), 0o644))
		return scenario.Source{Module: "example.org/subject", Version: "v0.0.0", Dir: at, Package: "example.org/subject"}
	}
	arm := func(name string, s scenario.Source) plan.Arm {
		return plan.Arm{Arm: scenario.Arm{Name: name, Role: name, Source: s}}
	}
	p := &plan.Plan{Trials: []plan.Trial{{Pair: "modern", Subject: "kube-apiserver", Arms: []plan.Arm{
		arm(scenario.Vulnerable, tree("func main() { println(\"small\") }\n")),
		arm(scenario.Candidate, tree("var data = [32 << 20]byte{1}\n\nfunc main() {\n\tfor i := range data {\n\t\tdata[i]++\n\t}\n\tprintln(data[7])\n}\n"))}}}}
	a, err := artifacts.Open(artifacts.Options{CacheDir: dir, MaxDisk: 20 << 30})
	must(t, err)
	defer func() { must(t, a.Close()) }()
	err = a.Build(t.Context(), p)
	var full *cache.FullError
	if !errors.As(err, &full) || full.Disk.Folder != dir || errors.As(err, new(*candidate.Error)) {
		t.Fatalf("on a full disk: %v, want a *cache.FullError of %s and no *candidate.Error", err, dir)
	}
	if of, err := filepath.Glob(filepath.Join(dir, "scratch", "*", "*")); err != nil || len(of) != 0 {
		t.Errorf("%q is left (%v)", of, err)
	}
	if of, err := filepath.Glob(filepath.Join(dir, "entries", "build", "*")); err != nil || len(of) != 1 {
		t.Errorf("the builds %q are kept, want the vulnerable arm's alone (%v)", of, err)
	}
	disktest.Grow(t, dir, "256")
	must(t, a.Build(t.Context(), p))
	if b, err := a.Of(p.Trials[0].Arms[1].Arm); err != nil || b.Digest == "" {
		t.Errorf("with more room the candidate is %+v, %v", b, err)
	}
}
