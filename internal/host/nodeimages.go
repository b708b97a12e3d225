package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

// NodeImage is an image in the container engine that kind's nodes can be started from.
type NodeImage struct {
	Ref    string // what to give to kind
	ID     string // the engine's image id, "sha256:..."
	Origin string // "official", "assembled" or "given"
}

// NodeImages gets node images, and keeps in the container engine those that it assembled.
type NodeImages struct {
	store  *nodeimage.Store
	events *event.Stream
}

// OpenNodeImages returns the node images of a cache directory. events gets the progress and may be nil.
func OpenNodeImages(
	cacheDir string,
	client *docker.Client,
	events *event.Stream,
) (*NodeImages, error) {
	store, err := nodeimage.New(
		cacheDir,
		client,
		func(s string) { events.Say(event.Progress, s) },
	)
	if err != nil {
		return nil, err
	}
	return &NodeImages{store: store, events: events}, nil
}

// Get returns an image for each Kubernetes version that is needed: an official one if there is one, else one that is
// assembled here. All programs that a node runs are built for it, while Debian's packages are fetched.
func (n *NodeImages) Get(ctx context.Context, needs cluster.Needs) (map[string]NodeImage, error) {
	images, missing := map[string]NodeImage{}, []string(nil)
	for _, version := range needs.Versions() {
		img, ok, err := n.find(ctx, version, cmp.Or(needs.NodeImage, nodeimage.Auto))
		if err != nil {
			return nil, err
		}
		if images[version] = narrow(img); !ok {
			missing = append(missing, version)
		}
	}
	return images, n.assemble(ctx, needs.Builder, missing, images)
}

func narrow(img nodeimage.Image) NodeImage {
	return NodeImage{Ref: img.Ref, ID: img.ID, Origin: img.Origin}
}

// find returns an image that need not be assembled, or false if there is none. No registry is asked for what was imported
// or assembled earlier.
func (n *NodeImages) find(
	ctx context.Context,
	version, mode string,
) (nodeimage.Image, bool, error) {
	if img, ok, err := n.store.Imported(ctx, version, mode); ok || err != nil {
		return img, ok, err
	}
	switch mode {
	case nodeimage.Assembled:
		return nodeimage.Image{}, false, nil
	case nodeimage.Auto:
		if origin, err := n.store.Has(ctx, version, mode); err != nil || origin == nodeimage.OriginAssembled {
			return nodeimage.Image{}, false, err
		}
		img, ok, err := n.store.Official(ctx, version[:max(0, strings.LastIndex(version, "."))])
		var gone *nodeimage.UnavailableError
		if !ok && errors.As(err, &gone) {
			n.events.Say(
				event.Note,
				fmt.Sprintf(
					"%v; assembling a node image from Debian packages and Go modules instead",
					err,
				),
			)
			err = nil
		}
		return img, ok, err
	}
	img, err := n.store.Get(ctx, nodeimage.Request{Version: version, Mode: mode})
	return img, err == nil, err
}

// assemble makes the images of some versions and puts them into images.
func (n *NodeImages) assemble(ctx context.Context, b cluster.Builder, versions []string,
	images map[string]NodeImage) error {
	if len(versions) == 0 {
		return nil
	}
	if b == nil {
		return fmt.Errorf(
			"assembling a node image for %s: nothing can be built here",
			strings.Join(versions, ", "),
		)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { // the Debian part, which needs no program of ours
		_, err := n.store.Base(ctx)
		return err
	})
	g.Go(func() error {
		for _, version := range versions {
			programs, err := components(ctx, b, version)
			if err != nil {
				return err
			}
			img, err := n.store.Get(
				ctx,
				nodeimage.Request{Version: version, Mode: nodeimage.Assembled,
					Binaries: programs},
			)
			if err != nil {
				return err
			}
			images[version] = narrow(img)
		}
		return nil
	})
	return g.Wait()
}

