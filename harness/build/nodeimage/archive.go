package nodeimage

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageNames asks kubeadm, as built, which images a cluster of version wants,
// and gives them by component. CoreDNS is left out: see the package's comment.
func imageNames(ctx context.Context, kubeadm, version string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", version)
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
	for _, want := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "pause"} {
		if names[want] == "" {
			return nil, fmt.Errorf("running `%s`: no %s in %q", strings.Join(cmd.Args, " "), want, out)
		}
	}
	return names, nil
}

// writeImages writes one archive with an image per component, under names.
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
		layer := filepath.Join(scratch, component+".layer.tar.gz")
		if err := writeLayer(layer, component, binary, under); err != nil {
			return fmt.Errorf("making image %s: %w", ref, err)
		}
		if images[tag], err = componentImage(layer, component, arch); err != nil {
			return fmt.Errorf("making image %s: %w", ref, err)
		}
	}
	if err := tarball.MultiRefWriteToFile(to, images); err != nil {
		return fmt.Errorf("writing the component images: %w", err)
	}
	return nil
}

const passwd = "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"

// binDir is where components look for each other's images' binaries:
// kubeadm's manifests call them by name, kube-proxy's by this path.
const binDir = "usr/local/bin"

// writeLayer writes an image's one layer: the binary and a passwd file, over the
// entries of the archive under, if that isn't "". Every node copies its image
// store at start, so smaller wins over quicker to unpack; fast compression
// gets most of it.
func writeLayer(to, component, binary, under string) (err error) {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer file.Close()
	compressed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(compressed)
	if under != "" {
		if err := copyEntries(out, under); err != nil {
			return err
		}
	}
	if err := writeEntry(out, "etc/passwd", 0o644, []byte(passwd)); err != nil {
		return err
	}
	if err := addFile(out, path.Join(binDir, component), binary); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return file.Close()
}

func copyEntries(out *tar.Writer, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	in := tar.NewReader(file)
	for {
		header, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", archive, err)
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return fmt.Errorf("reading %s: %w", archive, err)
		}
	}
}

// addFile streams an executable into the archive.
func addFile(out *tar.Writer, at, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: at, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	if _, err := io.Copy(out, file); err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	return nil
}

func componentImage(layerFile, component, arch string) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(layerFile, tarball.WithMediaType(types.DockerLayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Created = v1.Time{Time: time.Unix(0, 0)} // the same input, the same image
	config.Config.Entrypoint = []string{"/" + path.Join(binDir, component)}
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return mutate.ConfigFile(img, config)
}
