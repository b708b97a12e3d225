package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/nodeimage"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// GetNodeImage gets the node image for a Kubernetes version and returns its reference. mode is auto, official, assembled or a reference.
func (a *Artifacts) GetNodeImage(ctx context.Context, version, mode string) (string, error) {
	alone := plan.Trial{Clusters: []plan.Cluster{{Topology: cluster.Topology{Version: version}}}}
	err := a.Prepare(ctx, &plan.Plan{Version: version, NodeImage: mode, Trials: []plan.Trial{alone}})
	return a.images[version].Ref, err
}

// findImages looks for images that need not be assembled. It returns the versions for which there is none.
func (a *Artifacts) findImages(ctx context.Context, p *plan.Plan) (missing []string, err error) {
	for _, version := range p.Versions() {
		ok, err := a.findImage(ctx, version, cmp.Or(p.NodeImage, nodeimage.Auto))
		if err != nil {
			return missing, err
		}
		if !ok {
			missing = append(missing, version)
		}
	}
	return missing, nil
}

func (a *Artifacts) findImage(ctx context.Context, version, mode string) (bool, error) {
	switch mode {
	case nodeimage.Assembled:
		return false, nil
	case nodeimage.Auto:
		minor := version[:max(0, strings.LastIndex(version, "."))]
		img, ok, err := a.store.Official(ctx, minor)
		if ok {
			a.images[version] = img
			return true, nil
		}
		var gone *nodeimage.UnavailableError
		if errors.As(err, &gone) {
			a.Events.Say(event.Note, fmt.Sprintf("%v; assembling a node image from Debian packages and Go modules instead", err))
			return false, nil
		}
		return false, err
	}
	img, err := a.store.Get(ctx, nodeimage.Request{Version: version, Mode: mode})
	a.images[version] = img
	return err == nil, err
}

// base has the Debian part of an assembled image made, which needs no binary of ours.
func (a *Artifacts) base(ctx context.Context) error {
	_, err := a.store.Base(ctx)
	return err
}

// assemble builds what a node of a version runs and makes its image.
func (a *Artifacts) assemble(ctx context.Context, version string) error {
	components, err := a.components(ctx, version)
	if err != nil {
		return err
	}
	components["pause"] = a.fixtures["pause"].Path
	a.images[version], err = a.store.Get(ctx, nodeimage.Request{Version: version, Mode: nodeimage.Assembled, Binaries: components})
	return err
}

// components builds what a node of a version runs.
func (a *Artifacts) components(ctx context.Context, version string) (map[string]string, error) {
	const kubernetes = "k8s.io/kubernetes"
	src := build.Source{Module: kubernetes, Version: version}
	for _, name := range []string{"kubelet", "kubeadm", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		src.Packages = append(src.Packages, kubernetes+"/cmd/"+name)
	}
	out := map[string]string{}
	for _, s := range []build.Source{src, {Module: "go.etcd.io/etcd/server/v3", Version: etcdVersion, Packages: []string{"go.etcd.io/etcd/server/v3"}}} {
		r, err := a.builder.Build(ctx, s)
		if err != nil {
			return nil, err
		}
		for name, b := range r.Binaries {
			out[name] = b.Path
		}
	}
	return out, nil
}
