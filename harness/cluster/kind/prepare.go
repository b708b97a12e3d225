package kind

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/internal/host"
)

// Prepare gets a node image for each Kubernetes version.
func (p *Provider) Prepare(ctx context.Context, n cluster.Needs) (map[string]string, error) {
	store, err := p.nodeImages()
	if err != nil {
		return nil, err
	}
	images, err := store.Get(ctx, n)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	maps.Copy(p.images, images)
	p.mu.Unlock()
	return p.versions(ctx, n.Versions(), images), nil
}

// Foresee returns which node images the engine lacks, and the programs that an assembled one is made of.
func (p *Provider) Foresee(ctx context.Context, n cluster.Needs) (cluster.Foreseen, error) {
	store, err := p.nodeImages()
	if err != nil {
		return cluster.Foreseen{}, err
	}
	return store.Foresee(ctx, n)
}

// NodeImage returns the reference of the node image that was prepared for a version, or "" if none was.
func (p *Provider) NodeImage(version string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.images[version].Ref
}

func (p *Provider) nodeImages() (*host.NodeImages, error) {
	dir, err := p.cacheDir()
	if err != nil {
		return nil, err
	}
	return host.OpenNodeImages(dir, p.docker, p.events)
}

func (p *Provider) cacheDir() (string, error) {
	if p.cache != "" {
		return p.cache, nil
	}
	return cache.DefaultDir()
}

// versions returns the versions that verdicts name: the engine's, and what the images are. It also emits an event for
// each image.
func (p *Provider) versions(ctx context.Context, versions []string,
	images map[string]host.NodeImage) map[string]string {
	var refs, ids, origins []string
	for _, v := range versions {
		img := images[v]
		p.events.Say(event.Note, fmt.Sprintf("node image for %s: %s (%s)", v, img.Ref, img.Origin))
		refs, ids, origins = append(refs, img.Ref), append(ids, img.ID), append(origins, img.Origin)
	}
	out := map[string]string{"nodeImage": strings.Join(refs, ", "), "nodeImageID": strings.Join(ids, ", "),
		"nodeImageOrigin": strings.Join(origins, ", ")}
	if info, err := p.docker.ServerInfo(ctx); err == nil {
		out["engine"] = "docker " + info.Version
	}
	return out
}

// imaged returns the topology, in which nodes without an image have the one that was prepared for its version.
func (p *Provider) imaged(t cluster.Topology) cluster.Topology {
	t.Nodes = slices.Clone(t.Nodes)
	for i := range t.Nodes {
		t.Nodes[i].Image = cmp.Or(t.Nodes[i].Image, p.NodeImage(t.Version))
	}
	return t
}
