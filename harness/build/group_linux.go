package build

import (
	"os/exec"
	"syscall"
)

// group makes cmd the leader of a process group that its context kills, compilers and linker included. The go command
// is also killed with the harness, or it would go on writing into a directory whose lock is free again.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
