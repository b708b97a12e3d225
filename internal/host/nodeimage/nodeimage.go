// Package nodeimage gets the image that kind's nodes are started from: an official kindest/node pinned by digest, one
// that the user named, or one assembled here from Debian packages, kind's own base files and Kubernetes binaries that
// were built elsewhere.
//
// An image is assembled in two cached layers, so that the slow part can run in parallel with the Go builds. Base needs
// no binaries (debootstrap, kind's files, systemd). Assemble lays the components and their images over it. Both layers
// are addressed by the hash of all that goes into them, and kept in the container engine.
//
// An assembled image has no CoreDNS (building it costs a minute and a half), and neither kindnetd nor crictl (no
// modules provide them). So clusters made from it skip kubeadm's addon/coredns phase and bring their own CNI
// configuration. The image has curl, jq, the CNI plugins, and a journal that doesn't drop lines at the rates a chaos
// run makes.
package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// The values of a Request's Mode, which may also be an image reference.
const (
	Auto      = "auto"      // official if there is one, else assembled
	Official  = "official"  // pinned by digest, local or pulled; else an error
	Assembled = "assembled" // made here
)

// The values of Origin, which says where an Image came from.
const (
	OriginOfficial  = "official"
	OriginAssembled = "assembled"
	OriginGiven     = "given"
)

// Components are the binaries that Assemble needs, by the names that a
// Request's Binaries are keyed with. All are static; pause is fixtures/pause.
var Components = []string{
	"kubelet", "kubeadm", "kubectl",
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
	"etcd", "pause",
}

// Request says which node image is wanted.
type Request struct {
	Version  string            // of Kubernetes: "v1.34.4"
	Mode     string            // Auto, Official, Assembled, or an image reference
	Binaries map[string]string // component -> path; needed for assembling only, see Components
}

// Image is a node image that is in the container engine.
type Image struct {
	Ref     string   // what to give to kind
	ID      string   // the engine's image id, "sha256:..."
	Origin  string   // OriginOfficial, OriginAssembled or OriginGiven
	Version string   // of Kubernetes, as the image's own /kind/version says
	What    []string // what it is made of, a line each, for people
	Cached  bool     // it was there already: nothing was pulled or made
}

// Store gets node images and keeps those it assembled.
type Store struct {
	dir    string
	id     string // of this cache folder; what another folder's Store is making isn't ours to remove
	engine image.Engine
	say    func(string)

	aptDirs  []string // where the host's apt configuration is looked for
	official map[string]pin
	arch     string
}

// New returns a store that keeps its locks, scratch and small files in the
// folder node-image below cacheDir, and its images in the engine. progress gets
// one line per step and may be nil.
func New(cacheDir string, engine image.Engine, progress func(string)) (*Store, error) {
	if progress == nil {
		progress = func(string) {}
	}
	dir, err := filepath.Abs(filepath.Join(cacheDir, "node-image"))
	if err != nil {
		return nil, fmt.Errorf("finding the node image cache: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the node image cache: %w", err)
	}
	return &Store{
		dir: dir, id: storeID(dir), engine: engine, say: progress,
		aptDirs: []string{"/etc/apt"}, official: officialImages, arch: hostArch,
	}, nil
}

// Get returns the image that r asks for. If mode Auto finds no official image, Get says so through progress and
// assembles one instead.
func (s *Store) Get(ctx context.Context, r Request) (Image, error) {
	minor, err := minorOf(r.Version)
	if err != nil {
		return Image{}, err
	}
	switch r.Mode {
	case Assembled:
		return s.Assemble(ctx, r, "")
	case Official:
		img, _, err := s.Official(ctx, minor)
		return img, err
	case Auto, "":
		img, ok, err := s.Official(ctx, minor)
		if ok {
			return img, nil
		}
		var u *UnavailableError
		if !errors.As(err, &u) {
			return Image{}, err
		}
		s.say(fmt.Sprintf("%v; assembling a node image instead", err))
		return s.Assemble(ctx, r, "")
	default:
		return s.Given(ctx, r.Mode)
	}
}

// minorOf returns "v1.34" for "v1.34.4", "1.34.4", "v1.34" and "1.34".
func minorOf(version string) (string, error) {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return "", fmt.Errorf("parsing Kubernetes version %q: %w", version, err)
	}
	return fmt.Sprintf("v%d.%d", v.Major, v.Minor), nil
}

var exactVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// missing returns an error that lists the components for which binaries has no readable file.
func missing(binaries map[string]string) error {
	var problems []string
	for _, c := range Components {
		path, ok := binaries[c]
		if !ok {
			problems = append(problems, c+" isn't given")
		} else if fi, err := os.Stat(path); err != nil {
			problems = append(problems, err.Error())
		} else if !fi.Mode().IsRegular() {
			problems = append(problems, path+" isn't a regular file")
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("assembling a node image: binaries: %s", strings.Join(problems, "; "))
	}
	return nil
}
