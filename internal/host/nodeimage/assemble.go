package nodeimage

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// importScript runs in a container of the base image: it starts containerd,
// hands it the component images, pins them, and leaves only what belongs in
// the image. Its argument is the sandbox image's name.
const importScript = `#!/bin/sh
set -eu
sandbox=$1
containerd >/relapse/containerd.log 2>&1 &
server=$!
tries=0
until timeout 5 ctr version >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ "$tries" -ge 300 ] || ! kill -0 "$server" 2>/dev/null; then
		tail -n 20 /relapse/containerd.log >&2
		echo "containerd doesn't answer" >&2
		exit 1
	fi
	sleep 0.1
done
ctr --namespace k8s.io images import --no-unpack /relapse/images.tar >/dev/null
ctr --namespace k8s.io images ls -q >/relapse/names
while read -r name; do
	ctr --namespace k8s.io images label "$name" io.cri-containerd.pinned=pinned >/dev/null
done </relapse/names
grep -qxF "$sandbox" /relapse/names || { echo "$sandbox wasn't imported" >&2; exit 1; }
sed -i "s#^\( *sandbox_image = \).*#\1\"$sandbox\"#" /etc/containerd/config.toml
grep -qF "sandbox_image = \"$sandbox\"" /etc/containerd/config.toml || { echo "the sandbox image can't be set" >&2; exit 1; }
kill "$server"
wait "$server" || true
cat /relapse/names
# Or every node's first boot rebuilds the linker's cache, the journal's catalog
# and more, because /usr is newer than these.
touch /etc/.updated /var/.updated
rm -rf /relapse /run/containerd /var/lib/containerd/tmpmounts
`

// defaultStorage has a StorageClass for volumes that are provisioned by hand. kind applies this file if it is there,
// and else makes up its own StorageClass.
const defaultStorage = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`

// defaultCNI says who has to bring the network, because there is no CNI image to run. kind creates this file's objects
// unless disableDefaultCNI is set, and stops where the file is missing or empty.
const defaultCNI = `apiVersion: v1
kind: ConfigMap
metadata:
  name: relapse-no-default-cni
  namespace: kube-system
data:
  reason: an assembled node image has no default CNI; each node's /etc/cni/net.d is written by whoever made the cluster
