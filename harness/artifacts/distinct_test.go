package artifacts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// agent builds a program of no dependencies.
func agent(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.org/agent\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "agent", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// given is a file with a program, and a text appended to it, which changes its digest only.
func given(t *testing.T, program []byte, appended string) scenario.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, slices.Concat(program, []byte(appended)), 0o755); err != nil {
		t.Fatal(err)
	}
	return scenario.Source{Binary: path}
}

func TestAPairOfOneProgramIsRefusedOnceItIsBuilt(t *testing.T) {
	p := agent(t)
	one, same, other := given(t, p, ""), given(t, p, ""), given(t, p, "x")
	arm := func(name, role string, src scenario.Source) plan.Arm {
		return plan.Arm{Arm: scenario.Arm{Name: name, Role: role, Source: src}}
	}
	upgraded := func(name, role string, from, to scenario.Source) plan.Arm {
		to.Before = []scenario.Earlier{{Binary: from.Binary}}
		return arm(name, role, to)
	}
	swapped := arm("vulnerable", scenario.Vulnerable, one)
	swapped.BuildOf = "fixed"
	for _, c := range []struct {
		name string
		arms []plan.Arm
		want string
	}{
		{"two programs", []plan.Arm{arm("vulnerable", scenario.Vulnerable, one), arm("fixed", scenario.Fixed, other)}, ""},
		{"one program", []plan.Arm{arm("vulnerable", scenario.Vulnerable, one), arm("fixed", scenario.Fixed, same)},
			"pair modern: vulnerable and fixed are the same program (SHA-256 "},
		{"the same one after the other", []plan.Arm{upgraded("vulnerable", scenario.Vulnerable, other, one), upgraded("fixed", scenario.Fixed, other, same)},
			"pair modern: vulnerable and fixed are the same program (SHA-256 "},
		{"the same after another", []plan.Arm{upgraded("vulnerable", scenario.Vulnerable, other, one), upgraded("fixed", scenario.Fixed, given(t, p, "y"), same)}, ""},
		{"one source", []plan.Arm{arm("fixed", scenario.Fixed, one), arm("vulnerable", scenario.Vulnerable, one)},
			"pair modern: vulnerable and fixed are the same program (SHA-256 "},
		{"one program on purpose", []plan.Arm{swapped, arm("fixed", scenario.Fixed, one)}, ""},
		{"a candidate that is the fixed arm", []plan.Arm{arm("vulnerable", scenario.Vulnerable, other), arm("fixed", scenario.Fixed, one),
			arm("candidate", scenario.Candidate, same)}, ""},
		{"a candidate that is the vulnerable arm", []plan.Arm{arm("vulnerable", scenario.Vulnerable, one), arm("candidate", scenario.Candidate, same)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &Artifacts{events: event.NewStream(), arms: map[string]environment.Build{}}
			err := a.buildArms(t.Context(), &plan.Plan{Trials: []plan.Trial{{Pair: "modern", Subject: "agent", Arms: c.arms}}})
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var refused *PairError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || !strings.Contains(refused.Hint(), "--swap vulnerable=fixed") {
				t.Errorf("%v, want a PairError: %s", err, c.want)
			}
		})
	}
}

// A build that is the same program as the one before it replaces nothing.
func TestABuildThatReplacesNothingIsRefused(t *testing.T) {
	p := agent(t)
	for _, c := range []struct {
		from, to, want string
	}{
		{"", "", "arm fixed: its build 2 is the same program as its build 1 (SHA-256 "},
		{"", "x", ""},
	} {
		src := given(t, p, c.to)
		src.Before = []scenario.Earlier{{Binary: given(t, p, c.from).Binary}}
		a := &Artifacts{events: event.NewStream(), arms: map[string]environment.Build{}}
		one := plan.Arm{Arm: scenario.Arm{Name: "fixed", Role: scenario.Fixed, Source: src}}
		err := a.buildArms(t.Context(), &plan.Plan{Trials: []plan.Trial{{Pair: "modern", Subject: "agent", Arms: []plan.Arm{one}}}})
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("from %q to %q: %v, want %q", c.from, c.to, err, c.want)
		}
		if b, err := a.Of(one.Arm); c.want == "" && (err != nil || len(b.All()) != 2 || b.All()[0].Digest == b.Digest || b.All()[0].Path != src.Before[0].Binary) {
			t.Errorf("its builds are %+v, %v", b.All(), err)
		}
	}
}
