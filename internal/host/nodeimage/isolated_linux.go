package nodeimage

import "syscall"

// isolated gives a process namespaces of its own for processes and mounts, and has the kernel kill it when the thread that
// started it ends.
func isolated() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Pdeathsig:    syscall.SIGKILL,
		Cloneflags:   syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS,
	}
}
