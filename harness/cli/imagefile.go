package cli

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// newImageFileCmd returns the command that .ci/release calls for each Linux program that it builds. No engine is needed.
func newImageFileCmd() *cobra.Command {
	return &cobra.Command{
		Use: "image PROGRAM ARCH TAG FILE", Short: "Write an image with nothing but a program of relapse, for docker load",
		Args: exactly(4, "arguments: PROGRAM ARCH TAG FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return writeImage(args[0], args[1], args[2], args[3]) },
	}
}

// writeImage writes an archive of an image whose entry point is a static program. Beside it there is an empty /tmp, where
// match unpacks archives. It is enough for match and judge: runs need Go, git and a cluster. The same program gives the
// same bytes.
func writeImage(program, arch, ref, to string) (err error) {
	tag, err := name.NewTag(ref)
	if err != nil {
		return usage(fmt.Errorf("making an image: %w", err), "name it like ghcr.io/kube-relapse/relapse:v0.1.0")
	}
	scratch, err := os.MkdirTemp("", "relapse-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	under := filepath.Join(scratch, "under.tar")
	if err := emptyTmp(under); err != nil {
		return err
	}
	img, err := image.Make(scratch, "relapse", program, under, arch)
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	return tarball.WriteToFile(to, tag, img)
}

// emptyTmp writes an archive that has the folder of temporary files.
func emptyTmp(to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	out := tar.NewWriter(f)
	err = out.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777})
	return errors.Join(err, out.Close(), f.Close())
}
