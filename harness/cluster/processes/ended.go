package processes

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// exited says how the process of one start ended. A process that could not be started has the code -1.
type exited struct {
	Start int       `json:"start"` // from 0, as its log file is numbered
	Code  int       `json:"code"`  // 128 plus the signal's number if a signal ended it
	At    time.Time `json:"at"`
	// OutOfMemory says that the kernel killed it for exceeding its memory limit.
	OutOfMemory bool `json:"outOfMemory,omitempty"`
	// Unsure says that its container ended with it, and that nobody saw why.
	Unsure bool `json:"unsure,omitempty"`
}

// String says it as exec.ExitError does.
func (e *exited) String() string {
	if e.Code > 128 {
		return "signal: " + syscall.Signal(e.Code-128).String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// endedWith returns how the last start ended. err is what exec.Cmd's Wait returned, or why the process could not be
// started.
func (s state) endedWith(err error) *exited {
	e := &exited{Start: s.Starts - 1, Code: -1, At: time.Now().UTC()}
	var failed *exec.ExitError
	var elsewhere *elsewhereError
	switch {
	case err == nil:
		e.Code = 0
	case errors.As(err, &elsewhere):
		e.Code, e.OutOfMemory = elsewhere.code(), elsewhere.outOfMemory
		e.Unsure = elsewhere.lost && !elsewhere.outOfMemory
	case errors.As(err, &failed):
		e.Code = failed.ExitCode()
		if how, ok := failed.Sys().(syscall.WaitStatus); ok && how.Signaled() {
			e.Code = 128 + int(how.Signal())
		}
	}
	return e
}
