package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// aptInstall begins every remedy that InstallPlan collects.
const aptInstall = "apt-get install -y "

// debianKeyring is the path below / of the keyring with which debootstrap checks Debian's signatures.
const debianKeyring = "usr/share/keyrings/debian-archive-keyring.gpg"

// assembly checks whether this host has what assembling a node image needs. A missing part is a failure if nodeImage
// asks for an assembled image, and a warning if an official one might do instead. For other images there are no checks.
func (m machine) assembly(nodeImage string) []Check {
	missing := Warn
	switch nodeImage {
	case "", "auto":
	case "assembled":
		missing = Fail
	default:
		return nil
	}
	const name = "assembled image: "
	checks := []Check{
		{Name: name + "host", Status: OK, Seen: fmt.Sprintf("%s, uid %d", runtime.GOOS, os.Geteuid()),
			Wanted: "Linux, as root", Remedy: "run as root, or use --node-image=official"},
		{Name: name + "debootstrap", Status: OK, Wanted: "debootstrap on PATH", Remedy: "install debootstrap"},
		{Name: name + "keyring", Status: OK, Seen: "/" + debianKeyring, Wanted: "Debian's archive keyring",
			Remedy: "install debian-archive-keyring"},
		{Name: name + "apt sources", Status: OK, Wanted: "a Debian mirror in the host's apt configuration",
			Remedy: "add a Debian mirror to /etc/apt/sources.list"},
	}
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		checks[0].Status = missing
	}
	path, err := exec.LookPath("debootstrap")
	checks[1].Seen = path
	if err != nil {
		checks[1].Status, checks[1].Seen = missing, "not on PATH"
	}
	if _, err := os.Stat(m.path(debianKeyring)); err != nil {
		checks[2].Status, checks[2].Seen = missing, err.Error()
	}
	mirrors := m.aptMirrors()
	checks[3].Seen = strings.Join(mirrors, " ")
	if len(mirrors) == 0 {
		checks[3].Status, checks[3].Seen = missing, "none"
	}
	if m.debian() {
		checks[1].Remedy, checks[2].Remedy = aptInstall+"debootstrap", aptInstall+"debian-archive-keyring"
	}
	for i := range checks {
		if checks[i].Status == OK {
			checks[i].Remedy = ""
		}
	}
	return checks
}

// debian reports whether the host is Debian or derived from it.
func (m machine) debian() bool {
	data, _ := os.ReadFile(m.path("etc/os-release"))
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if (key == "ID" || key == "ID_LIKE") && slices.Contains(strings.Fields(strings.Trim(value, `"'`)), "debian") {
			return true
		}
	}
	return false
}

// aptMirrors returns the HTTP URIs of apt's sources, from both file formats, each once, in the order found and without
// credentials. URIs that serve another distribution are among them, because only a request could tell.
func (m machine) aptMirrors() (mirrors []string) {
	lists, _ := filepath.Glob(m.path("etc/apt/sources.list.d/*.list"))
	sources, _ := filepath.Glob(m.path("etc/apt/sources.list.d/*.sources"))
	add := func(words []string) {
		for _, w := range words {
			if w = redact(w); strings.HasPrefix(w, "http") && strings.Contains(w, "://") &&
				!slices.Contains(mirrors, w) {
				mirrors = append(mirrors, w)
			}
		}
	}
	for _, file := range append([]string{m.path("etc/apt/sources.list")}, lists...) {
		for _, line := range linesOf(file) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "deb" {
				add(f[1:])
			}
		}
	}
	for _, file := range sources {
		for _, line := range linesOf(file) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(key, "URIs") {
				add(strings.Fields(value))
			}
		}
	}
	return mirrors
}

// linesOf returns the lines of a file, or none if it can't be read: apt doesn't need all its files.
func linesOf(file string) (lines []string) {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}

// InstallPlan returns the commands that install the packages which checks found missing, in order. It returns none if
// apt could install nothing of what is missing.
func InstallPlan(checks []Check) []string {
	var packages []string
	for _, c := range checks {
		if names, ok := strings.CutPrefix(c.Remedy, aptInstall); ok && c.Status != OK {
			packages = append(packages, strings.Fields(names)...)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	slices.Sort(packages)
	return []string{"apt-get update", aptInstall + strings.Join(slices.Compact(packages), " ")}
}

// Install runs the commands of an InstallPlan one after the other, and shows each on w with its output. Where the host
// isn't Debian or its kin, or the user isn't root, Install runs none of them and returns false.
func Install(ctx context.Context, w io.Writer, cmds []string) (may bool, err error) {
	_, err = exec.LookPath("apt-get")
	if err != nil || !machine("/").debian() || os.Geteuid() != 0 {
		return false, nil
	}
	for _, line := range cmds {
		fmt.Fprintf(w, "+ %s\n", line)
		args := strings.Fields(line)
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = w, w
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // dpkg must not be cut off
		cmd.WaitDelay = time.Minute
		if err := cmd.Run(); err != nil {
			return true, fmt.Errorf("running `%s`: %w", line, err)
		}
	}
	return true, nil
}
