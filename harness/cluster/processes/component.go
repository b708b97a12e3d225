package processes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// Component is a process of the control plane, or a workload's. It implements cluster.Addressed.
type Component struct {
	n         *Node
	name      string
	process   string // what the supervisor calls it
	namespace string // the one that its pod would be in
	workload  *workload
}

// Name returns the component's name.
func (k *Component) Name() string { return k.name }

// Node returns the node, which stands for the control plane, or for a workload's share of it.
func (k *Component) Node() cluster.Node { return k.n }

// Abilities returns all that a component can do. Workloads and the programs of seams have no flags to add to.
func (k *Component) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{
		Pause:   k,
		Restart: k.Restart,
		Flags:   k.flagger(),
		Limit:   k.Limit,
		Status:  k.Status,
	}
}

// Get requests a path from the component's own port, as the administrator.
func (k *Component) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	body, err := k.get(ctx, "/"+strings.TrimPrefix(path, "/"))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", k.name, err)
	}
	return body, nil
}

func (k *Component) get(ctx context.Context, path string) (io.ReadCloser, error) {
	client, url := k.n.c.http, "https://"+loopback(k.n.c.ports[k.name])
	switch {
	case k.workload != nil:
		url = "http://" + k.workload.http()
	case k.n.seams[k.name].connection != nil:
		return k.n.proxyState(ctx, k.n.seams[k.name].binary)
	case k.name == extender: // it answers a scheduler and nobody else
		return k.n.proxyState(ctx, k.n.seams[k.name].binary)
	case k.name == lbaas:
		url = "http://" + loopback(k.n.c.ports[k.name])
	case k.name == "etcd" && strings.HasPrefix(path, "/debug/"): // any profiles are on etcd's client port
		var err error
		if client, err = k.n.c.etcdClientOf(); err != nil {
			return nil, err
		}
	case k.name == "etcd":
		url = "http://" + loopback(k.n.c.ports[etcdMetrics])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	return cluster.Body(resp, path)
}

// Logs streams the lines of all processes of the component, from the first line on, in the form that a container
// runtime writes.
func (k *Component) Logs(ctx context.Context) (io.ReadCloser, error) {
	return followLogs(ctx, logs(k.n.c.home, k.namespace, k.n.name, k.name)), nil
}

// state returns what the supervisor has noted down about the process, which may have ended since.
func (k *Component) state() (one running, err error) {
	one.name = k.name
	if err := readJSON(statePath(k.n.c.home, k.process), &one.state); err != nil {
		return one, fmt.Errorf("asking how the %s of %s is: %w", k.name, k.n.c.name, err)
	}
	return one, nil
}

// Signal sends a signal to the process.
func (k *Component) Signal(_ context.Context, sig os.Signal, of cluster.Identity) error {
	one, err := k.state()
	another := of.PID != 0 && (one.PID != of.PID || one.StartTicks != of.StartTicks)
	if err == nil && (one.PID == 0 || another || !one.alive()) {
		err = fmt.Errorf(
			"sending %v to the %s of %s: %w",
			sig,
			k.name,
			k.n.c.name,
			cluster.ErrNoProcess,
		)
	}
	if err != nil {
		return err
	}
	return one.signal(sig)
}

// Identity returns which process runs, with PID 0 while it is being started again. Restarts is the supervisor's count.
func (k *Component) Identity(
	_ context.Context,
	withDigest bool,
) (id cluster.Identity, err error) {
	one, err := k.state()
	if err != nil || one.PID == 0 || !one.alive() {
		return id, err
	}
	if withDigest {
		if id.SHA256, err = digest(one.PID); err != nil {
			if one.alive() {
				return cluster.Identity{}, fmt.Errorf(
					"hashing what the %s of %s runs: %w",
					k.name,
					k.n.c.name,
					err,
				)
			}
			return cluster.Identity{}, nil // it ended meanwhile
		}
	}
	root := "/"
	if c, err := containerOf(k.n.c.home, k.process); err != nil {
		return cluster.Identity{}, err
	} else if c != nil {
		root = fmt.Sprintf("/proc/%d/root", one.PID)
	}
	now, err := identifyIn(root, one.PID)
	if err != nil || now.StartTicks != one.StartTicks {
		return cluster.Identity{}, nil //nolint:nilerr // it ended meanwhile
	}
	now.Restarts, now.SHA256 = one.Restarts, id.SHA256
	return now, nil
}

// Status returns what the supervisor knows of the component's processes.
func (k *Component) Status(context.Context) (out cluster.Status, err error) {
	one, err := k.state()
	if err != nil {
		return out, err
	}
	id := func(start int) string { return fmt.Sprintf("%s/%d", k.name, start) }
	out = cluster.Status{ID: id(one.Starts - 1), Running: one.PID != 0, Restarts: one.Restarts}
	if e := one.Last; e != nil && e.Unsure {
		return out, fmt.Errorf("how the %s of %s ended is not known: %s", k.name, k.n.c.name, (&elsewhereError{lost: true}).Error())
	} else if e != nil {
		out.LastID, out.LastCode, out.LastFinished, out.LastOutOfMemory = id(e.Start), e.Code, e.At, e.OutOfMemory
	}
	return out, nil
}

// Pause stops the process. The supervisor makes it go on after atMost.
func (k *Component) Pause(ctx context.Context, atMost time.Duration) error {
	mark := pauseMark(k.n.c.home, k.process)
	until := time.Now().Add(atMost).Format(time.RFC3339Nano)
	if err := os.WriteFile(mark+".new", []byte(until), 0o600); err != nil {
		return err
	}
	if err := os.Rename(mark+".new", mark); err != nil {
		return err
	}
	return k.Signal(ctx, syscall.SIGSTOP, cluster.Identity{})
}

// Resume makes the process go on.
func (k *Component) Resume(context.Context) error {
	one, err := k.state()
	if err == nil && one.PID != 0 {
		err = one.signal(syscall.SIGCONT)
	}
	if err == nil {
		_, err = takeMark(pauseMark(k.n.c.home, k.process))
	}
	return err
}

const (
	// gentle is how long a process may take to end after SIGTERM.
	gentle = 10 * time.Second
	// restartTime is how long the supervisor may take to start a new process.
	restartTime = 30 * time.Second
)

// Restart ends the process, by force if it takes too long. It returns once a new process was started from the program
// that is there now, or has failed to start. This counts as no restart.
func (k *Component) Restart(ctx context.Context) error {
	if err := k.restart(ctx); err != nil {
		return fmt.Errorf("restarting the %s of %s: %w", k.name, k.n.c.name, err)
	}
	return nil
}

func (k *Component) restart(ctx context.Context) error {
	before, err := k.state()
	if err != nil {
		return err
	}
	mark := restartMark(k.n.c.home, k.process)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	if before.PID != 0 {
		if err := before.signal(syscall.SIGTERM); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, gentle)
		err := before.awaitExit(wait)
		cancel()
		if err != nil {
			if err := before.kill(); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, restartTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := k.state()
		if err == nil && now.Starts > before.Starts {
			return nil
		}
		select {
		case <-ctx.Done():
			// A later restart must not be taken for one on purpose.
			if rerr := os.Remove(mark); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
			return errors.Join(fmt.Errorf("there is no new process: %w", context.Cause(ctx)), err)
		case <-tick.C:
		}
	}
}

// StartError says that a component ended before it was ready for work.
type StartError struct {
	Component string
	Exit      string // how it ended
	Said      string // its last lines
}

// Error returns the component, how it ended and its last lines.
func (e *StartError) Error() string {
	return fmt.Sprintf(
		"%s ended before it was ready (%s); its last lines:\n%s",
		e.Component,
		e.Exit,
		e.Said,
	)
}

// answers returns once the component is ready for work. It fails if the process ended, or was started more often than
// starts.
func (k *Component) answers(ctx context.Context, starts int) error {
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		startTime,
		fmt.Errorf("not within %s", startTime),
	)
	defer cancel()
	row, _ := component.Of(k.name)
	ready := cmp.Or(row.Ready, "/healthz")
	if k.workload != nil {
		ready = k.workload.Ready
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		body, err := k.Get(ctx, ready)
		if err == nil {
			return body.Close()
		}
		one, serr := k.state()
		if serr == nil && (one.Exit != "" || one.Starts > starts) {
			return k.exitError(one)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"waiting for %s to be ready: %w; the last answer: %w; its last lines:\n%s",
				k.name,
				context.Cause(ctx),
				err,
				k.lastLogLines(one, 10),
			)
		case <-tick.C:
		}
	}
}

func (k *Component) exitError(one running) error {
	e := &StartError{Component: k.name, Exit: one.Exit, Said: k.lastLogLines(one, 10)}
	if e.Exit == "" && one.Last != nil { // it runs again already
		e.Exit = one.Last.String()
	}
	if isPortTaken(e.Said) {
		return errors.Join(errPortTaken, e)
	}
	return e
}

// lastLogLines returns the last lines of the log of a process that ended. If a new process runs already, they are those
// of the one before.
func (k *Component) lastLogLines(one running, lines int) string {
	starts := one.Starts
	if one.Exit == "" && starts > 1 {
		starts--
	}
	return lastLines(logs(k.n.c.home, k.namespace, k.n.name, k.name), starts, lines)
}