`

// Assemble makes a node image: it lays r's binaries, and the images made of them, over a base image. baseID is what
// Base returned, or "" to have the base made here as well; a baseID of another recipe than the current one is refused.
// The result is named relapse/node:<version>-<hash>; the same inputs give the same image.
func (s *Store) Assemble(ctx context.Context, r Request, baseID string) (Image, error) {
	if !exactVersion.MatchString(r.Version) {
		return Image{}, fmt.Errorf(
			"assembling a node image: version %q isn't of the form v1.34.4",
			r.Version,
		)
	}
	if err := missing(r.Binaries); err != nil {
		return Image{}, err
	}
	b, err := s.base(ctx)
	if err != nil {
		return Image{}, err
	}
	if baseID != "" {
		if err := s.isBase(ctx, baseID, b.key); err != nil {
			return Image{}, err
		}
		b.id = baseID
	}
	key, err := nodeKey(b.key, r.Version, r.Binaries)
	if err != nil {
		return Image{}, err
	}
	img := Image{
		Ref: fmt.Sprintf(
			"%s:%s-%s",
			nodeRepository,
			r.Version,
			short(key),
		),
		Origin:  OriginAssembled,
		Version: r.Version,
		What: []string{
			fmt.Sprintf("Debian %s with %s", suite, strings.Join(packages, ", ")),
			"base files of kind " + b.kindVersion + ", in " + b.ref,
			"component binaries and images built here: " + strings.Join(Components, ", ") +
				"; the images have the names that this version's kubeadm asks for, whatever the version of etcd and " +
				"pause in them",
			"no CoreDNS, no default CNI, no crictl",
		},
	}
	unlock, err := s.lock(ctx, key)
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	if img.ID, img.Cached, err = s.imageID(ctx, img.Ref); err != nil || img.Cached {
		return img, err
	}
	if err := s.makeNode(ctx, r, b, key, img.Ref); err != nil {
		return Image{}, fmt.Errorf("assembling %s: %w", img.Ref, err)
	}
	id, there, err := s.imageID(ctx, img.Ref)
	if err == nil && !there {
		err = fmt.Errorf("assembling %s: the engine doesn't know it after its commit", img.Ref)
	}
	img.ID = id
	return img, err
}

// isBase returns an error if an image isn't a base of the recipe that key stands for.
func (s *Store) isBase(ctx context.Context, id, key string) error {
	out, err := s.engine.Output(
		ctx,
		"image",
		"inspect",
		"--format",
		`{{index .Config.Labels "`+labelKey+`"}}`,
		id,
	)
	if err != nil {
		return fmt.Errorf("assembling a node image: %w", err)
	}
	if got := strings.TrimSpace(string(out)); got != key {
		return fmt.Errorf(
			"assembling a node image: base image %s is of recipe %q, wanted %s",
			id,
			got,
			key,
		)
	}
	return nil
}

// makeNode fills a container of the base and commits it. The caller holds the lock.
func (s *Store) makeNode(ctx context.Context, r Request, b base, key, ref string) (err error) {
	started := time.Now()
	if err := s.discard(ctx, key); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.discard(context.WithoutCancel(ctx), key)) }()
	scratch, err := s.scratch(key)
	if err != nil {
		return err
	}
	s.say("making component images of Kubernetes " + r.Version)
	names, err := imageNames(ctx, r.Binaries["kubeadm"], r.Version)
	if err != nil {
		return err
	}
	images := filepath.Join(scratch, "images.tar")
	if err := writeImages(images, names, r.Binaries, b.userland, s.arch); err != nil {
		return err
	}
	id, err := s.create(ctx, key, "--security-opt", "seccomp=unconfined",
		"--network", "none", "--entrypoint", "/bin/sh", b.id, "/relapse/import.sh", names["pause"])
	if err != nil {
		return err
	}
	s.say("copying the components into the base image")
	if err := s.fill(ctx, id, r, images); err != nil {
		return err
	}
	var imported strings.Builder
	if err := s.engine.Stream(ctx, nil, &imported, "start", "--attach", id); err != nil {
		return fmt.Errorf("importing the component images: %w", err)
	}
	for _, name := range names {
		if !strings.Contains(imported.String(), name+"\n") {
			return fmt.Errorf(
				"importing the component images: %s isn't among %q",
				name,
				imported.String(),
			)
		}
	}
	if _, err := s.engine.Output(ctx, "commit",
		"--change", `ENTRYPOINT [ "/usr/local/bin/entrypoint", "/sbin/init" ]`,
		"--change", "CMD []",
		"--change", fmt.Sprintf("LABEL %s=%s %s=%s %s=%s %s=%s %s=\"\"", labelCache, cacheNodeImage,
			labelLayer, layerNode, labelKey, key, labelVersion, r.Version, labelBuild),
		id, ref); err != nil {
		return err
	}
	s.say(fmt.Sprintf("node image %s made in %s", ref, time.Since(started).Round(time.Second)))
	return nil
}

// fill copies everything that the node image has over its base into the
// container, in one archive.
func (s *Store) fill(ctx context.Context, container string, r Request, images string) error {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(writeFill(writer, r, images)) }()
	err := s.engine.Stream(ctx, reader, nil, "cp", "-", container+":/")
	reader.CloseWithError(errors.New("the engine stopped reading")) // lets the writer end
	if err != nil {
		return fmt.Errorf("copying the components: %w", err)
	}
	return nil
}

func writeFill(to io.Writer, r Request, images string) error {
	out := tar.NewWriter(to)
	for _, c := range []string{"kubelet", "kubeadm", "kubectl"} {
		if err := image.WriteFile(out, "usr/bin/"+c, r.Binaries[c]); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name, content string
	}{
		{"kind/version", r.Version},
		{"kind/manifests/default-cni.yaml", defaultCNI},
		{"kind/manifests/default-storage.yaml", defaultStorage},
		{"relapse/import.sh", importScriptFor(r.Version)},
	} {
		if err := image.WriteEntry(out, f.name, 0o644, []byte(f.content)); err != nil {
			return err
		}
	}
	if err := image.WriteFile(out, "relapse/images.tar", images); err != nil {
		return err
	}
	return out.Close()
}
