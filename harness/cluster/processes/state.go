package processes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Files and folders in a cluster's folder.
const (
	adminConfig    = "kubeconfig"
	processesFile  = "processes.json" // what the supervisor runs
	recordFile     = "cluster.json"
	kwokStagesFile = "kwok.yaml"
	stateDir       = "state"
)

// statePath returns the path of the file in which the supervisor notes down a process's state.
func statePath(home, name string) string { return filepath.Join(home, stateDir, name+".json") }

// restartMark returns the path of a file whose presence says that the process is to be started again without delay, and
// that this counts as no restart.
func restartMark(home, name string) string { return filepath.Join(home, stateDir, name+".restart") }

// pauseMark returns the path of a file that says until when a process is stopped at most, in RFC 3339.
func pauseMark(home, name string) string { return filepath.Join(home, stateDir, name+".paused") }

// flagsMark returns the path of a file with the flags that a process gets in addition to its own, as JSON.
func flagsMark(home, name string) string { return filepath.Join(home, stateDir, name+".flags") }

// takeMark removes a mark and reports whether it was there.
func takeMark(path string) (bool, error) {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func readJSON(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// identify returns the identity of a process. Its number alone is not enough, because it may be another's by now.
func identify(pid int) (id cluster.Identity, err error) { return identifyIn("/", pid) }

// identifyIn is identify for a process that sees its own limits of CPU below another root.
func identifyIn(root string, pid int) (id cluster.Identity, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return id, err
	}
	id.PID, id.Limits = pid, cluster.CPULimitsOf(root, pid)
	if err := id.ParseStat(string(stat)); err != nil {
		return cluster.Identity{}, err
	}
	if b, err := os.ReadFile(cluster.RandomizeFile); err == nil { // where it can't be read it is not known
		id.Randomize, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	return id, nil
}

func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// running is a process of a cluster that was seen to run.
type running struct {
	name string
	state
}

// processesOf returns the processes that the supervisor of a cluster has noted down as running, and the supervisor.
func processesOf(home string) ([]running, error) {
	files, err := filepath.Glob(filepath.Join(home, stateDir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []running
	for _, file := range files {
		one := running{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := readJSON(file, &one.state); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if one.PID != 0 {
			out = append(out, one)
		}
	}
	return out, nil
}

// alive reports whether this very process still runs: not another one with its number, and not a zombie.
func (r running) alive() bool {
	stat, err := statOf(r.PID)
	return err == nil && int64(stat.Starttime) == r.StartTicks && stat.State != "Z" &&
		stat.State != "X"
}

func (r running) kill() error { return r.signal(syscall.SIGKILL) }

// signal sends a signal to this very process; it is no error if the process is gone. The process is held before it is
// looked at, so that the signal reaches no other with the same number.
func (r running) signal(sig os.Signal) error {
	p, err := os.FindProcess(r.PID)
	if err != nil {
		return err
	}
	defer p.Release() //nolint:errcheck // it only lets go
	if !r.alive() {
		return nil
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to %s, process %d: %w", sig, r.name, r.PID, err)
	}
	return nil
}

// awaitExit waits until the process is no longer there.
func (r running) awaitExit(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"%s, process %d, is still there: %w",
				r.name,
				r.PID,
				context.Cause(ctx),
			)
		case <-tick.C:
		}
	}
	return nil
}

// digest returns the SHA-256 of the program that a process runs.
func digest(pid int) (sum string, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
