package kind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

// Prepare gets a node image for each Kubernetes version: an official one if there is one, else one that is assembled
// here. All programs that a node runs are built for it, while Debian's packages are fetched.
func (p *Provider) Prepare(ctx context.Context, n cluster.Needs) (map[string]string, error) {
	store, err := p.nodeImages()
	if err != nil {
		return nil, err
	}
	images, missing := map[string]nodeimage.Image{}, []string(nil)
	for _, version := range n.Versions() {
		img, ok, err := p.findImage(ctx, store, version, cmp.Or(n.NodeImage, nodeimage.Auto))
		if err != nil {
			return nil, err
		}
		if images[version] = img; !ok {
			missing = append(missing, version)
		}
	}
	if err := assemble(ctx, store, n.Builder, missing, images); err != nil {
		return nil, err
	}
	p.mu.Lock()
	maps.Copy(p.images, images)
	p.mu.Unlock()
	return p.versions(ctx, n.Versions(), images), nil
}

// NodeImage returns the reference of the node image that was prepared for a version, or "" if none was.
func (p *Provider) NodeImage(version string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.images[version].Ref
}

func (p *Provider) nodeImages() (*nodeimage.Store, error) {
	dir, err := p.cacheDir()
	if err != nil {
		return nil, err
	}
	return nodeimage.New(dir, p.docker, func(s string) { p.events.Say(event.Progress, s) })
}

func (p *Provider) cacheDir() (string, error) {
	if p.cache != "" {
		return p.cache, nil
	}
	return cache.DefaultDir()
}

// findImage returns an image that need not be assembled, or false if there is none.
func (p *Provider) findImage(ctx context.Context, store *nodeimage.Store, version, mode string) (nodeimage.Image, bool,
	error) {
	switch mode {
	case nodeimage.Assembled:
		return nodeimage.Image{}, false, nil
	case nodeimage.Auto:
		img, ok, err := store.Official(ctx, version[:max(0, strings.LastIndex(version, "."))])
		var gone *nodeimage.UnavailableError
		if !ok && errors.As(err, &gone) {
			p.events.Say(event.Note,
				fmt.Sprintf("%v; assembling a node image from Debian packages and Go modules instead", err))
			err = nil
		}
		return img, ok, err
	}
	img, err := store.Get(ctx, nodeimage.Request{Version: version, Mode: mode})
	return img, err == nil, err
}

// assemble makes the images of some versions and puts them into images.
func assemble(ctx context.Context, store *nodeimage.Store, b cluster.Builder, versions []string,
	images map[string]nodeimage.Image) error {
	if len(versions) == 0 {
		return nil
	}
	if b == nil {
		return fmt.Errorf("assembling a node image for %s: nothing can be built here", strings.Join(versions, ", "))
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { // the Debian part, which needs no program of ours
		_, err := store.Base(ctx)
		return err
	})
	g.Go(func() error {
		for _, version := range versions {
			programs, err := components(ctx, b, version)
			if err != nil {
				return err
			}
			images[version], err = store.Get(ctx, nodeimage.Request{Version: version, Mode: nodeimage.Assembled,
				Binaries: programs})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// components builds the programs that a node of a version runs, and returns their paths by name.
func components(ctx context.Context, b cluster.Builder, version string) (map[string]string, error) {
	var packages []string
	for _, name := range []string{"kubelet", "kubeadm", "kubectl", "kube-apiserver", "kube-controller-manager",
		"kube-scheduler", "kube-proxy"} {
		packages = append(packages, component.KubernetesModule+"/cmd/"+name)
	}
	out, err := b.BuildPrograms(ctx, component.KubernetesModule, version, packages...)
	if err != nil {
		return nil, err
	}
	server, err := b.BuildPrograms(ctx, component.EtcdModule, component.EtcdVersion, component.EtcdModule)
	if err != nil {
		return nil, err
	}
	maps.Copy(out, server)
	out["pause"], err = b.BuildFixture(ctx, "pause")
	return out, err
}

// versions returns the versions that verdicts name: the engine's, and what the images are. It also emits an event for
// each image.
func (p *Provider) versions(ctx context.Context, versions []string,
	images map[string]nodeimage.Image) map[string]string {
	var refs, ids, origins []string
	for _, v := range versions {
		img := images[v]
		p.events.Say(event.Note, fmt.Sprintf("node image for %s: %s (%s)", v, img.Ref, img.Origin))
		refs, ids, origins = append(refs, img.Ref), append(ids, img.ID), append(origins, img.Origin)
	}
	out := map[string]string{"nodeImage": strings.Join(refs, ", "), "nodeImageID": strings.Join(ids, ", "),
		"nodeImageOrigin": strings.Join(origins, ", ")}
	if info, err := p.docker.ServerInfo(ctx); err == nil {
		out["engine"] = p.docker.Name + " " + info.Version
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
