package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/internal/host"
)

func TestInstallPlan(t *testing.T) {
	checks := []host.Check{
		{Name: "a", Status: host.Fail, Remedy: "apt-get install -y debootstrap"},
		{Name: "b", Status: host.Warn, Remedy: "apt-get install -y debian-archive-keyring debootstrap"},
		{Name: "c", Status: host.OK, Remedy: "apt-get install -y never"},
		{Name: "d", Status: host.Fail, Remedy: "relapse doctor --fix"},
	}
	want := []string{"apt-get update", "apt-get install -y debian-archive-keyring debootstrap"}
	if diff := cmp.Diff(want, host.InstallPlan(checks)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if plan := host.InstallPlan(checks[2:]); plan != nil {
		t.Errorf("plan for nothing missing = %q", plan)
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
		want              host.Check
	}{
		"enough memory": {"", "", "memory", host.Check{Status: host.OK, Seen: "12.0 GiB available"}},
		"little memory": {"proc/meminfo", "MemAvailable: 4194304 kB\n", "memory",
			host.Check{Status: host.Warn, Seen: "4.0 GiB available"}},
		"no memory": {"proc/meminfo", "MemAvailable: 1048576 kB\n", "memory",
			host.Check{Status: host.Fail, Seen: "1.0 GiB available"}},
		"memory unknown": {"proc/meminfo", "nonsense\n", "memory",
			host.Check{Status: host.Warn, Seen: "unknown: no MemAvailable in /proc/meminfo"}},
		"inotify": {"", "", "inotify limits", host.Check{Status: host.OK,
			Seen: "128 instances, 0 of them in use; 65536 watches"}},
		"few watches": {"proc/sys/fs/inotify/max_user_watches", "8192", "inotify limits",
			host.Check{Status: host.Warn, Seen: "128 instances, 0 of them in use; 8192 watches"}},
		"few instances": {"proc/sys/fs/inotify/max_user_instances", "16", "inotify limits",
			host.Check{Status: host.Fail, Seen: "16 instances, 0 of them in use; 65536 watches"}},
		"mirrors": {"", "", "assembled image: apt sources",
			host.Check{Status: host.OK, Seen: "http://a.example/debian https://***@b.example/debian"}},
		"no keyring": {"usr/share/keyrings/debian-archive-keyring.gpg", "-", "assembled image: keyring",
			host.Check{Status: host.Fail, Remedy: "apt-get install -y debian-archive-keyring"}},
		"no debootstrap": {"", "", "assembled image: debootstrap",
			host.Check{Status: host.Fail, Seen: "not on PATH", Remedy: "apt-get install -y debootstrap"}},
		"not debian": {"etc/os-release", "ID=fedora\n", "assembled image: debootstrap",
			host.Check{Status: host.Fail, Seen: "not on PATH", Remedy: "install debootstrap"}},
		"no go": {"", "", "go toolchain", host.Check{Status: host.Fail, Seen: "no go command on PATH",
			Remedy: "install Go 1.26 or later and put its bin folder on PATH"}},
		"no engine": {"", "", "engine",
			host.Check{Status: host.Fail, Seen: "no docker command on PATH", Remedy: "apt-get install -y docker.io"}},
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
			checks := host.Preflight(t.Context(), host.Options{Host: root, NodeImage: "assembled"})
			i := slices.IndexFunc(checks, func(c host.Check) bool { return c.Name == test.check })
			if i < 0 {
				t.Fatalf("no check %q in %+v", test.check, checks)
			}
			got := checks[i]
			if got.Status != test.want.Status || test.want.Seen != "" && got.Seen != test.want.Seen ||
				test.want.Remedy != "" && got.Remedy != test.want.Remedy {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if (got.Status == host.OK) != (got.Remedy == "") || got.Wanted == "" {
				t.Errorf("%+v: a remedy goes with what isn't OK, and wanted with all", got)
			}
		})
	}
}
