package kind

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
)

func TestParseIdentity(t *testing.T) {
	stat := "12 (a b) c) S" + strings.Repeat(" 0", 10) + " 40 2 30 1" + strings.Repeat(" 0", 4) + " 777" + strings.Repeat(" 0", 25) + " 140736376883492 0 0 0 0"
	sum := strings.Repeat("ab", 32)
	id, err := parseIdentity("12\n3\n"+stat+"\n2\n"+sum+"  -\n", true)
	if want := (cluster.Identity{PID: 12, Restarts: 3, StartTicks: 777, SHA256: sum, CPUTicks: 42, ChildTicks: 31, ArgStart: 140736376883492, Randomize: 2}); err != nil ||
		id != want {
		t.Errorf("got %+v, %v; want %+v", id, err, want)
	}
	id, err = parseIdentity("12\n3\n"+stat+"\n2\n\nlimits:\nCpus_allowed_list:\t0-1\n/a/cpu.stat:nr_throttled 7\n/a/cpu.max:max 100000\n", false)
	if want := (cluster.CPULimits{Known: true, Cores: 2, Throttled: 7}); err != nil || id.Limits != want || id.ChildTicks != 31 {
		t.Errorf("got %+v, %v; want the limits %+v", id, err, want)
	}
	for in, want := range map[string]string{
		"12\n3\n":                   "got 2 lines, want 5",
		"x\n3\n" + stat + "\n2\ns":  "the process's id",
		"12\nx\n" + stat + "\n2\ns": "the count of restarts",
		"12\n3\n12 (a) S\n2\ns":     "/proc/PID/stat is",
		"12\n3\n" + stat + "\n2\ns": "sha256sum printed",
		"12\n3\n" + stat + "\nx\ns": "what /proc/sys/kernel/randomize_va_space says",
		"12\n3\n" + strings.Replace(stat, "40", "x", 1) + "\n2\ns": "field 14 of /proc/PID/stat",
	} {
		if _, err := parseIdentity(in, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestScript(t *testing.T) {
	links := []link{{"c", "172.18.0.2", "10.244.0.0/24"}, {"w", "172.18.0.3", "10.244.1.0/24"},
		{"off", "", "10.244.2.0/24"}}
	got := script(links[0], links)
	if !strings.Contains(got, `"subnet":"10.244.0.0/24"`) ||
		!strings.HasSuffix(got, "ip route replace 10.244.1.0/24 via 172.18.0.3\n") || strings.Contains(got, "10.244.2") {
		t.Errorf("the script is %s", got)
	}
	body := strings.Split(strings.Split(got, "<<'EOF'\n")[1], "\nEOF")[0]
	if !json.Valid([]byte(body)) {
		t.Errorf("the conflist is no JSON: %s", body)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{" • Starting control-plane 🕹️  ...\n": "Starting control-plane",
		" • Preparing nodes 📦 📦 📦   ...\n": "Preparing nodes", "": ""} {
		if got := plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A component that exits again and again is looked at between two lives, and in the middle of an end.
func TestWhichProcessIsLookedAtAsItEnds(t *testing.T) {
	none := t.TempDir()
	if err := os.WriteFile(filepath.Join(none, "pgrep"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	static, kubelets := container{name: "kube-apiserver"}, &service{name: "kubelet"}
	agents := (&workload{w: cluster.Workload{Name: "agent"}}).pid(pod{uid: "0-1"})
	tools := func(readlink string) string { // to which this process is one of the workload's name
		dir := t.TempDir()
		me := "echo " + strconv.Itoa(os.Getpid())
		for name, does := range map[string]string{"pgrep": me, "systemctl": me, "readlink": readlink,
			"cat": `case "$1" in */cgroup) echo 0::/pod0_1 ;; *) exec /bin/cat "$@" ;; esac`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "pgrep"), []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, path, pid string
		digest          bool
		want            string // an error's fragment; "" for an answer
		runs            bool
	}{
		{name: "one that runs", pid: "echo $$", digest: true, runs: true},
		{name: "one that runs, without a digest", pid: "echo $$", runs: true},
		{name: "no static pod's", path: none, pid: static.pid(), digest: true},
		{name: "no unit's", pid: "echo 0"},
		{name: "a kubelet's", path: tools("echo /usr/bin/kubelet"), pid: kubelets.pid(), digest: true, runs: true},
		{name: "a kubelet's that systemd is about to run", path: tools("echo /usr/lib/systemd/systemd-executor"), pid: kubelets.pid()},
		{name: "no workload's", path: none, pid: agents},
		{name: "a workload's", path: tools("echo /bin/agent"), pid: agents, runs: true},
		{name: "another program of a workload's name", path: tools("echo /bin/other"), pid: agents},
		{name: "a workload's that can't be looked at", path: tools("exit 1"), pid: agents, want: "exit status 1"},
		{name: "a workload's, and the processes can't be listed", path: broken, pid: agents, want: "exit status 1"},
		{name: "a static pod's, and the processes can't be listed", path: broken, pid: static.pid(), want: "exit status 1"},
		{name: "one that has just ended", pid: `sh -c 'echo $$'`, digest: true},
		{name: "nobody knows", pid: "exit 4", want: "exit status 4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", identityScript(tc.digest, tc.pid, "echo 3"))
			cmd.Env = append(os.Environ(), "PATH="+tc.path+":"+os.Getenv("PATH"))
			out, err := cmd.Output()
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %q, %v, want %s", out, err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			id, err := parseIdentity(string(out), tc.digest)
			if err != nil || (id.PID > 0) != tc.runs || tc.runs && (id.Restarts != 3 || id.StartTicks == 0 || id.ArgStart == 0) ||
				(id.SHA256 != "") != (tc.runs && tc.digest) {
				t.Errorf("%+v, %v, from %q", id, err, out)
			}
			// Both ways of reading limits agree.
			if me := cluster.CPULimitsOf("/", os.Getpid()); tc.runs && (id.Limits.Known != me.Known || id.Limits.Cores != me.Cores || id.Limits.Quota != me.Quota) {
				t.Errorf("the limits are %+v, and those of this process %+v, from %q", id.Limits, me, out)
			}
		})
	}
}
