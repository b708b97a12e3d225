package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/internal/host"
)

// script puts a go command on PATH, alone.
func script(t *testing.T, body string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// TestPreflightReadsTheGoCommand has a go command that answers as told.
func TestPreflightReadsTheGoCommand(t *testing.T) {
	const module = "k8s.io/kubernetes@v1.34.4"
	for name, test := range map[string]struct {
		env, list, module string // go env's JSON; what go list does
		check             string
		want              host.Check
	}{
		"good": {env: `{"GOVERSION":"go1.26.1","GOTOOLCHAIN":"local"}`, check: "go toolchain",
			want: host.Check{Status: host.OK, Seen: "go1.26.1, GOTOOLCHAIN=local, GOFLAGS="}},
		"old and pinned": {env: `{"GOVERSION":"go1.25.3","GOTOOLCHAIN":"local"}`, check: "go toolchain",
			want: host.Check{Status: host.Fail, Remedy: "go env -w GOTOOLCHAIN=auto"}},
		"old": {env: `{"GOVERSION":"go1.25.3","GOTOOLCHAIN":"auto"}`, check: "go toolchain",
			want: host.Check{Status: host.Warn, Remedy: "install Go 1.26 or later and put its bin folder on PATH"}},
		"vendoring": {env: `{"GOVERSION":"go1.26.1","GOFLAGS":"-mod=vendor"}`, check: "go toolchain",
			want: host.Check{Status: host.Warn, Remedy: "go env -w GOFLAGS= ; unset GOFLAGS"}},
		"proxy with a password": {env: `{"GOPROXY":"https://me:secret@proxy.example,direct","GOSUMDB":"off"}`,
			check: "go modules",
			want:  host.Check{Status: host.OK, Seen: "GOPROXY=https://***@proxy.example,direct, GOSUMDB=off"}},
		"proxy off": {env: `{"GOPROXY":"off"}`, check: "go modules",
			want: host.Check{Status: host.Warn, Remedy: "go env -u GOPROXY ; unset GOPROXY"}},
		"module there": {env: `{"GOPROXY":"https://proxy.example"}`, module: module, check: "go modules",
			want: host.Check{Status: host.OK, Seen: "GOPROXY=https://proxy.example, GOSUMDB=; " + module + " is there"}},
		"module not there": {env: `{"GOPROXY":"https://proxy.example"}`, module: module, check: "go modules",
			list: "echo 'Get https://me:secret@proxy.example/x: refused' >&2; exit 1",
			want: host.Check{Status: host.Warn, Remedy: "go list -m " + module,
				Seen: "GOPROXY=https://proxy.example, GOSUMDB=; running `go list -m " + module +
					"`: exit status 1: Get https://***@proxy.example/x: refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			script(t, `[ "$1" = env ] && echo '`+test.env+"' && exit\n"+test.list+"\nexit 0\n")
			checks := host.Preflight(t.Context(), host.Options{NodeImage: "official", Module: test.module})
			i := slices.IndexFunc(checks, func(c host.Check) bool { return c.Name == test.check })
			if i < 0 {
				t.Fatalf("no check %q in %+v", test.check, checks)
			}
			got := checks[i]
			if got.Status != test.want.Status || got.Remedy != test.want.Remedy || test.want.Seen != "" &&
				got.Seen != test.want.Seen {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if strings.Contains(got.Seen, "secret") {
				t.Errorf("a password is shown: %s", got.Seen)
			}
		})
	}
}

// A host without Go is refused, unless programs were imported. Nothing of Debian is looked for where all images are there.
func TestPreflightWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o := host.Options{CacheDir: t.TempDir(), HasImages: true}
	for _, want := range []host.Check{
		{Status: host.Fail, Remedy: "install Go 1.26 or later and put its bin folder on PATH"},
		{Status: host.Warn, Remedy: "install Go 1.26 or later and put its bin folder on PATH, unless all that a run needs was imported"},
	} {
		checks := host.Preflight(t.Context(), o)
		i := slices.IndexFunc(checks, func(c host.Check) bool { return c.Name == "go toolchain" })
		if i < 0 || checks[i].Status != want.Status || checks[i].Remedy != want.Remedy {
			t.Errorf("got %+v, want %+v", checks, want)
		}
		if slices.ContainsFunc(checks, func(c host.Check) bool { return strings.HasPrefix(c.Name, "assembled image") }) {
			t.Errorf("it looks for what an image is assembled with: %+v", checks)
		}
		if err := build.AddToolchain(o.CacheDir, build.Toolchain{GOVERSION: "go1.26.1"}); err != nil {
			t.Fatal(err)
		}
	}
}
