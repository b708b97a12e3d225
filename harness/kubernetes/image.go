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

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Places in the image of a run.
const (
	programFile  = "/relapse/bin/relapse"
	programsDir  = "/relapse/programs"
	planFile     = "/relapse/run/plan.json"
	carriedFile  = "/relapse/run/carried.json"
	workDir      = "/trial" // a volume
	registryAuth = "/registry"
)

// user is who runs the trial in its container: nobody of the host's.
const user = 65532

// openBase returns the image below a run's own layers. A registry that may be one without TLS may be so for it, too.
func openBase(ctx context.Context, ref string, r Registry) (v1.Image, error) {
	here := v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	if host, _, _ := strings.Cut(r.Repository, "/"); r.Insecure && strings.HasPrefix(ref, host+"/") {
		return image.OpenBase(ctx, ref, here, r.names()...)
	}
	return image.OpenBase(ctx, ref, here)
}

// assemble puts layers over a base: this program, each program of the arms and of their clusters, and the plan. The same
// input gives the same image.
func assemble(base v1.Image, self string, cargo *harness.Cargo, p *plan.Plan) (v1.Image, error) {
	as := types.DockerLayer
	if kind, err := base.MediaType(); err != nil {
		return nil, err
	} else if kind == types.OCIManifestSchema1 {
		as = types.OCILayer
	}
	planned, err := plan.Encode(p)
	if err != nil {
		return nil, err
	}
	carried, err := json.Marshal(cargo.Carried)
	if err != nil {
		return nil, err
	}
	writers := []func(*tar.Writer) error{func(out *tar.Writer) error { return image.WriteFile(out, within(programFile), self) }}
	for _, there := range slices.Sorted(maps.Keys(cargo.Files)) {
		writers = append(
			writers,
			func(out *tar.Writer) error { return image.WriteFile(out, within(there), cargo.Files[there]) },
		)
	}
	writers = append(writers, func(out *tar.Writer) error {
		if err := image.WriteEntry(out, within(planFile), 0o644, planned); err != nil {
			return err
		}
		return image.WriteEntry(out, within(carriedFile), 0o644, carried)
	})
	var layers []v1.Layer
	for _, write := range writers {
		layer, err := layerOf(as, write)
		if err != nil {
			return nil, fmt.Errorf("making a layer of the run's image: %w", err)
		}
		layers = append(layers, layer)
	}
	img, err := mutate.AppendLayers(base, layers...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Config.Entrypoint, config.Config.Cmd, config.Config.WorkingDir = []string{programFile}, nil, "/"
	config.Config.User = fmt.Sprintf("%d:%d", user, user)
	return mutate.ConfigFile(img, config)
}

// within returns a path as an archive of an image has it.
func within(path string) string { return strings.TrimPrefix(path, "/") }
