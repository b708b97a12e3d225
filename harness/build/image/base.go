package image

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// defaultPath is the PATH of containers whose image names none.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// OpenBase returns an image that layers with programs for a platform are to be put on. ref is a reference, read with the
// options names, or the file of an image that docker saved.
func OpenBase(
	ctx context.Context,
	ref string,
	of v1.Platform,
	names ...name.Option,
) (v1.Image, error) {
	img, err := openBase(ctx, ref, of, names...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the base image %s: %w", ref, err)
	}
	if config.OS != of.OS || config.Architecture != of.Architecture {
		return nil, fmt.Errorf(
			"the base image %s is for %s/%s, and the programs for %s",
			ref,
			config.OS,
			config.Architecture,
			of,
		)
	}
	return img, nil
}

func openBase(
	ctx context.Context,
	ref string,
	of v1.Platform,
	names ...name.Option,
) (v1.Image, error) {
	if info, err := os.Stat(ref); err == nil && info.Mode().IsRegular() {
		img, err := tarball.ImageFromPath(ref, nil)
		if err != nil {
			return nil, fmt.Errorf(
				"reading the base image %s (want one image, as docker save writes it): %w",
				ref,
				err,
			)
		}
		return img, nil
	}
	at, err := name.ParseReference(ref, names...)
	if err != nil {
		return nil, fmt.Errorf("reading the base image's name: %w", err)
	}
	img, err := remote.Image(
		at,
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(of),
	)
	if err != nil {
		return nil, fmt.Errorf("getting the base image %s: %w", at, err)
	}
	return img, nil
}

// Lacks returns which of the needs an image doesn't have: programs on its PATH, and files by their whole path.
func Lacks(img v1.Image, needs ...string) (lacks []string, err error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	links, err := linksOf(img)
	if err != nil {
		return nil, err
	}
	for _, need := range needs {
		places := []string{need}
		if !path.IsAbs(need) {
			places = nil
			for dir := range strings.SplitSeq(searchPath(config.Config.Env), ":") {
				places = append(places, path.Join(dir, need))
			}
		}
		found := false
		for _, at := range places {
			_, there := follow(links, at)
			found = found || there
		}
		if !found {
			lacks = append(lacks, need)
		}
	}
	return lacks, nil
}

// searchPath returns the PATH of an environment.
func searchPath(env []string) string {
	out := defaultPath
	for _, e := range env {
		if strings.HasPrefix(e, "PATH=") {
			out = e
		}
	}
	return strings.TrimPrefix(out, "PATH=")
}
