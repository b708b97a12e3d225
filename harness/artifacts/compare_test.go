package artifacts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// tree lays down a module whose program says a word.
func tree(t *testing.T, word string) scenario.Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.org/tree\n\ngo 1.24\n", "cmd/agent/main.go": "package main\n\nfunc main() { println(\"" + word + "\") }\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return scenario.Source{Module: "example.org/tree", Version: "v1.2.3", Package: "example.org/tree/cmd/agent", Dir: dir}
}

// A bundle shows how a candidate's tree differs from the fixed arm's source, whether or not it was committed. Where nobody
// can tell, it says why.
func TestATreesDifferenceFromTheFixedArm(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	program := agent(t)
	for _, c := range []struct {
		name  string
		fixed func() scenario.Source
		want  string
	}{
		{"a source", func() scenario.Source { return tree(t, "cured") }, "-func main() { println(\"cured\") }\n+func main() { println(\"mine\") }\n"},
		{"an executable", func() scenario.Source { return given(t, program, "fixed") }, "# How the source differs is not known: the arm fixed is an executable\n"},
	} {
		arm := func(role string, src scenario.Source) plan.Arm {
			return plan.Arm{Arm: scenario.Arm{Name: role, Role: role, Source: src}}
		}
		p := &plan.Plan{Trials: []plan.Trial{{Pair: "p", Subject: "agent", Arms: []plan.Arm{arm(scenario.Vulnerable, given(t, program, "ill")),
			arm(scenario.Fixed, c.fixed()), arm(scenario.Candidate, tree(t, "mine"))}}}}
		a, err := Open(Options{CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Build(t.Context(), p); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		b, err := a.Of(p.Trials[0].Arms[2].Arm)
		if err != nil || !strings.HasSuffix(string(b.Diff), c.want) || len(b.Local) > 0 {
			t.Errorf("%s: the difference is %q, want %q at its end; uncommitted is %q; %v", c.name, b.Diff, c.want, b.Local, err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