// components builds the programs that a node of a version runs, and returns their paths by name.
func components(
	ctx context.Context,
	b cluster.Builder,
	version string,
) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range nodePrograms(version) {
		built, err := b.BuildPrograms(ctx, p.Module, p.Version, p.Packages...)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, built)
	}
	pause, err := b.BuildFixture(ctx, pauseFixture)
	out[pauseFixture] = pause
	return out, err
}

// pauseFixture is the fixture that stands for Kubernetes' pause image.
const pauseFixture = "pause"

// nodePrograms returns the programs that a node of a version runs.
func nodePrograms(version string) []cluster.Programs {
	var packages []string
	for _, name := range []string{"kubelet", "kubeadm", "kubectl", "kube-apiserver", "kube-controller-manager",
		"kube-scheduler", "kube-proxy"} {
		packages = append(packages, component.KubernetesModule+"/cmd/"+name)
	}
	return []cluster.Programs{{Module: component.KubernetesModule, Version: version, Packages: packages},
		{Module: component.EtcdModule, Version: component.EtcdVersion, Packages: []string{component.EtcdModule}}}
}

// Foresee returns what Get will make: the images that the engine lacks, and the programs of those that are assembled.
// An image that was assembled earlier is found by its version, so Get makes it anew if its recipe has changed since.
func (n *NodeImages) Foresee(
	ctx context.Context,
	needs cluster.Needs,
) (out cluster.Foreseen, err error) {
	for _, version := range needs.Versions() {
		mode := cmp.Or(needs.NodeImage, nodeimage.Auto)
		_, imported, err := n.store.Imported(ctx, version, mode)
		if err != nil {
			return out, err
		}
		if imported {
			continue
		}
		origin, err := n.store.Has(ctx, version, mode)
		if err != nil {
			return out, err
		}
		if origin == "" {
			out.Lacks = append(out.Lacks, "the node image of "+version)
		}
		if origin == nodeimage.OriginAssembled || origin == "" && needs.NodeImage == nodeimage.Assembled {
			out.Programs, out.Fixtures = append(out.Programs, nodePrograms(version)...), append(out.Fixtures, pauseFixture)
		}
	}
	return out, nil
}

// There reports whether the engine has an image for each version, so that none has to be pulled or assembled.
func (n *NodeImages) There(ctx context.Context, needs cluster.Needs) (bool, error) {
	missing, err := n.Foresee(ctx, needs)
	return err == nil && len(missing.Lacks) == 0, err
}

// Save writes an image's archive to w.
func (n *NodeImages) Save(ctx context.Context, i cluster.Image, w io.Writer) error {
	return n.store.Save(ctx, i.Ref, w)
}

// Load loads the archive of an image, which is for each of images, unless all of them are there. Get then returns it for
// them.
func (n *NodeImages) Load(ctx context.Context, images []cluster.Image, archive io.Reader) error {
	var as []nodeimage.Imported
	for _, i := range images {
		as = append(
			as,
			nodeimage.Imported{Version: i.Version, Mode: i.Mode, From: i.ID, Origin: i.Origin},
		)
	}
	return n.store.Load(ctx, as, archive)
}

// List returns the node images that were assembled.
func (n *NodeImages) List(ctx context.Context) ([]cluster.Kept, error) {
	list, err := n.store.List(ctx)
	return kept(list), err
}

// Prune removes the node images that were assembled and that no container uses, and returns what it removed.
func (n *NodeImages) Prune(ctx context.Context) ([]cluster.Kept, error) {
	list, err := n.store.Prune(ctx)
	return kept(list), err
}

func kept(list []nodeimage.Entry) []cluster.Kept {
	var out []cluster.Kept
	for _, i := range list {
		out = append(out, cluster.Kept{Kind: "image", Name: i.Ref, Key: i.Key, Bytes: i.Size, Created: i.Created})
	}
	return out
}

// Clean removes what unfinished node images left behind, and calls say for each part.
func (n *NodeImages) Clean(ctx context.Context, say func(string)) error {
	left, err := n.store.Clean(ctx)
	for _, x := range left {
		say("removed the " + x.Kind + " " + x.Name + " of an unfinished node image")
	}
	return err
}
