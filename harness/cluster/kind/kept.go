package kind

import (
	"context"
	"errors"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host"
)

// Kept lists the node images that were assembled.
func (p *Provider) Kept(ctx context.Context) ([]cluster.Kept, error) {
	images, err := p.keptImages(ctx)
	if images == nil {
		return nil, err
	}
	return images.List(ctx)
}

// Prune removes the node images that were assembled and that no container uses.
func (p *Provider) Prune(ctx context.Context) ([]cluster.Kept, error) {
	images, err := p.keptImages(ctx)
	if images == nil {
		return nil, err
	}
	return images.Prune(ctx)
}

// Clean removes what unfinished node images left behind, and calls say for each part.
func (p *Provider) Clean(ctx context.Context, say func(string)) error {
	images, err := p.keptImages(ctx)
	if images == nil {
		return err
	}
	return images.Clean(ctx, say)
}

// keptImages returns the node images, or nil if there is no engine, and so nothing is kept.
func (p *Provider) keptImages(ctx context.Context) (*host.NodeImages, error) {
	_, err := docker.Detect(ctx)
	if errors.Is(err, docker.ErrNoCLI) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.nodeImages()
}
