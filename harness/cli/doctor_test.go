package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/internal/host"
)

func TestDoctorLooksAtTheCacheThatRunsUse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RELAPSE_CACHE", dir)
	if got, err := (doctorFlags{}).options(); err != nil || got.CacheDir != dir {
		t.Errorf("it looks at %q, %v, want %q", got.CacheDir, err, dir)
	}
}

// A report says what was found and how the last run ended, and has neither secrets nor the user's home.
func TestReportForAnIssue(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GOPROXY", "https://me:swordfish@proxy.example")
	t.Setenv("RELAPSE_MAX_DISK", "30GiB")
	run := judgedRun(t)
	checks := []host.Check{
		{Name: "disk of the cache", Status: host.Fail, Seen: "1 GiB free at " + filepath.Join(home, ".cache"), Wanted: "30 GiB"},
		{Name: "module proxy", Status: host.Warn, Seen: "Authorization: Bearer opaqueBearerValue42x", Wanted: "an answer"},
	}
	var out bytes.Buffer
	if err := printReport(&out, checks, run); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, want := range []string{"### relapse doctor --report\n", "| relapse | " + programVersion() + " |", "| environment | ", "GOPROXY", "RELAPSE_MAX_DISK",
		"| last run | x is Inconclusive (exit 3), judged by relapse ", "| disk of the cache | fail | 1 GiB free at ~/.cache | 30 GiB |", "[REDACTED]"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	for _, secret := range []string{"swordfish", "opaqueBearerValue42x", home} {
		if strings.Contains(got, secret) {
			t.Errorf("it has %q:\n%s", secret, got)
		}
	}
	if got := lastRun(filepath.Join(home, "nowhere")); !strings.HasPrefix(got, "none in ") {
		t.Errorf("without a run it says %q", got)
	}
}

func TestFactsOfAHost(t *testing.T) {
	dir := t.TempDir()
	release := filepath.Join(dir, "os-release")
	if err := os.WriteFile(release, []byte("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := systemName(release), "Debian GNU/Linux 12 (bookworm)"; got != want {
		t.Errorf("the system is %q, want %q", got, want)
	}
	for name, want := range map[string]string{"nowhere": "none", ".": "v1"} {
		if got := cgroupVersion(filepath.Join(dir, name)); got != want {
			t.Errorf("%s: cgroups %q, want %q", name, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := cgroupVersion(dir); got != "v2" {
		t.Errorf("cgroups %q, want v2", got)
	}
}
