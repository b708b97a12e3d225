package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// newImageFileCmd returns the command that .ci/release calls for each Linux program that it builds. No engine is needed.
func newImageFileCmd() *cobra.Command {
	var base string
	cmd := &cobra.Command{
		Use:   "image PROGRAM ARCH TAG FILE",
		Short: "Write an image with a program of relapse, for docker load",
		Long: `Image writes an archive of an image whose entry point is PROGRAM, a static program for Linux. With --base it lies over that
image, which has what a run needs: Go, git, a shell and certificate authorities. Without it the image has nothing else,
which is enough for match and judge.`,
		Args: exactly(4, "arguments: PROGRAM ARCH TAG FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeImage(cmd.Context(), args[0], args[1], args[2], args[3], base)
		},
	}
	cmd.Flags().
		StringVar(&base, "base", "", "the image below: a reference, or a file that docker save wrote")
	return cmd
}

// ofRuns is what a run needs of the image that it runs in, beside relapse.
var ofRuns = []string{"go", "git", "sh", "/etc/ssl/certs/ca-certificates.crt"}

// writeImage writes an archive of an image whose entry point is a static program. The same program and base give the same
// bytes.
func writeImage(ctx context.Context, program, arch, ref, to, base string) (err error) {
	tag, err := name.NewTag(ref)
	if err != nil {
		return usage(
			fmt.Errorf("making an image: %w", err),
			"name it like ghcr.io/kube-relapse/relapse:v0.1.0",
		)
	}
	scratch, err := os.MkdirTemp("", "relapse-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	var img v1.Image
	if base == "" {
		img, err = aloneImage(scratch, program, arch)
	} else {
		img, err = imageOver(ctx, scratch, program, arch, base)
	}
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	return tarball.WriteToFile(to, tag, img)
}

// imageOver makes an image in which relapse can make runs.
func imageOver(ctx context.Context, scratch, program, arch, ref string) (v1.Image, error) {
	const hint = "BASE=FILE make release takes an image that docker saved, BASE=none leaves out the images for runs"
	base, err := image.OpenBase(ctx, ref, v1.Platform{OS: "linux", Architecture: arch})
	if err != nil {
		return nil, usage(err, hint)
	}
	lacks, err := image.Lacks(base, ofRuns...)
	if err != nil {
		return nil, usage(err, hint)
	}
	if len(lacks) > 0 {
		return nil, usage(
			fmt.Errorf(
				"the base image %s lacks what a run needs: %s",
				ref,
				strings.Join(lacks, ", "),
			),
			"docker.io/library/golang has all of it; .ci/base FILE makes one without a registry",
		)
	}
	digest, err := base.Digest()
	if err != nil {
		return nil, err
	}
	labels := map[string]string{"org.opencontainers.image.base.digest": digest.String()}
	return image.Over(base, scratch, "relapse", program, labels)
}

// aloneImage makes an image with relapse alone. Beside it there is an empty /tmp, where match unpacks archives.
func aloneImage(scratch, program, arch string) (v1.Image, error) {
	under := filepath.Join(scratch, "under.tar")
	if err := emptyTmp(under); err != nil {
		return nil, err
	}
	return image.Make(scratch, "relapse", program, under, arch)
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
