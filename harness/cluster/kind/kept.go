package kind

import (
	"context"
	"errors"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/host/engine"
	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

// Kept lists the node images that were assembled.
func (p *Provider) Kept(ctx context.Context) ([]cluster.Kept, error) {
	store, err := p.keptImages(ctx)
	if store == nil {
		return nil, err
	}
	list, err := store.List(ctx)
	return kept(list), err
}

// Prune removes the node images that were assembled and that no container uses.
func (p *Provider) Prune(ctx context.Context) ([]cluster.Kept, error) {
	store, err := p.keptImages(ctx)
	if store == nil {
		return nil, err
	}
	list, err := store.Prune(ctx)
	return kept(list), err
}

// Clean removes what unfinished node images left behind, and calls say for each part.
func (p *Provider) Clean(ctx context.Context, say func(string)) error {
	store, err := p.keptImages(ctx)
	if store == nil {
		return err
	}
	left, err := store.Clean(ctx)
	for _, x := range left {
		say("removed the " + x.Kind + " " + x.Name + " of an unfinished node image")
	}
	return err
}

// keptImages returns the store of node images, or nil if there is no engine, and so nothing is kept.
func (p *Provider) keptImages(ctx context.Context) (*nodeimage.Store, error) {
	_, err := engine.Detect(ctx)
	if errors.Is(err, engine.ErrNoCLI) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.nodeImages()
}

func kept(list []nodeimage.Entry) []cluster.Kept {
	var out []cluster.Kept
	for _, i := range list {
		out = append(out, cluster.Kept{Kind: "image", Name: i.Ref, Key: i.Key, Bytes: i.Size, Created: i.Created})
	}
	return out
}
