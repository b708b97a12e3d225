package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/internal/host"
	"github.com/kube-relapse/relapse/internal/printing"
)

// printReport prints what somebody who has to help needs to know of this host, as Markdown for an issue. It has no
// secrets, and ~ for the user's home. last is the folder of the last run.
func printReport(w io.Writer, checks []host.Check, last string) error {
	facts := printing.Table{Header: []string{"what", "value"}}
	facts.Add("relapse", programVersion())
	facts.Add("platform", runtime.GOOS+"/"+runtime.GOARCH)
	facts.Add("system", cmp.Or(systemName("/etc/os-release"), "unknown"))
	facts.Add("kernel", cmp.Or(firstLine("/proc/sys/kernel/osrelease"), "unknown"))
	facts.Add("cgroups", cgroupVersion("/sys/fs/cgroup"))
	facts.Add("cores", runtime.NumCPU())
	facts.Add("root", os.Geteuid() == 0)
	facts.Add("inside a container", insideContainer())
	facts.Add(
		"environment",
		cmp.Or(strings.Join(environment(os.Environ()), ", "), "nothing that matters is set"),
	)
	facts.Add("last run", lastRun(last))
	found := printing.Table{Header: []string{"check", "status", "seen", "wanted"}}
	for _, c := range checks {
		found.Add(c.Name, c.Status, c.Seen, c.Wanted)
	}
	text := "### relapse doctor --report\n\n" + facts.Markdown() + "\n" + found.Markdown()
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		text = strings.ReplaceAll(text, home, "~")
	}
	clean, err := bundle.Redact([]byte(text))
	if err == nil {
		_, err = w.Write(clean)
	}
	return err
}

// matters are the variables that change what relapse does. Those of proxies may have passwords, so that only their names
// are shown.
var matters = []string{"CI", "DOCKER_HOST", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "RELAPSE_CACHE", "RELAPSE_MAX_DISK",
	"RELAPSE_MIRROR", "RELAPSE_ROOT", "RELAPSE_SCENARIOS"}

// environment returns the names of the variables that are set and matter.
func environment(all []string) (out []string) {
	for _, e := range all {
		name, value, _ := strings.Cut(e, "=")
		if value != "" && slices.Contains(matters, strings.ToUpper(name)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// lastRun says what the verdict of the last run was.
func lastRun(dir string) string {
	raw, err := os.ReadFile(filepath.Join(dir, judge.VerdictFile))
	if err != nil {
		return "none in " + dir
	}
	var v judge.Verdict
	if err := json.Unmarshal(raw, &v); err != nil {
		return dir + " has a verdict that can't be read"
	}
	return fmt.Sprintf(
		"%s is %s (exit %d), judged by relapse %s",
		v.Scenario,
		v.Verdict,
		v.ExitCode,
		v.Judge,
	)
}

// systemName returns the name that an os-release file has for its system.
func systemName(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}

func firstLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// cgroupVersion says which version of cgroups is mounted.
func cgroupVersion(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
		return "v2"
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "v1"
	}
	return "none"
}

// insideContainer reports whether an engine left its mark in the root folder.
func insideContainer() bool {
	return slices.ContainsFunc(
		[]string{"/.dockerenv", "/run/.containerenv"},
		func(f string) bool {
			_, err := os.Stat(f)
			return err == nil
		},
	)
}
