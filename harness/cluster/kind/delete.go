package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Labels by which a cluster's parts are found: kind's own on containers, ours on the network.
const (
	kindLabel    = "io.x-k8s.kind.cluster"
	kindRole     = "io.x-k8s.kind.role"
	networkLabel = "relapse.dev/cluster"
)

// Delete removes the cluster's containers with their anonymous volumes, its network and its files. kind's own Delete
// is not used: it takes no context, and edits a kubeconfig.
func (p *Provider) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("deleting a cluster: %w", err)
	}
	err := errors.Join(
		p.removeContainers(ctx, name),
		p.removeNetworks(ctx, name),
		os.RemoveAll(p.home(name)),
	)
	if err != nil {
		return fmt.Errorf("deleting cluster %q: %w", name, err)
	}
	return nil
}

// containers lists a cluster's containers by name, stopped and half-made ones too.
func (p *Provider) containers(ctx context.Context, name string) ([]string, error) {
	out, err := p.docker.Output(
		ctx,
		"ps",
		"-a",
		"--filter",
		"label="+kindLabel+"="+name,
		"--format",
		"{{.Names}}",
	)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(out)), nil
}

// removeTime is how long removing containers may take. The engine may say that a container is removed and still list
// it, if the client that was making it died. On a host whose cores were all taken, three nodes took more than half a
// minute.
const removeTime = 100 * time.Second

// removeContainers removes the cluster's containers and returns once none is left.
func (p *Provider) removeContainers(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var removal error
	for {
		names, err := p.containers(ctx, name)
		if err != nil {
			return errors.Join(removal, err)
		}
		if len(names) == 0 {
			return nil
		}
		_, removal = p.docker.Output(ctx, append([]string{"rm", "--force", "--volumes"}, names...)...)
		select {
		case <-ctx.Done():
			return errors.Join(
				removal,
				fmt.Errorf(
					"containers %s are still there: %w",
					strings.Join(names, ", "),
					ctx.Err(),
				),
			)
		case <-tick.C:
		}
	}
}

// makeNetwork makes the cluster's network before kind does, so that it carries our label. The network is a bridge like
// kind's, without its IPv6.
func (p *Provider) makeNetwork(ctx context.Context, name, network string) error {
	ids, err := p.docker.Output(ctx, "network", "ls", "--quiet", "--filter", "name=^"+network+"$")
	if err != nil {
		return err
	}
	if len(strings.Fields(string(ids))) > 0 {
		return fmt.Errorf("the network %q is there already and may be somebody else's", network)
	}
	args := []string{"network", "create", "--driver", "bridge", "--label", networkLabel + "=" + name,
		"--opt", "com.docker.network.bridge.enable_ip_masquerade=true"}
	// The nodes' MTU must not be larger than that of the engine's own way out, for example through a tunnel.
	mtu, err := p.docker.Output(ctx, "network", "inspect", "bridge", "--format",
		`{{index .Options "com.docker.network.driver.mtu"}}`)
	if m := strings.TrimSpace(string(mtu)); err == nil && m != "" && m != "0" {
		args = append(args, "--opt", "com.docker.network.driver.mtu="+m)
	}
	_, err = p.docker.Output(ctx, append(args, network)...)
	return err
}

// removeNetworks removes the networks that have the cluster's label, and no others.
func (p *Provider) removeNetworks(ctx context.Context, name string) error {
	list := func() ([]string, error) {
		out, err := p.docker.Output(
			ctx,
			"network",
			"ls",
			"--quiet",
			"--filter",
			"label="+networkLabel+"="+name,
		)
		return strings.Fields(string(out)), err
	}
	ids, err := list()
	if err != nil || len(ids) == 0 {
		return err
	}
	_, removal := p.docker.Output(ctx, append([]string{"network", "rm"}, ids...)...)
	if ids, err = list(); err == nil && len(ids) == 0 {
		return nil // somebody else's Delete may have been faster than ours
	}
	return errors.Join(removal, err)
}
