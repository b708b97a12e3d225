//go:build !linux

package processes

import "syscall"

// withParent asks for nothing: no component is started on such a host, see Provider.Check.
func withParent() *syscall.SysProcAttr { return nil }
