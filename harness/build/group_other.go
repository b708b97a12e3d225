//go:build unix && !linux

package build

import (
	"os/exec"
	"syscall"
)

// group makes cmd the leader of a process group that its context kills, compilers and linker included.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
