package kind

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
)

const kubeletUnit = `# /etc/systemd/system/kubelet.service
[Service]
ExecStart=/usr/bin/kubelet

# /etc/systemd/system/kubelet.service.d/10-kubeadm.conf
[Service]
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBEADM_ARGS --runtime-cgroups=/a
`

// A drop-in's command line is the unit's own, with the flags after it; that of an earlier drop-in is no unit's own.
func TestADropInAddsFlags(t *testing.T) {
	flags := map[string]string{"v": "4", "a": `50% of "$HOME" \`}
	want := `# {"a":"50% of \"$HOME\" \\","v":"4"}
[Service]
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBEADM_ARGS --runtime-cgroups=/a "--a=50%% of \"$$HOME\" \\" "--v=4"
`
	earlier := "\n# /etc/systemd/system/kubelet.service.d/" + flagsDropIn + "\n# {\"v\":\"9\"}\n[Service]\nExecStart=\nExecStart=/usr/bin/kubelet \"--v=9\"\n"
	for name, unit := range map[string]string{"first": kubeletUnit, "again": kubeletUnit + earlier} {
		if got, err := withFlags(unit, flags); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	for _, unit := range []string{"[Service]\n", "ExecStart=/usr/bin/kubelet \\\n --v=2\n"} {
		if got, err := withFlags(unit, flags); err == nil || !strings.HasPrefix(err.Error(), "its unit has no command line of one line: ") {
			t.Errorf("%q: %q, %v", unit, got, err)
		}
	}
}

// A static pod gets flags over its own, other flags in place of the first, and then its own back.
func TestAManifestGetsFlags(t *testing.T) {
	own := []string{"kube-scheduler", "--leader-elect=true", "--v=2"}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: slices.Clone(own)}}}}
	for i, c := range []struct {
		flags map[string]string
		want  []string
	}{
		{map[string]string{"v": "4", "profiling": "false"}, []string{"kube-scheduler", "--leader-elect=true", "--v=4", "--profiling=false"}},
		{map[string]string{"v": "5"}, []string{"kube-scheduler", "--leader-elect=true", "--v=5"}},
		{nil, own},
		{nil, own},
	} {
		at := time.Unix(int64(i), 0)
		if err := reflag(pod, c.flags, at); err != nil {
			t.Fatal(err)
		}
		if got := pod.Spec.Containers[0].Command; !slices.Equal(got, c.want) {
			t.Errorf("with %v its command is %q, want %q", c.flags, got, c.want)
		}
		if got, want := pod.Annotations[restartedAt], at.UTC().Format(time.RFC3339Nano); got != want {
			t.Errorf("with %v it says that it was restarted at %q, want %q: the kubelet would not restart it", c.flags, got, want)
		}
		if _, kept := pod.Annotations[ownCommand]; kept != (c.flags != nil) {
			t.Errorf("with %v its annotations are %q", c.flags, pod.Annotations)
		}
	}
	pod.Spec.Containers[0].Args = []string{"--v=2"}
	if err := reflag(pod, nil, time.Now()); err == nil || !strings.Contains(err.Error(), "want 1 with all arguments in its command") {
		t.Errorf("of arguments beside its command: %v", err)
	}
}

// A signal for one process reaches no other: not the one that has its number by now, and not the one in its place.
func TestASignalReachesTheProcessThatIsMeant(t *testing.T) {
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var id cluster.Identity
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", victim.Process.Pid))
	if err == nil {
		err = id.ParseStat(string(stat))
	}
	if err != nil {
		t.Fatal(err)
	}
	id.PID = victim.Process.Pid
	pid := fmt.Sprint("echo ", id.PID)
	arguments, err := exec.Command("sh", "-ec", argumentsScript(pid)).Output()
	if got := cluster.ParseArguments(arguments); err != nil || !slices.Equal(got, []string{"1000"}) {
		t.Errorf("its arguments are %q, %v", got, err)
	}
	for _, c := range []struct {
		of   cluster.Identity
		want string
	}{
		{cluster.Identity{PID: id.PID, StartTicks: id.StartTicks + 1}, "none\n"},
		{cluster.Identity{PID: id.PID + 1, StartTicks: id.StartTicks}, "none\n"},
		{id, ""},
	} {
		out, err := exec.Command("sh", "-ec", signalScript(9, c.of, pid)).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("for %+v it printed %q, %v; want %q", c.of, out, err, c.want)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); stateOf(t, id.PID) != "Z"; {
		if time.Now().After(deadline) {
			t.Fatal("it was not killed")
		}
		time.Sleep(10 * time.Millisecond) // polls /proc: nobody but its parent is told of a process's end
	}
	if out, err := exec.Command("sh", "-ec", signalScript(9, id, pid)).CombinedOutput(); err != nil || string(out) != "none\n" {
		t.Errorf("ended already, it printed %q, %v; want none", out, err)
	}
	_ = victim.Wait() // it was killed
	if out, err := exec.Command("sh", "-ec", argumentsScript(pid)).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("of a process that is gone: %q, %v", out, err)
	}
}
