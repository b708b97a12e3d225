package nodeimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/internal/sums"
)

const (
	// recipeVersion is part of every key: raise it when the code that makes
	// images changes what they hold.
	recipeVersion = "4"

	suite = "trixie" // the Debian release that kind v0.33's own base image uses

	kindModule = "sigs.k8s.io/kind"
	// kindFallback is used by programs that don't link kind.
	kindFallback = "v0.33.0"

	hostArch = runtime.GOARCH
)

// packages lists what a node needs in addition to Debian's minbase. The first group is that of kind's own base image
// without fuse, NFS and iSCSI; the second is what kind takes from elsewhere; the third is for kube-proxies and kubelets
// that still call these programs.
var packages = []string{
	"systemd",
	"systemd-sysv",
	"conntrack",
	"iptables",
	"nftables",
	"iproute2",
	"ethtool",
	"util-linux",
	"mount",
	"kmod",
	"libseccomp2", "pigz", "e2fsprogs", "ca-certificates", "curl", "jq", "procps",
	"containerd", "runc", "containernetworking-plugins",
	"ebtables", "ipset", "socat",
}

// digest collects the inputs of a key. Every input carries its name and its
// length, so that two different lists can't give one hash.
type digest struct{ h hash.Hash }

func newDigest(kind string) digest {
	d := digest{sha256.New()}
	d.add("recipe", kind+recipeVersion)
	return d
}

func (d digest) add(name, value string) {
	fmt.Fprintf(d.h, "%d:%s=%d:%s\n", len(name), name, len(value), value)
}

func (d digest) sum() string { return hex.EncodeToString(d.h.Sum(nil)) }

// storeID returns an id by which the stores of one engine differ.
func storeID(dir string) string {
	d := newDigest("store")
	d.add("dir", dir)
	return short(d.sum())
}

// short returns the part of a key that a tag has.
func short(key string) string { return key[:12] }

// baseKey returns the key of a base image, a hash of what goes into it: Debian's suite and packages (by name: a rebuild
// may bring newer patches), kind's files by content, and the architecture. The mirror isn't part of it.
func baseKey(kindFiles, arch string) (string, error) {
	d := newDigest("base")
	d.add("arch", arch)
	d.add("suite", suite)
	d.add("packages", strings.Join(slices.Sorted(slices.Values(packages)), " "))
	d.add("iptables wrapper", iptablesWrapper)
	err := filepath.WalkDir(kindFiles, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		sum, err := sums.File(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(kindFiles, path)
		d.add("kind/"+rel, sum)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hashing kind's base files: %w", err)
	}
	return d.sum(), nil
}

// nodeKey returns the key of a node image, a hash of its base, its version, its binaries' content, and the script and
// files that are added here.
func nodeKey(base, version string, binaries map[string]string) (string, error) {
	d := newDigest("node")
	d.add("base", base)
	d.add("version", version)
	d.add("import script", importScriptFor(version))
	d.add("manifests", defaultCNI+defaultStorage)
	d.add("passwd", image.Passwd)
	for _, c := range Components {
		sum, err := sums.File(binaries[c])
		if err != nil {
			return "", fmt.Errorf("hashing %s: %w", c, err)
		}
		d.add(c, sum)
	}
	return d.sum(), nil
}

// kindFiles returns the folder with the files of kind's base image in the module cache, and the version of kind that
// they belong to, which is the one that this program links. It downloads the module if it isn't there.
func kindFiles(ctx context.Context) (dir, version string, err error) {
	version = kindFallback
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == kindModule && dep.Replace == nil {
				version = dep.Version
			}
		}
	}
	cmd := exec.CommandContext(ctx, "go", "env", "GOMODCACHE")
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("asking for the module cache: %w", withStderr(err))
	}
	const files = "images/base/files"
	dir = filepath.Join(strings.TrimSpace(string(out)), kindModule+"@"+version, files)
	if _, err := os.Stat(dir); err == nil {
		return dir, version, nil
	}
	cmd = exec.CommandContext(ctx, "go", "mod", "download", "-json", kindModule+"@"+version)
	cmd.Dir = os.TempDir() // outside any module: the answer must not depend on where relapse is run
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err = cmd.Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); err == nil && jsonErr != nil {
		err = jsonErr
	}
	if module.Error != "" {
		err = errors.New(module.Error)
	}
	if err != nil {
		return "", "", fmt.Errorf("downloading %s@%s: %w", kindModule, version, withStderr(err))
	}
	return filepath.Join(module.Dir, files), version, nil
}

// withStderr adds what a failed command wrote to standard error.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
