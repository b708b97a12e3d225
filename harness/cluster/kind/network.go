package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// conflist is a node's CNI configuration, with the node's own range of pod addresses. Each pod has a link to its node.
// There is nothing between nodes, which reach each other's ranges by routes. Both official images and Debian's plugins
// have portmap.
const conflist = `{"cniVersion":"0.4.0","name":"relapse","plugins":[
{"type":"ptp","ipMasq":true,"ipam":{"type":"host-local","dataDir":"/run/cni-ipam-state","routes":[{"dst":"0.0.0.0/0"}],"ranges":[[{"subnet":%q}]]}},
{"type":"portmap","capabilities":{"portMappings":true}}]}`

// link holds what the other nodes need to know about a node.
type link struct{ node, ip, podCIDR string }

// connectTime bounds the time from the control plane's start until the last node has its pod range.
const connectTime = 5 * time.Minute

// connectAll gives each node its network as soon as it can have one, and returns when all have theirs.
func (c *Cluster) connectAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime,
		fmt.Errorf("not all nodes had a pod range within %s", connectTime))
	defer cancel()
	written := map[string]string{}
	err := retry(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		if err := c.connectSome(ctx, written); err != nil {
			return err
		}
		if len(written) < len(c.Machines) {
			return fmt.Errorf("%d of %d nodes have their network", len(written), len(c.Machines))
		}
		return nil
	})
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = errors.Join(context.Cause(ctx), err)
	}
	return err
}

// connectSome gives a network to the nodes that can have one by now and don't have it yet.
func (c *Cluster) connectSome(ctx context.Context, written map[string]string) error {
	if c.http == nil {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	links, err := c.links(ctx)
	if err != nil {
		return err
	}
	return c.write(ctx, links, written)
}

// reconnect writes the networks of all nodes anew: a node that was started again has lost its routes, and may have
// another address. A node that is switched off is left out, and gets its network when it is switched on.
func (c *Cluster) reconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var links []link
	// the API server itself may be starting
	err := retry(ctx, 200*time.Millisecond, func(ctx context.Context) (err error) {
		if links, err = c.links(ctx); err != nil {
			return err
		}
		if len(links) < len(c.Machines) {
			return fmt.Errorf("%d of %d nodes have a pod range", len(links), len(c.Machines))
		}
		return c.readdress(ctx, links)
	})
	if err != nil {
		return fmt.Errorf("connecting the nodes: %w", err)
	}
	return c.write(ctx, links, map[string]string{})
}

// links returns the nodes that have both an address and a pod range.
func (c *Cluster) links(ctx context.Context) ([]link, error) {
	body, err := c.get(ctx, "/api/v1/nodes")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var list corev1.NodeList
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, fmt.Errorf("decoding the list of nodes: %w", err)
	}
	var links []link
	for _, n := range list.Items {
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP && n.Spec.PodCIDR != "" {
				links = append(links, link{n.Name, a.Address, n.Spec.PodCIDR})
			}
		}
	}
	return links, nil
}

// CallableAddress returns the gateway of the nodes' network. That is this host's address there if the engine runs on
// this host.
func (c *Cluster) CallableAddress(ctx context.Context) (string, error) {
	out, err := c.p.docker.Output(ctx, "inspect", "--type", "container",
		"--format", "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}", c.Machines[0].name)
	if err != nil {
		return "", fmt.Errorf(
			"asking for this host's address on the network of %s: %w",
			c.name,
			err,
		)
	}
	address := strings.TrimSpace(string(out))
	if address == "" {
		return "", fmt.Errorf("this host has no address on the network of %s", c.name)
	}
	return address, nil
}

// readdress sets the addresses in links to those that the engine knows, because a Node object may not be up to date
// yet. A node that is off gets none, and is left out from then on.
func (c *Cluster) readdress(ctx context.Context, links []link) error {
	for i := range links {
		out, err := c.p.docker.Output(ctx, "inspect", "--type", "container",
			"--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", links[i].node)
		if err != nil {
			return err
		}
		links[i].ip = strings.TrimSpace(string(out))
	}
	return nil
}

// write runs the scripts of the nodes in parallel, leaves out a node whose script is in written already, and then adds
// the scripts to written.
func (c *Cluster) write(ctx context.Context, links []link, written map[string]string) error {
	c.netMu.Lock()
	defer c.netMu.Unlock()
	scripts := map[string]string{}
	work, ctx := errgroup.WithContext(ctx)
	for _, to := range links {
		if to.ip == "" {
			continue
		}
		s := script(to, links)
		if written[to.node] == s {
			continue
		}
		scripts[to.node] = s
		work.Go(func() error {
			n, err := c.node(to.node)
			if err == nil {
				_, err = n.Exec(ctx, nil, "sh", "-ec", s)
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for node, s := range scripts {
		written[node] = s
	}
	return nil
}

// script returns the shell script that writes the configuration and the routes of the node to. It is idempotent. The
// file appears in one step, because containerd reads whatever it finds in the folder, even half a file.
func script(to link, links []link) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mkdir -p /etc/cni/net.d\ncat >/etc/cni/net.d/.relapse <<'EOF'\n%s\nEOF\n",
		fmt.Sprintf(conflist, to.podCIDR))
	b.WriteString("mv /etc/cni/net.d/.relapse /etc/cni/net.d/10-relapse.conflist\n")
	for _, from := range links {
		if from.node != to.node && from.ip != "" {
			fmt.Fprintf(&b, "ip route replace %s via %s\n", from.podCIDR, from.ip)
		}
	}
	return b.String()
}

func (c *Cluster) node(name string) (*Node, error) {
	for _, n := range c.Machines {
		if n.name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the cluster has a node %q that its topology doesn't", name)
}

// get requests a path from the API server.
func (c *Cluster) get(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.do(ctx, http.MethodGet, path)
}

// do sends the API server a request without a body.
func (c *Cluster) do(ctx context.Context, method, path string) (io.ReadCloser, error) {
	return c.send(ctx, method, path, "", nil)
}

// send sends the API server a request with a body of a media type.
func (c *Cluster) send(
	ctx context.Context,
	method, path, media string,
	body []byte,
) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.rest.Host, "/")+path,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	return cluster.Body(resp, path)
}
