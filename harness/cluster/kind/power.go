package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The engine's restart policies for a node. kind makes all its containers with restartAtBoot, so that the nodes are
// back after the engine restarts. The policy is the only record that a node was switched off, so no file has to outlive
// the process that did it.
const (
	restartAtBoot = "on-failure:1"
	restartNever  = "no"
)

// powerTime is how long PowerOff waits for a node to be down. PowerOn tries for as long to connect a node that has
// booted with the others.
const powerTime = time.Minute

// PowerOff kills the node at once, like a cut cable; its disk stays. It returns once the node is down and the engine
// would not start it again. The restart policy is changed after the kill: the engine doesn't restart what it was told
// to kill, and a new policy would make it set all limits of a running container anew.
func (n *Node) PowerOff(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		powerTime,
		fmt.Errorf("it was not down within %s", powerTime),
	)
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
			return fmt.Errorf(
				"the engine's restart policy for it is %q (want %s, which would be put back when it is "+
					"switched on)",
				s.restart,
				restartAtBoot,
			)
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

// isStopped reports whether err is the engine's answer that there is nothing to kill, because the node stopped before.
func isStopped(err error) bool { return strings.Contains(err.Error(), "is not running") }

// PowerOn starts the node and returns once its systemd answers, and its routes and the other nodes' routes to it are
// back. Its kubelet takes some seconds more. The node gets kind's restart policy again, even if another process
// switched the node off.
//
// The engine gives a node the lowest free address. A node that was off alone gets its old address again; if several
// were off, a node may get the address of another. kind's entrypoint then writes the new address into the node's
// configuration, and reconnect writes it into the routes of all nodes.
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

// start starts the node's container and waits until it has booted. Nodes of a cluster start one at a time: reconnect
// runs commands in all nodes that have an address, and a starting node has one before it can run commands.
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

// rejoin connects the node with the others. It tries again for powerTime, because another node may be starting or
// stopping.
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

// Booted returns when the node was last started, by the engine's clock, which is also the node's.
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

// containerState holds what the engine says about a node. restart is the policy as `docker update --restart` takes it.
type containerState struct {
	running bool
	started time.Time
	restart string
}

const stateFormat = `{{.State.Running}} {{.State.StartedAt}} {{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}}`

func (n *Node) state(ctx context.Context) (s containerState, err error) {
	out, err := n.c.p.docker.Output(
		ctx,
		"inspect",
		"--type",
		"container",
		"--format",
		stateFormat,
		n.name,
	)
	if err != nil {
		return s, err
	}
	fields := strings.Fields(string(out))
	if len(fields) != 3 {
		return s, fmt.Errorf(
			"the engine describes the container as %q",
			strings.TrimSpace(string(out)),
		)
	}
	if s.started, err = time.Parse(time.RFC3339Nano, fields[1]); err != nil {
		return s, fmt.Errorf("reading when the container was started: %w", err)
	}
	s.running = fields[0] == "true"
	s.restart = strings.TrimSuffix(fields[2], ":0") // "no:0", or ":0" from an engine that has no policy for the node
	if s.restart == "" {
		s.restart = restartNever
	}
	return s, nil
}

func (n *Node) setRestart(ctx context.Context, policy string) error {
	_, err := n.c.p.docker.Output(ctx, "update", "--restart", policy, n.name)
	return err
}

// booted waits until systemd has reached multi-user.target, and so has started kubelet.
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
