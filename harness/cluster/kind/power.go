package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The engine's restart policies for a node. kind makes all its containers with restartAtBoot, so that the nodes are
// back after the engine restarts. The policy is the only record of a node that is off: no file has to outlive the
// process that switched it off.
const (
	restartAtBoot = "on-failure:1"
	restartNever  = "no"
)

// powerTime is how long a node may take to be down, and by how much a node that boots may outlast its own time to
// rejoin the others.
const powerTime = time.Minute

// PowerOff kills the node at once, like a cut cable; its disk stays. It returns once the node is down, and the engine
// will not start it again by itself. The restart policy is changed after the kill: the engine doesn't restart what it
// was told to kill, and changing it in a running container would make the engine set all of its limits anew.
func (n *Node) PowerOff(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, powerTime, fmt.Errorf("it was not down within %s", powerTime))
	defer cancel()
	if err := n.powerOff(ctx); err != nil {
		return fmt.Errorf("powering off node %s: %w", n.name, err)
	}
	return nil
}

func (n *Node) powerOff(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := n.state(ctx)
		switch {
		case err != nil:
			return err
		case s.restart != restartNever && s.restart != restartAtBoot:
			return fmt.Errorf("the engine's restart policy for it is %q (want %s, which would be put back when it is "+
				"switched on)", s.restart, restartAtBoot)
		case s.running:
			if _, err := n.c.p.docker.Output(ctx, "kill", "--signal", "KILL", n.name); err != nil && !isStopped(err) {
				return err
			}
		case s.restart != restartNever:
			if err := n.setRestart(ctx, restartNever); err != nil {
				return err
			}
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx),
				fmt.Errorf("last seen: running %t, restart policy %s", s.running, s.restart))
		case <-tick.C:
		}
	}
}

// isStopped tells the engine's answer that there is nothing to kill: the node was faster.
func isStopped(err error) bool { return strings.Contains(err.Error(), "is not running") }

// PowerOn starts the node and returns once its systemd answers, and its routes and the other nodes' routes to it are
// back. Its kubelet takes some seconds more. The node gets kind's restart policy again, also if another process
// switched it off.
//
// The engine gives a node the lowest address that is free. One node that was off alone gets its own again; of
// several, one may get another's. kind's entrypoint then writes the new address into the node's configuration, and
// reconnect into everybody's routes.
func (n *Node) PowerOn(ctx context.Context) error {
	err := n.start(ctx)
	if err == nil && n.c.own {
		err = n.rejoin(ctx)
	}
	if err != nil {
		return fmt.Errorf("powering on node %s: %w", n.name, err)
	}
	return nil
}

// start starts the container, one of the cluster at a time: reconnect runs commands in all nodes that have an
// address, and a node has one before it can run any.
func (n *Node) start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case n.c.power <- struct{}{}:
	}
	defer func() { <-n.c.power }()
	s, err := n.state(ctx)
	if err != nil {
		return err
	}
	if s.restart == restartNever {
		if err := n.setRestart(ctx, restartAtBoot); err != nil {
			return err
		}
	}
	if !s.running {
		if _, err := n.c.p.docker.Output(ctx, "start", n.name); err != nil {
			return err
		}
	}
	return n.booted(ctx)
}

// rejoin connects the node with the others, and tries again as long as one of them is on its way down or up itself.
func (n *Node) rejoin(ctx context.Context) error {
	deadline := time.Now().Add(powerTime)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := n.c.reconnect(ctx)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// Booted is when the node was last started, by the engine's clock, which is the node's own.
func (n *Node) Booted(ctx context.Context) (time.Time, error) {
	s, err := n.state(ctx)
	if err == nil && !s.running {
		err = errors.New("it is off")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("asking when node %s was started: %w", n.name, err)
	}
	return s.started, nil
}

// containerState is what the engine knows of a node. restart is as its command line has it.
type containerState struct {
	running bool
	started time.Time
	restart string
}

const stateFormat = `{{.State.Running}} {{.State.StartedAt}} {{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}}`

func (n *Node) state(ctx context.Context) (s containerState, err error) {
	out, err := n.c.p.docker.Output(ctx, "inspect", "--type", "container", "--format", stateFormat, n.name)
	if err != nil {
		return s, err
	}
	fields := strings.Fields(string(out))
	if len(fields) != 3 {
		return s, fmt.Errorf("the engine describes the container as %q", strings.TrimSpace(string(out)))
	}
	if s.started, err = time.Parse(time.RFC3339Nano, fields[1]); err != nil {
		return s, fmt.Errorf("reading when the container was started: %w", err)
	}
	s.running = fields[0] == "true"
	s.restart = strings.TrimSuffix(fields[2], ":0") // "no:0", ":0" in an engine that has no policy for it
	if s.restart == "" {
		s.restart = restartNever
	}
	return s, nil
}

func (n *Node) setRestart(ctx context.Context, policy string) error {
	_, err := n.c.p.docker.Output(ctx, "update", "--restart", policy, n.name)
	return err
}

// booted waits until systemd has come as far as kubelet's start.
func (n *Node) booted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := retry(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		_, err := n.Exec(ctx, nil, "systemctl", "is-active", "--quiet", "multi-user.target")
		return err
	})
	if err != nil {
		return fmt.Errorf("it did not boot: %w", err)
	}
	return nil
}
