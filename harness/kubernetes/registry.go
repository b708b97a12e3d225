package kubernetes

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-relapse/relapse/harness/ledger"
)

// Registry is a repository of an image registry, to which a run's image goes from here, and each trial's bundle from its
// pod. A login is taken as docker does: from $DOCKER_CONFIG or ~/.docker.
type Registry struct {
	Repository string // registry.example.com/team/relapse
	Insecure   bool   // plain HTTP is taken where there is no TLS
}

// Validate refuses what is no repository.
func (r Registry) Validate() error {
	_, err := r.repository()
	return err
}

func (r Registry) repository() (name.Repository, error) {
	repo, err := name.NewRepository(r.Repository, r.names()...)
	if err != nil {
		return repo, fmt.Errorf(
			"the registry %q is no repository (want one such as registry.example.com/team/relapse): %w",
			r.Repository,
			err,
		)
	}
	return repo, nil
}

func (r Registry) names() []name.Option {
	if r.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

// tagged returns the reference of a tag, or of a digest.
func (r Registry) tagged(tag string) (name.Reference, error) {
	repo, err := r.repository()
	if err != nil {
		return nil, err
	}
	if h, err := v1.NewHash(tag); err == nil {
		return repo.Digest(h.String()), nil
	}
	return repo.Tag(tag), nil
}

func with(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
	}
}

// push pushes an image under a tag, and returns its digest.
func (r Registry) push(ctx context.Context, tag string, img v1.Image) (digest string, err error) {
	ref, err := r.tagged(tag)
	if err != nil {
		return "", err
	}
	if err := remote.Write(ref, img, with(ctx)...); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	h, err := img.Digest()
	return h.String(), err
}

// bundleTag is the tag of a trial's bundle.
func bundleTag(run, trial string) string { return run + "-trial-" + trial }

// bundleType is the media type of the config of a bundle's artifact.
const bundleType types.MediaType = "application/vnd.dev.relapse.bundle.v1+json"

// againAnnotation stands in the manifest of a bundle whose trial had a pod before that was disrupted.
const againAnnotation = "dev.relapse.again"

// errAgain says that only the pods of a trial tell whether its bundle counts.
var errAgain = errors.New("the trial was made again after a disruption, and nothing here tells of which kind")

// pushBundle pushes a sealed bundle as an artifact with one layer, and returns its digest. again says that another pod of
// the trial was disrupted before.
func (r Registry) pushBundle(
	ctx context.Context,
	tag, dir string,
	again bool,
) (digest string, err error) {
	layer, err := bundleLayer(dir)
	if err != nil {
		return "", err
	}
	img, err := mutate.AppendLayers(
		mutate.ConfigMediaType(
			mutate.MediaType(empty.Image, types.OCIManifestSchema1),
			bundleType,
		),
		layer,
	)
	if err != nil {
		return "", err
	}
	if again {
		img = mutate.Annotations(img, map[string]string{againAnnotation: "true"}).(v1.Image)
	}
	return r.push(ctx, tag, img)
}

// partialType is the media type of the config of an artifact with what a trial has seen so far.
const partialType types.MediaType = "application/vnd.dev.relapse.partial.v1+json"

// pushPartial pushes what a trial has seen so far. Of its layers, those that the registry has are not sent again.
func (r Registry) pushPartial(ctx context.Context, tag string, layers []v1.Layer) error {
	img, err := mutate.AppendLayers(
		mutate.ConfigMediaType(
			mutate.MediaType(empty.Image, types.OCIManifestSchema1),
			partialType,
		),
		layers...,
	)
	if err != nil {
		return err
	}
	_, err = r.push(ctx, tag, img)
	return err
}

// image finds the artifact that a tag or a digest names. errAbsent says that there is none.
func (r Registry) image(ctx context.Context, tag string) (name.Reference, v1.Image, error) {
	ref, err := r.tagged(tag)
	if err != nil {
		return nil, nil, err
	}
	img, err := remote.Image(ref, with(ctx)...)
	if err != nil {
		return nil, nil, fmt.Errorf("fetching %s: %w", ref, absent(err))
	}
	return ref, img, nil
}

