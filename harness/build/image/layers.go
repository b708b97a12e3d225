package image

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// takeFlat looks for one of places in the image's merged layers and writes it to a file. It follows links.
func takeFlat(img v1.Image, places []string, to string) (string, error) {
	links, err := linksOf(img)
	if err != nil {
		return "", err
	}
	for _, at := range places {
		final, ok := follow(links, at)
		if !ok {
			continue
		}
		done := errors.New("found")
		err := eachEntry(img, func(name string, h *tar.Header, r io.Reader) error {
			if name != final || h.Typeflag != tar.TypeReg {
				return nil
			}
			return cmp.Or(writeProgram(to, r), done)
		})
		if errors.Is(err, done) {
			return at, nil
		}
		return "", cmp.Or(err, fmt.Errorf("%s is there and can't be read", at))
	}
	return "", nowhere(places)
}

// linksOf returns the target of every link of an image, and "" for every regular file.
func linksOf(img v1.Image) (map[string]string, error) {
	links := map[string]string{}
	return links, eachEntry(img, func(name string, h *tar.Header, _ io.Reader) error {
		switch h.Typeflag {
		case tar.TypeReg:
			links[name] = ""
		case tar.TypeSymlink:
			links[name] = absolute(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			links[name] = absolute("/", h.Linkname)
		}
		return nil
	})
}

// follow resolves a path through the links of an image, including links of its parent directories.
func follow(links map[string]string, at string) (string, bool) {
	for range 20 { // a cycle of links leads nowhere
		if to, ok := links[at]; ok {
			if to == "" {
				return at, true
			}
			at = to
			continue
		}
		moved := false
		for dir := path.Dir(at); dir != "/"; dir = path.Dir(dir) {
			if to := links[dir]; to != "" {
				at, moved = path.Join(to, strings.TrimPrefix(at, dir)), true
				break
			}
		}
		if !moved {
			return "", false
		}
	}
	return "", false
}

func absolute(dir, target string) string {
	if path.IsAbs(target) {
		return path.Clean(target)
	}
	return path.Join(dir, target)
}

func eachEntry(img v1.Image, do func(name string, h *tar.Header, r io.Reader) error) error {
	flat := mutate.Extract(img)
	defer flat.Close()
	in := tar.NewReader(flat)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading its layers: %w", err)
		}
		if err := do(path.Join("/", h.Name), h, in); err != nil {
			return err
		}
	}
}
