// Package carry packs what runs need into one archive, and unpacks it on another host.
//
// An archive is a tar archive compressed with zstd. Its first file is the manifest, which lists all others in their
// order, with their sizes and SHA-256. So whoever reads it knows after each file whether it is as it was packed, and at
// the end whether it is whole. The sums protect against accidents and not against forgery: an archive holds programs
// that a run will start.
package carry

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/cluster"
)

// format is the version of the archive's layout.
const format = "relapse-cache/1"

// manifestName is the archive's first file.
const manifestName = "manifest.json"

// Folders of an archive.
const (
	Entries = "entries" // entries of the cache, each in KIND/KEY
	Images  = "images"  // archives of images, as the container engine saves them
)

// Manifest says what is in an archive.
type Manifest struct {
	Format    string          `json:"format"`
	Relapse   string          `json:"relapse"`   // the version that packed it
	Platform  string          `json:"platform"`  // of all programs in it: "linux/amd64"
	Runs      []string        `json:"runs"`      // the commands that need nothing else
	Toolchain build.Toolchain `json:"toolchain"` // that built the programs
	Images    []cluster.Image `json:"images,omitempty"`
	Files     []File          `json:"files"` // all files but the manifest, in the archive's order
}

// File is a file of an archive.
type File struct {
	Name       string `json:"name"` // with slashes
	Size       int64  `json:"size"`
	Executable bool   `json:"executable,omitempty"`
	SHA256     string `json:"sha256"`

	path string // on this host
}

// Platform returns the platform of this program.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// Error says why an archive can't be used.
type Error struct{ Err error }

// Error returns the reason.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

func refused(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// places match the names that files of an archive may have.
var places = regexp.MustCompile(
	`^(` + Entries + `/[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*/.+|` + Images + `/[0-9]+\.tar)$`,
)

// validate refuses a manifest of another layout or platform, and one that names a file outside of its folders.
func (m Manifest) validate() error {
	switch {
	case m.Format != format:
		return refused(
			"the archive's layout is %q, and this relapse reads %q: export it with the relapse that imports it",
			m.Format,
			format,
		)
	case m.Platform != Platform():
		return refused(
			"the archive has programs for %s, and this host is %s: export it on a host of that platform",
			m.Platform,
			Platform(),
		)
	case len(m.Files) == 0:
		return refused("the archive's manifest lists no file")
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		local := path.Clean(f.Name) == f.Name && filepath.IsLocal(filepath.FromSlash(f.Name)) &&
			!strings.ContainsAny(f.Name, "\\\x00")
		if !local || !places.MatchString(f.Name) {
			return refused(
				"the archive's manifest names %q, which is no place in a cache",
				f.Name,
			)
		}
		if seen[f.Name] || f.Size < 0 {
			return refused("the archive's manifest lists %s twice, or with no size", f.Name)
		}
		seen[f.Name] = true
	}
	return m.validateImages(seen)
}

func (m Manifest) validateImages(files map[string]bool) error {
	var errs []error
	for _, img := range m.Images {
		if !files[img.File] || path.Dir(img.File) != Images {
			errs = append(
				errs,
				refused(
					"the archive's manifest has the image %s in %q, which it doesn't list",
					img.Ref,
					img.File,
				),
			)
		}
	}
	return errors.Join(errs...)
}
