//go:build unix && !linux

package build

import (
	"os/exec"
	"syscall"
)

// group makes cmd the leader of a process group. When cmd's context ends, the whole group is killed, compilers and
// linker included.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
