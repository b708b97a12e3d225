package build_test

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
)

// compiled builds a program called kubelet, whose main function is body.
func compiled(t *testing.T, body string) string {
	t.Helper()
	dir := layDown(t, map[string]string{
		"go.mod":              "module example.org/kubernetes\n\ngo 1.24\n",
		"cmd/kubelet/main.go": "package main\n\nimport \"os\"\n\nfunc main() {\n" + body + "\n}\n",
	})
	out := filepath.Join(t.TempDir(), "given")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, "./cmd/kubelet")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

func TestWhatAnExecutableSaysOfItself(t *testing.T) {
	for _, c := range []struct{ name, body, version, doubt string }{
		{"a version", `os.Stdout.WriteString("Kubernetes v1.34.5-dirty\n")`, "v1.34.5-dirty", ""},
		{"none", `os.Stdout.WriteString("hello\n")`, "", `asked for its --version it printed "hello"`},
		{"an exit code", `os.Exit(3)`, "", "asking for its --version: exit status 3"},
		{"no stamp", `os.Stdout.WriteString("Kubernetes v0.0.0-master+$Format:%H$\n")`, "", "it says that it is v0.0.0-master+, which is no version of Kubernetes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := build.Inspect(t.Context(), compiled(t, c.body), "kubelet")
			if err != nil {
				t.Fatal(err)
			}
			if p.Version != c.version || p.Doubt != c.doubt || p.Arch != runtime.GOARCH || p.Main != "example.org/kubernetes/cmd/kubelet" || p.Loader != "" {
				t.Errorf("got %+v, want version %q, doubt %q", p, c.version, c.doubt)
			}
		})
	}
}

// A program that isn't Go's says what it is by its answer to --version, and this one is no kubelet.
func TestAProgramOfAnotherLanguageIsNoKubelet(t *testing.T) {
	_, err := build.Inspect(t.Context(), "/bin/ls", "kubelet")
	want := `/bin/ls doesn't say that it is a kubelet: it was not built by Go, and asked for its --version it printed "ls `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want it to begin with %s", err, want)
	}
}

func TestExecutablesThatCantBeTheSubjectAreRefused(t *testing.T) {
	other, machine := "arm64", elf.EM_AARCH64
	if runtime.GOARCH == other {
		other, machine = "amd64", elf.EM_X86_64
	}
	good := compiled(t, "os.Exit(0)")
	foreign, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint16(foreign[18:], uint16(machine)) // e_machine
	file := func(name, text string) string {
		at := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(at, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range []struct{ name, file, subject, want string }{
		{"another architecture", file("kubelet", string(foreign)), "kubelet", "is for " + other + ": want " + runtime.GOARCH + ", as the nodes are"},
		{"another system", file("kubelet", "MZ\x90\x00"), "kubelet", "is a Windows executable: want a Linux executable for " + runtime.GOARCH},
		{"yet another system", file("kubelet", "\xcf\xfa\xed\xfe"), "kubelet", "is a macOS executable: want a Linux executable for " + runtime.GOARCH},
		{"another program", good, "kube-apiserver", "is the program kubelet (example.org/kubernetes/cmd/kubelet): want a kube-apiserver"},
		{"a script", file("kubelet", "#!/bin/sh\n"), "kubelet", "is a script: want a Linux executable for " + runtime.GOARCH},
		{"nothing", file("kubelet", ""), "kubelet", "is empty: want a Linux executable for " + runtime.GOARCH},
		{"text", file("kubelet", "kubelet"), "kubelet", "is no executable: want a Linux executable for " + runtime.GOARCH},
		{"not there", "/nonexistent/kubelet", "kubelet", "reading the executable /nonexistent/kubelet: open /nonexistent/kubelet: no such file or directory"},
		{"linked dynamically", "/bin/sh", "kube-apiserver", "there is nothing to link it with where a kube-apiserver runs: want one built with CGO_ENABLED=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := build.Inspect(t.Context(), c.file, c.subject); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want it to end in %q", err, c.want)
			}
		})
	}
}
