package kind

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Images returns the node images that were prepared, and the load balancer's if there are several control planes.
func (p *Provider) Images(n cluster.Needs) (out []cluster.Image) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range n.Versions() {
		if img, ok := p.images[v]; ok {
			out = append(out, cluster.Image{Version: v, Mode: cmp.Or(n.NodeImage, "auto"), Ref: img.Ref, ID: img.ID, Origin: img.Origin})
		}
	}
	if slices.ContainsFunc(n.Topologies, func(t cluster.Topology) bool { return controlPlanes(t) > 1 }) {
		out = append(out, cluster.Image{Ref: balancerImage, ID: balancerImage, Origin: "official"})
	}
	return out
}

// Save writes an image's archive to w. The engine pulls a load balancer's image that it doesn't have.
func (p *Provider) Save(ctx context.Context, i cluster.Image, w io.Writer) error {
	if i.Version == "" {
		if _, err := p.docker.Output(ctx, "image", "inspect", "--format", "{{.Id}}", i.Ref); err != nil {
			if _, err := p.docker.Output(ctx, "pull", i.Ref); err != nil {
				return err
			}
		}
	}
	images, err := p.nodeImages()
	if err != nil {
		return err
	}
	return images.Save(ctx, i, w)
}

// Load loads an image's archive into the engine.
func (p *Provider) Load(ctx context.Context, all []cluster.Image, archive io.Reader) error {
	images, err := p.nodeImages()
	if err != nil {
		return err
	}
	return images.Load(ctx, all, archive)
}