// pullPartial unpacks what a trial had seen into a folder that doesn't exist yet, layer after layer.
func (r Registry) pullPartial(ctx context.Context, tag, to string) error {
	ref, img, err := r.image(ctx, tag)
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("fetching %s: %w", ref, err)
	}
	for _, layer := range layers {
		in, err := layer.Uncompressed()
		if err != nil {
			return fmt.Errorf("fetching %s: %w", ref, err)
		}
		if err := errors.Join(unpack(in, to, os.O_TRUNC), in.Close()); err != nil {
			return fmt.Errorf("unpacking %s: %w", ref, err)
		}
	}
	return nil
}

// layerOf makes a layer of what write writes each time that it is read.
func layerOf(as types.MediaType, write func(*tar.Writer) error) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() {
			out := tar.NewWriter(w)
			w.CloseWithError(errors.Join(write(out), out.Close()))
		}()
		return r, nil
	}, tarball.WithMediaType(as), tarball.WithCompressionLevel(gzip.BestSpeed))
}

// errAbsent says that a registry has no such artifact.
var errAbsent = errors.New("there is none")

// pullBundle unpacks a bundle's artifact, which a tag or a digest names, into a folder that doesn't exist yet. Nothing of
// it is trusted: whoever opens the bundle verifies it. By its tag, the bundle of a trial that was made again is refused with
// errAgain; who knows a digest has it from the pod that counts.
func (r Registry) pullBundle(ctx context.Context, tag, to string) error {
	ref, img, err := r.image(ctx, tag)
	if err != nil {
		return err
	}
	m, err := img.Manifest()
	if err != nil {
		return fmt.Errorf("fetching %s: %w", ref, err)
	}
	if _, byTag := ref.(name.Tag); byTag && m.Annotations[againAnnotation] != "" {
		return fmt.Errorf("fetching %s: %w", ref, errAgain)
	}
	layers, err := img.Layers()
	if err != nil {
		return fmt.Errorf("fetching %s: %w", ref, err)
	}
	if len(layers) != 1 {
		return fmt.Errorf("fetching %s: it has %d layers, want the one of a bundle", ref, len(layers))
	}
	in, err := layers[0].Uncompressed()
	if err != nil {
		return fmt.Errorf("fetching %s: %w", ref, err)
	}
	if err := errors.Join(unpack(in, to, os.O_EXCL), in.Close()); err != nil {
		return fmt.Errorf("unpacking %s: %w", ref, err)
	}
	return nil
}

// absent turns a registry's answer that it has no such thing into errAbsent.
func absent(err error) error {
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return errors.Join(errAbsent, err)
	}
	return err
}

// unpack writes the files of an archive into a folder. It refuses what is no file below it. It reads to the very end,
// where digests and checksums are compared. existing is os.O_EXCL, or os.O_TRUNC to replace files that are there.
func unpack(in io.Reader, to string, existing int) error {
	for all := tar.NewReader(in); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, in)
			return err
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(filepath.FromSlash(h.Name)) {
			return fmt.Errorf("it has %q, which is no file of a bundle", h.Name)
		}
		if err := unpackFile(filepath.Join(to, filepath.FromSlash(h.Name)), all, existing); err != nil {
			return err
		}
	}
}

func unpackFile(at string, in io.Reader, existing int) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY|existing, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// remove removes the artifact of a tag, if it is there. A registry may keep the tag of a manifest that was removed by its
// digest, or may remove manifests by their digests only.
func (r Registry) remove(ctx context.Context, tag string) error {
	ref, err := r.tagged(tag)
	if err != nil {
		return err
	}
	for _, byDigest := range []bool{true, false} {
		at, err := remote.Head(ref, with(ctx)...)
		if errors.Is(absent(err), errAbsent) {
			return nil
		}
		what := ref
		if err == nil && byDigest {
			what = ref.Context().Digest(at.Digest.String())
		}
		if err == nil {
			err = remote.Delete(what, with(ctx)...)
		}
		if err != nil {
			return fmt.Errorf("removing %s: %w", what, err)
		}
	}
	return nil
}

// inRegistry reports whether the bundles of a run go through its registry.
func inRegistry(j ledger.Job) bool { return !InCluster(j) }

// InCluster reports whether the bundles of a run lie in its cluster, so that who fetches them has to ask it.
func InCluster(j ledger.Job) bool { return j.Storage != "" || j.Held }

// registryOf returns the registry of a run that was noted down.
func registryOf(
	j ledger.Job,
) Registry {
	return Registry{Repository: j.Registry, Insecure: j.Insecure}
}
