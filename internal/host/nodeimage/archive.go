package nodeimage

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// imageNames returns the images that a cluster of version wants, by component. It asks kubeadm, the path of the program
// that was built. CoreDNS is left out: see the package's comment.
func imageNames(ctx context.Context, kubeadm, version string) (map[string]string, error) {
	cmd := exec.CommandContext(
		ctx,
		kubeadm,
		"config",
		"images",
		"list",
		"--kubernetes-version",
		version,
	)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running `%s`: %w", strings.Join(cmd.Args, " "), withStderr(err))
	}
	names := map[string]string{}
	for _, ref := range strings.Fields(string(out)) {
		component, _, _ := strings.Cut(path.Base(ref), ":")
		if component != "coredns" {
			names[component] = ref
		}
	}
	for _, want := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd",
		"pause"} {
		if names[want] == "" {
			return nil, fmt.Errorf(
				"running `%s`: no %s in %q",
				strings.Join(cmd.Args, " "),
				want,
				out,
			)
		}
	}
	return names, nil
}

// writeImages writes one archive with an image for each component, under the name that names has for it.
func writeImages(to string, names, binaries map[string]string, userland, arch string) error {
	images := map[name.Reference]v1.Image{}
	scratch := filepath.Dir(to)
	for component, ref := range names {
		binary, ok := binaries[component]
		if !ok {
			return fmt.Errorf("making image %s: no binary for %s", ref, component)
		}
		tag, err := name.NewTag(ref)
		if err != nil {
			return fmt.Errorf("making image %s: %w", ref, err)
		}
		var under string
		if component == "kube-proxy" {
			under = userland
		}
		if images[tag], err = image.Make(scratch, component, binary, under, arch); err != nil {
			return fmt.Errorf("making image %s: %w", ref, err)
		}
	}
	if err := tarball.MultiRefWriteToFile(to, images); err != nil {
		return fmt.Errorf("writing the component images: %w", err)
	}
	return nil
}
