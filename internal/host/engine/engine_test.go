package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/internal/host/engine"
)

// script puts a program of that name on PATH, which holds no other.
func script(t *testing.T, name, body string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestDetectSaysWhatIsMissing(t *testing.T) {
	t.Run("no client", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := engine.Detect(t.Context())
		if !errors.Is(err, engine.ErrNoCLI) || !strings.Contains(err.Error(), "install it") {
			t.Errorf("Detect: %v", err)
		}
	})
	t.Run("no daemon", func(t *testing.T) {
		script(t, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
		_, err := engine.Detect(t.Context())
		if !errors.Is(err, engine.ErrNoDaemon) || !strings.Contains(err.Error(), "start it (`systemctl start docker`") ||
			!strings.Contains(err.Error(), "Cannot connect to the Docker daemon") {
			t.Errorf("Detect: %v", err)
		}
	})
}

func TestOutputErrorHasCommandLineAndStderr(t *testing.T) {
	script(t, "docker", `[ "$1" = version ] && exit 0; echo 'no such thing' >&2; exit 3`)
	e, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Output(t.Context(), "rm", "x")
	var failed *engine.CommandError
	if !errors.As(err, &failed) || err.Error() != "running `docker rm x`: exit status 3: no such thing" {
		t.Errorf("Output: %v", err)
	}
}

func TestOutputStopsWithItsContext(t *testing.T) {
	script(t, "docker", `[ "$1" = version ] && exit 0; exec /bin/sleep 60`)
	e, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := e.Output(ctx, "wait"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
		t.Errorf("Output ended after %s: %v", time.Since(began), err)
	}
}

func TestServerInfoRefusesAnAnswerWithoutServer(t *testing.T) {
	script(t, "docker", `[ "$1" = version ] || echo '{"ServerErrors":["Cannot connect"]}'`)
	e, err := engine.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.ServerInfo(t.Context()); !errors.Is(err, engine.ErrNoDaemon) ||
		!strings.Contains(err.Error(), "Cannot connect") {
		t.Errorf("ServerInfo: %v", err)
	}
}

func TestInstallPlan(t *testing.T) {
	checks := []engine.Check{
		{Name: "a", Status: engine.Fail, Remedy: "apt-get install -y debootstrap"},
		{Name: "b", Status: engine.Warn, Remedy: "apt-get install -y debian-archive-keyring debootstrap"},
		{Name: "c", Status: engine.OK, Remedy: "apt-get install -y never"},
		{Name: "d", Status: engine.Fail, Remedy: "relapse doctor --fix"},
	}
	want := []string{"apt-get update", "apt-get install -y debian-archive-keyring debootstrap"}
	if diff := cmp.Diff(want, engine.InstallPlan(checks)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if plan := engine.InstallPlan(checks[2:]); plan != nil {
		t.Errorf("plan for nothing missing = %q", plan)
	}
}

func TestModuleRoot(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := engine.ModuleRoot(wd)
	if want := filepath.Join(wd, "..", "..", ".."); err != nil || root != want {
		t.Errorf("ModuleRoot = %s, %v, want %s", root, err, want)
	}
	if _, err := engine.ModuleRoot(t.TempDir()); !errors.Is(err, engine.ErrNoModule) {
		t.Errorf("ModuleRoot outside: %v", err)
	}
}

// hostFiles are a host on which every check of files is OK.
func hostFiles() map[string]string {
	return map[string]string{
		"proc/meminfo":                                  "MemTotal: 16000000 kB\nMemAvailable: 12582912 kB\n",
		"proc/sys/fs/inotify/max_user_instances":        "128\n",
		"proc/sys/fs/inotify/max_user_watches":          "65536\n",
		"etc/os-release":                                "ID=ubuntu\nID_LIKE=\"debian\"\n",
		"etc/apt/sources.list":                          "# deb http://old.example/debian x main\ndeb [signed-by=/k.gpg] http://a.example/debian trixie main\n",
		"etc/apt/sources.list.d/x.sources":              "Types: deb\nURIs: http://a.example/debian https://me:secret@b.example/debian\nSuites: trixie\n",
		"usr/share/keyrings/debian-archive-keyring.gpg": "x",
	}
}

func TestPreflightReadsTheHost(t *testing.T) {
	for name, test := range map[string]struct {
		file, text, check string
		want              engine.Check
	}{
		"enough memory": {"", "", "memory", engine.Check{Status: engine.OK, Seen: "12.0 GiB available"}},
		"little memory": {"proc/meminfo", "MemAvailable: 4194304 kB\n", "memory",
			engine.Check{Status: engine.Warn, Seen: "4.0 GiB available"}},
		"no memory": {"proc/meminfo", "MemAvailable: 1048576 kB\n", "memory",
			engine.Check{Status: engine.Fail, Seen: "1.0 GiB available"}},
		"memory unknown": {"proc/meminfo", "nonsense\n", "memory",
			engine.Check{Status: engine.Warn, Seen: "unknown: no MemAvailable in /proc/meminfo"}},
		"inotify": {"", "", "inotify limits", engine.Check{Status: engine.OK,
			Seen: "128 instances, 0 of them in use; 65536 watches"}},
		"few watches": {"proc/sys/fs/inotify/max_user_watches", "8192", "inotify limits",
			engine.Check{Status: engine.Warn, Seen: "128 instances, 0 of them in use; 8192 watches"}},
		"few instances": {"proc/sys/fs/inotify/max_user_instances", "16", "inotify limits",
			engine.Check{Status: engine.Fail, Seen: "16 instances, 0 of them in use; 65536 watches"}},
		"mirrors": {"", "", "assembled image: apt sources",
			engine.Check{Status: engine.OK, Seen: "http://a.example/debian https://***@b.example/debian"}},
		"no keyring": {"usr/share/keyrings/debian-archive-keyring.gpg", "-", "assembled image: keyring",
			engine.Check{Status: engine.Fail, Remedy: "apt-get install -y debian-archive-keyring"}},
		"no debootstrap": {"", "", "assembled image: debootstrap",
			engine.Check{Status: engine.Fail, Seen: "not on PATH", Remedy: "apt-get install -y debootstrap"}},
		"not debian": {"etc/os-release", "ID=fedora\n", "assembled image: debootstrap",
			engine.Check{Status: engine.Fail, Seen: "not on PATH", Remedy: "install debootstrap"}},
		"no go": {"", "", "go toolchain", engine.Check{Status: engine.Fail,
			Remedy: "install Go 1.26 or later and put its bin folder on PATH"}},
		"no engine": {"", "", "engine",
			engine.Check{Status: engine.Fail, Seen: "no docker command on PATH", Remedy: "apt-get install -y docker.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir())
			root := t.TempDir()
			files := hostFiles()
			files[test.file] = test.text
			for path, text := range files {
				if path == "" || text == "-" {
					continue
				}
				file := filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			checks := engine.Preflight(t.Context(), engine.Options{Host: root, NodeImage: "assembled"})
			i := slices.IndexFunc(checks, func(c engine.Check) bool { return c.Name == test.check })
			if i < 0 {
				t.Fatalf("no check %q in %+v", test.check, checks)
			}
			got := checks[i]
			if got.Status != test.want.Status || test.want.Seen != "" && got.Seen != test.want.Seen ||
				test.want.Remedy != "" && got.Remedy != test.want.Remedy {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if (got.Status == engine.OK) != (got.Remedy == "") || got.Wanted == "" {
				t.Errorf("%+v: a remedy goes with what isn't OK, and wanted with all", got)
			}
		})
	}
}
