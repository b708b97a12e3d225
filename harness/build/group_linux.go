package build

import (
	"os/exec"
	"syscall"
)

// group makes cmd the leader of a process group. When cmd's context ends, the whole group is killed, compilers and
// linker included. The go command is also killed when the harness dies; otherwise it would go on writing into a
// directory whose lock is free again.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
