package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/internal/docker"
)

// errNotRoot says that mending or undoing needs root; nothing was touched.
var errNotRoot = errors.New("changing the daemon's settings needs root")

// mender changes one dockerd's settings. Its fields describe the host, so that tests can set others.
type mender struct {
	docker  *docker.Client
	w       io.Writer
	lib     string // folder of the installed wrapper and of the record for undoing
	lock    string
	proc    string
	pidfile string
	uid     int
	signal  func(pid int, s syscall.Signal) error
	patient time.Duration // how long dockerd may take to apply its settings
}

func newMender(d *docker.Client, w io.Writer) *mender {
	return &mender{
		docker: d, w: w, lib: "/usr/local/lib/relapse", lock: "/run/relapse-doctor.lock",
		proc: "/proc", pidfile: "/var/run/docker.pid", uid: os.Geteuid(), signal: syscall.Kill,
		patient: 30 * time.Second,
	}
}

func (m *mender) wrapper() string { return filepath.Join(m.lib, "bounded-runtime") }

// Fix registers the bounded runtime with the daemon, but only if a probe shows that privileged containers fail for want
// of capabilities or limits. It installs the wrapper from wrapperPath, merges two keys into the daemon's settings file,
// has dockerd read them, and probes again. If the second probe fails, it undoes all of this. It writes to w what it
// does and how to undo it. Without root it prints the command to run, touches nothing, and returns errNotRoot. It
// returns probe errors that it can't mend as they are.
func Fix(ctx context.Context, d *docker.Client, w io.Writer, wrapperPath string) error {
	_, err := newMender(d, w).fix(ctx, wrapperPath)
	return err
}

func (m *mender) fix(ctx context.Context, wrapperPath string) (changed bool, err error) {
	_, err = ProbePrivileged(ctx, m.docker)
	if err == nil {
		m.printf("Privileged containers run: nothing to mend.")
		return false, nil
	}
	if !errors.Is(err, ErrBounded) {
		return false, err
	}
	if m.uid != 0 {
		m.printf("Run as root: relapse doctor --fix")
		return false, errNotRoot
	}
	unlock, err := m.locked(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	info, err := m.docker.ServerInfo(ctx)
	if err != nil {
		return false, err
	}
	if slices.Contains(info.SecurityOptions, "name=rootless") {
		return false, errors.New(
			"the daemon is rootless: its runtime can't be mended from here; use a daemon that " +
				"runs as root",
		)
	}
	program, err := os.ReadFile(wrapperPath)
	if err != nil {
		return false, fmt.Errorf("reading the bounded runtime: %w", err)
	}
	d, err := findDaemon(m.proc, m.pidfile)
	if err != nil {
		return false, err
	}
	rec, err := m.plan(d)
	if err != nil {
		return false, err
	}
	if err := m.apply(ctx, d, rec, program); err != nil {
		return false, errors.Join(err, m.rollBack(ctx, d, rec))
	}
	m.sayDropped(ctx, info.Runtimes)
	if rec.previous() != stockRuntime {
		m.printf(
			"Until undone, containers that name no runtime run by runc, not by %s.",
			rec.previous(),
		)
	}
	m.printf("Privileged containers run now. To undo: relapse doctor --undo")
	return true, nil
}

// plan reads the settings and returns a record with the new ones. It writes nothing. It keeps an existing record of the
// same file if the bounded runtime is still registered there, because only that record knows the first state.
func (m *mender) plan(d daemon) (*record, error) {
	current, existed, err := readIfThere(d.configFile)
	if err != nil {
		return nil, err
	}
	s, err := parseSettings(d.configFile, current)
	if err != nil {
		return nil, err
	}
	rec, err := m.readRecord()
	if err != nil {
		return nil, err
	}
	if rec == nil || rec.ConfigFile != d.configFile || !s.registered() {
		rec = &record{ConfigFile: d.configFile, Existed: existed, Original: current}
	}
	s.register(m.wrapper())
	rec.Written, err = s.encode()
	return rec, err
}

func (m *mender) apply(ctx context.Context, d daemon, rec *record, program []byte) error {
	if err := os.MkdirAll(m.lib, 0o755); err != nil {
		return fmt.Errorf("installing the bounded runtime: %w", err)
	}
	m.printf("Installing %s.", m.wrapper())
	if err := renameio.WriteFile(m.wrapper(), program, 0o755, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("writing %s: %w", m.wrapper(), err)
	}
	if err := m.writeRecord(rec); err != nil {
		return err
	}
	m.printf("Merging runtime %q and the default runtime into %s.", runtimeName, d.configFile)
	if err := writeSettings(d.configFile, rec.Written); err != nil {
		return err
	}
	if err := m.reload(ctx, d, runtimeName); err != nil {
		return err
	}
	if _, err := ProbePrivileged(ctx, m.docker); err != nil {
		return fmt.Errorf("probing with the bounded runtime: %w", err)
	}
	return nil
}

// sayDropped prints the names of runtimes that the daemon no longer lists after it has read its settings again. dockerd
// 20.10 adds the names of its shims to the list only when it starts.
func (m *mender) sayDropped(ctx context.Context, before []string) {
	now, err := m.docker.ServerInfo(ctx)
	if err != nil {
		return // only a remark is lost
	}
	dropped := slices.DeleteFunc(slices.Clone(before),
		func(name string) bool { return slices.Contains(now.Runtimes, name) })
	if len(dropped) > 0 {
		m.printf(
			"Until dockerd is restarted it no longer lists: %s.",
			strings.Join(dropped, ", "),
		)
	}
}

// rollBack restores the earlier settings, under a context that a Ctrl-C can't cancel.
func (m *mender) rollBack(ctx context.Context, d daemon, rec *record) error {
	m.printf("That didn't work: putting everything back.")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*m.patient)
	defer cancel()
	if err := m.restore(ctx, d, rec); err != nil {
		return fmt.Errorf("putting everything back: %w", err)
	}
	return nil
}

// reload sends SIGHUP and waits until the daemon's default runtime is name.
func (m *mender) reload(ctx context.Context, d daemon, name string) error {
	m.printf("Having dockerd (process %d) read its settings again.", d.pid)
	if err := m.signal(d.pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("sending SIGHUP to dockerd (process %d): %w", d.pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.patient)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	seen := "nothing"
	for {
		info, err := m.docker.ServerInfo(ctx)
		if err == nil && info.DefaultRuntime == name {
			return nil
		}
		if err == nil {
			seen = info.DefaultRuntime
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"waiting for dockerd's default runtime to be %s: it is %s: %w; dockerd's log has the "+
					"reason",
				name,
				seen,
				ctx.Err(),
			)
		case <-tick.C:
		}
	}
}

// locked takes a lock, so that two menders never work at once, and returns a function that releases it.
func (m *mender) locked(ctx context.Context) (unlock func(), err error) {
	l := flock.New(m.lock)
	if _, err := l.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return nil, fmt.Errorf("locking %s: %w", m.lock, err)
	}
	return func() { _ = l.Unlock() }, nil // closing the file frees it in any case
}

func (m *mender) printf(format string, args ...any) { fmt.Fprintf(m.w, format+"\n", args...) }
