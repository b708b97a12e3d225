//go:build !linux

package nodeimage

import "syscall"

// isolated asks for nothing: images are assembled on Linux only, see Checks of package host.
func isolated() *syscall.SysProcAttr { return nil }
