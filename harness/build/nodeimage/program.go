package nodeimage

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteProgram writes an archive of an image that holds nothing but a static program, at /usr/local/bin/NAME, which is its entry point. It is one
// that `ctr images import` takes. ref is the image's full name with its tag; arch is Go's name of the architecture.
func WriteProgram(to, ref, program, binary, arch string) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(to), "layer-")
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	defer os.RemoveAll(scratch) // a temporary directory: what is left of it is the system's to remove
	layer := filepath.Join(scratch, "layer.tar.gz")
	if err := writeLayer(layer, program, binary, ""); err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	img, err := componentImage(layer, program, arch)
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	if err := tarball.WriteToFile(to, tag, img); err != nil {
		return fmt.Errorf("writing image %s: %w", ref, err)
	}
	return nil
}
