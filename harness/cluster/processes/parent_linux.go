package processes

import "syscall"

// withParent has the kernel kill a process when the thread that started it ends.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
