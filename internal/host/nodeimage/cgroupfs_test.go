package nodeimage_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

// The versions are told apart as kind v0.33 does when it configures kubelet.
func TestContainerdFollowsTheKubelet(t *testing.T) {
	plain := nodeimage.ImportScriptFor("v1.34.4")
	for version, old := range map[string]bool{
		"v1.22.2": true, "v1.23.17": true, "v1.24.0-alpha.1": false, "v1.24.0": false, "v1.34.4": false,
	} {
		script := nodeimage.ImportScriptFor(version)
		more, ok := strings.CutPrefix(script, plain)
		if !ok || (more != "") != old {
			t.Errorf("%s: the script goes on with %q; want more: %v", version, more, old)
		}
	}
}

func TestCgroupfsScript(t *testing.T) {
	const kinds = "[a]\n  [b]\n    # use systemd cgroup by default\n    SystemdCgroup = true\n[c]\n    SystemdCgroup = true\n"
	more := strings.TrimPrefix(nodeimage.ImportScriptFor("v1.23.17"), nodeimage.ImportScriptFor("v1.34.4"))
	for _, tc := range []struct{ name, config, want, wantErr string }{
		{name: "kind's own", config: kinds, want: strings.ReplaceAll(kinds, "= true", "= false")},
		{name: "no such setting", config: "[a]\n", wantErr: "containerd can't be told to use cgroupfs\n"},
		{name: "another form of it", config: kinds + "x = { SystemdCgroup = true }\n",
			wantErr: "containerd can't be told to use cgroupfs\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(file, []byte(tc.config), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "sh", "-ec",
				strings.ReplaceAll(more, "/etc/containerd/config.toml", file)).CombinedOutput()
			if (err != nil) != (tc.wantErr != "") || string(out) != tc.wantErr {
				t.Fatalf("said %q, %v; want %q", out, err, tc.wantErr)
			}
			if got, err := os.ReadFile(file); tc.wantErr == "" && (err != nil || string(got) != tc.want) {
				t.Errorf("the file is %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
