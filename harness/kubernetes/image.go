package kubernetes

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Places in the image of a run.
const (
	runDir       = "/relapse" // has all of the run
	programFile  = "/relapse/bin/relapse"
	programsDir  = "/relapse/programs"
	planFile     = "/relapse/run/plan.json"
	carriedFile  = "/relapse/run/carried.json"
	workDir      = "/trial" // a volume
	registryAuth = "/registry"
)

// user is who runs the trial in its container: nobody of the host's.
const user = 65532

// openBase returns the image below a run's own layers.
func openBase(ctx context.Context, ref string, r Registry) (v1.Image, error) {
	here := v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	return image.OpenBase(ctx, ref, here, r.namesFor(ref)...)
}

// namesFor returns how to read the name of an image. A registry that may be one without TLS may be so for it, too.
func (r Registry) namesFor(ref string) []name.Option {
	if host, _, _ := strings.Cut(r.Repository, "/"); r.Insecure && strings.HasPrefix(ref, host+"/") {
		return r.names()
	}
	return nil
}

// assemble puts layers over a base: this program, each program of the arms and of their clusters, and the plan. The same
// input gives the same image.
func assemble(base v1.Image, self string, load cargo, p *plan.Plan) (v1.Image, error) {
	as := types.DockerLayer
	if kind, err := base.MediaType(); err != nil {
		return nil, err
	} else if kind == types.OCIManifestSchema1 {
		as = types.OCILayer
	}
	layers, err := layersOf(as, within, self, load, p)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(base, layers...)
	if err != nil {
		return nil, err
	}
	return image.Configured(img, func(config *v1.ConfigFile) {
		config.Config.Entrypoint, config.Config.Cmd, config.Config.WorkingDir = []string{programFile}, nil, "/"
		config.Config.User = fmt.Sprintf("%d:%d", user, user)
	})
}

// assembleVolume makes an image of the same layers alone, to be mounted at runDir. It is no artifact of another type, as
// runtimes need to mount only what they can run, and it names a platform, by which they choose.
func assembleVolume(self string, load cargo, p *plan.Plan) (v1.Image, error) {
	below := func(path string) string { return strings.TrimPrefix(path, runDir+"/") }
	layers, err := layersOf(types.OCILayer, below, self, load, p)
	if err != nil {
		return nil, err
	}
	nothing := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(nothing, layers...)
	if err != nil {
		return nil, err
	}
	return image.Configured(img, func(config *v1.ConfigFile) {
		config.OS, config.Architecture = runtime.GOOS, runtime.GOARCH
	})
}

// layersOf makes the layers of a run. place says where in a layer a path of the pod lies.
func layersOf(
	as types.MediaType,
	place func(path string) string,
	self string,
	load cargo,
	p *plan.Plan,
) (layers []v1.Layer, err error) {
	planned, err := plan.Encode(p)
	if err != nil {
		return nil, err
	}
	carried, err := json.Marshal(load.carried)
	if err != nil {
		return nil, err
	}
	writers := []func(*tar.Writer) error{func(out *tar.Writer) error { return image.WriteFile(out, place(programFile), self) }}
	for _, there := range slices.Sorted(maps.Keys(load.files)) {
		writers = append(
			writers,
			func(out *tar.Writer) error { return image.WriteFile(out, place(there), load.files[there]) },
		)
	}
	writers = append(writers, func(out *tar.Writer) error {
		if err := image.WriteEntry(out, place(planFile), 0o644, planned); err != nil {
			return err
		}
		return image.WriteEntry(out, place(carriedFile), 0o644, carried)
	})
	for _, write := range writers {
		layer, err := layerOf(as, write)
		if err != nil {
			return nil, fmt.Errorf("making a layer of the run's image: %w", err)
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// pinned returns the name under which nodes pull a base image: by its digest.
func pinned(ref string, base v1.Image, r Registry) (string, error) {
	at, err := name.ParseReference(ref, r.namesFor(ref)...)
	if err != nil {
		return "", fmt.Errorf("reading the base image's name: %w", err)
	}
	digest, err := base.Digest()
	if err != nil {
		return "", err
	}
	return at.Context().Digest(digest.String()).String(), nil
}

// within returns a path as an archive of an image has it.
func within(path string) string { return strings.TrimPrefix(path, "/") }
