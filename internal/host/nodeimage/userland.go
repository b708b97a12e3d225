package nodeimage

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// userlandPrograms lists what kube-proxy's image needs in addition to the binary: iptables of both kinds, a shell for
// the wrapper below, and conntrack and ipset for old versions.
var userlandPrograms = []string{
	"usr/sbin/xtables-nft-multi", "usr/sbin/xtables-legacy-multi",
	"usr/sbin/conntrack", "usr/sbin/ipset", "usr/bin/dash",
}

// iptablesWrapper takes the place of every iptables program in kube-proxy's image. It runs the backend that the node's
// kubelet uses, and remembers which that is. It knows the backend by kubelet's own chain in the mangle table.
const iptablesWrapper = `#!/bin/sh
name=${0##*/}
mode=
[ -r /run/relapse-iptables ] && read -r mode </run/relapse-iptables
if [ -z "$mode" ]; then
	for m in nft legacy; do
		case "$(/usr/sbin/xtables-$m-multi iptables-save -t mangle 2>/dev/null; /usr/sbin/xtables-$m-multi ip6tables-save -t mangle 2>/dev/null)" in
		*KUBE-KUBELET-CANARY* | *KUBE-IPTABLES-HINT*)
			mode=$m
			echo "$m" >/run/relapse-iptables
			break
			;;
		esac
	done
fi
exec /usr/sbin/xtables-${mode:-legacy}-multi "$name" "$@"
`

var iptablesPrograms = []string{
	"iptables", "iptables-save", "iptables-restore",
	"ip6tables", "ip6tables-save", "ip6tables-restore",
}

// userland collects files of a root, with their libraries, into an archive.
type userland struct {
	root string
	out  *tar.Writer
	seen map[string]bool
}

// writeUserland writes the archive that kube-proxy's image starts from: the
// programs, the libraries that they are linked to, and iptables' extensions.
func writeUserland(root, to string) (err error) {
	file, err := renameio.NewPendingFile(to)
	if err != nil {
		return fmt.Errorf("writing kube-proxy's userland: %w", err)
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	u := userland{root: root, out: tar.NewWriter(file), seen: map[string]bool{}}
	files := slices.Clone(userlandPrograms)
	extensions, err := filepath.Glob(filepath.Join(root, "usr/lib/*/xtables/*.so"))
	if err != nil {
		return err
	}
	if len(extensions) == 0 {
		return fmt.Errorf("writing kube-proxy's userland: no iptables extensions in the root")
	}
	for _, e := range extensions {
		rel, err := filepath.Rel(root, e)
		if err != nil {
			return err
		}
		files = append(files, rel)
	}
	for _, f := range files {
		if err := u.add(f); err != nil {
			return fmt.Errorf("writing kube-proxy's userland: %w", err)
		}
	}
	if err := u.furnish(); err != nil {
		return fmt.Errorf("writing kube-proxy's userland: %w", err)
	}
	if err := u.out.Close(); err != nil {
		return fmt.Errorf("writing kube-proxy's userland: %w", err)
	}
	return file.CloseAtomicallyReplace()
}

// furnish adds the folders, links and the wrapper, which aren't copied from the root.
func (u *userland) furnish() error {
	for _, dir := range []string{"run", "tmp"} {
		if err := u.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o1777}); err != nil {
			return err
		}
	}
	links := map[string]string{
		"bin":        "usr/bin",
		"sbin":       "usr/sbin",
		"lib":        "usr/lib",
		"lib64":      "usr/lib64",
		"usr/bin/sh": "dash",
	}
	for _, p := range iptablesPrograms[1:] {
		links["usr/sbin/"+p] = iptablesPrograms[0]
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if err := u.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: links[name],
			Mode: 0o777}); err != nil {
			return err
		}
	}
	return image.WriteEntry(
		u.out,
		"usr/sbin/"+iptablesPrograms[0],
		0o755,
		[]byte(iptablesWrapper),
	)
}

// add copies the file at name and every library that the file is linked to. If name is a symbolic link, add copies the
// link and what it points to. Names are relative to the root, and physical: in the archive, /lib and /lib64 are links.
func (u *userland) add(name string) error {
	name = physical(name)
	if u.seen[name] {
		return nil
	}
	u.seen[name] = true
	info, err := os.Lstat(filepath.Join(u.root, name))
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(filepath.Join(u.root, name))
		if err != nil {
			return err
		}
		if err := u.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target,
			Mode: 0o777}); err != nil {
			return err
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		return u.add(target)
	}
	data, err := os.ReadFile(filepath.Join(u.root, name))
	if err != nil {
		return err
	}
	if err := image.WriteEntry(u.out, name, 0o755, data); err != nil {
		return err
	}
	needs, err := linkedTo(filepath.Join(u.root, name))
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	for _, n := range needs {
		if !path.IsAbs(n) {
			if n, err = u.library(n); err != nil {
				return fmt.Errorf("%s needs it: %w", name, err)
			}
		}
		if err := u.add(n); err != nil {
			return err
		}
	}
	return nil
}

// library returns the path of a shared library in the root's usual folders.
func (u *userland) library(name string) (string, error) {
	for _, pattern := range []string{"usr/lib/*-linux-*/", "usr/lib64/", "usr/lib/"} {
		found, err := filepath.Glob(filepath.Join(u.root, pattern+name))
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return filepath.Rel(u.root, found[0])
		}
	}
	return "", fmt.Errorf("no library %s in the root", name)
}

// physical returns a path without a leading slash, and below /usr if Debian has merged its folder there.
func physical(name string) string {
	name = strings.TrimPrefix(path.Clean(name), "/")
	for _, dir := range []string{"bin/", "sbin/", "lib/", "lib64/"} {
		if strings.HasPrefix(name, dir) {
			return "usr/" + name
		}
	}
	return name
}

// linkedTo lists an ELF file's libraries by name, and its loader by path.
func linkedTo(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	needs, err := f.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader, err := io.ReadAll(p.Open())
		if err != nil {
			return nil, err
		}
		needs = append(needs, strings.TrimRight(string(loader), "\x00"))
	}
	return needs, nil
}
