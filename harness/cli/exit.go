package cli

import (
	"errors"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
)

// Exit codes. 1, 3 and 4 are those of verdicts; a failure of relapse itself is 4. 2 is never used, because make and Go
// panics exit with it.
const (
	exitOK          = 0
	exitOwnFailure  = 4
	exitUsage       = 64
	exitInterrupted = 130
)

// exitError is an error with its exit code and the next command to try. If err is nil nothing is printed, because a
// verdict was already printed.
type exitError struct {
	code int
	err  error
	hint string
}

// Error returns the message without the hint.
func (e *exitError) Error() string {
	if e.err == nil {
		return "exit"
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// usage marks err as a mistake of the user: exit 64. hint may be empty.
func usage(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitUsage, err: err, hint: hint}
}

// hinted adds the next command to try. It keeps the exit code of err.
func hinted(err error, hint string) error {
	if err == nil {
		return nil
	}
	code := exitOwnFailure
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
	}
	return &exitError{code: code, err: err, hint: hint}
}

// exitWith returns an error with the exit code of a verdict that was already printed, or nil for 0.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// failed adds to a failure of relapse's own what to do next. What has an exit code already has its own hint.
func failed(err error) error {
	var known *exitError
	if errors.As(err, &known) {
		return err
	}
	return hinted(err, failureHint(err))
}

// failureHint returns the next step after something of relapse's own failed.
func failureHint(err error) string {
	if fetch := (*build.FetchError)(nil); errors.As(err, &fetch) {
		return fetchHint
	}
	if room := (*build.RoomError)(nil); errors.As(err, &room) {
		if room.Bound {
			return "a larger --max-disk, or $" + cache.EnvMaxDisk
		}
		return roomHint
	}
	if full := (*cache.FullError)(nil); errors.As(err, &full) {
		if dir, err := cache.DefaultDir(); err == nil && full.Disk.Folder != "" && !cache.SameDisk(dir, full.Disk.Folder) {
			return otherRoomHint
		}
		return roomHint
	}
	return "relapse doctor checks the host; relapse clean removes what a killed run left"
}

// roomHint is the next step where a disk is too full.
const roomHint = "relapse cache prune --older-than 168h makes room, and a smaller --max-disk keeps the cache small; " +
	cache.EnvDir + " names a folder on another disk"

// otherRoomHint is the next step where another disk than the cache's is too full.
const otherRoomHint = "make room on that disk, or name a folder on another one: --runs for run directories, XDG_STATE_HOME " +
	"for what is noted of runs, TMPDIR for the rest"

// fetchHint is the next step after a module couldn't be fetched.
const fetchHint = "relapse doctor shows the proxy and what it answers; without a network, a run can use what relapse cache ls " +
	"lists, and plan, explain, judge, report and match need nothing"
