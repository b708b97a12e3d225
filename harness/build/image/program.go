package image

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Passwd is the content of /etc/passwd in the images that this package makes.
const Passwd = "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"

// binDir is the directory where components look for each other's binaries. kubeadm's manifests call them by name,
// kube-proxy's by this path.
const binDir = "usr/local/bin"

// WriteProgram writes an archive of an image that holds only a static program, at /usr/local/bin/NAME, as its entry
// point. `ctr images import` reads the archive. ref is the image's full name with its tag; arch is Go's name of the
// architecture.
func WriteProgram(to, ref, program, binary, arch string) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(to), "layer-")
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	defer os.RemoveAll(scratch) // in a temporary directory, which the system cleans up if this fails
	img, err := Make(scratch, program, binary, "", arch)
	if err != nil {
		return fmt.Errorf("making image %s: %w", ref, err)
	}
	if err := tarball.WriteToFile(to, tag, img); err != nil {
		return fmt.Errorf("writing image %s: %w", ref, err)
	}
	return nil
}

// Make makes an image with a static program as its entry point. If under isn't "", the program's layer also contains
// that archive's files. The image reads its layer from a file in the directory scratch.
func Make(scratch, program, binary, under, arch string) (v1.Image, error) {
	img, err := place(empty.Image, scratch, program, binary, func(out *tar.Writer) error {
		if under != "" {
			if err := copyEntries(out, under); err != nil {
				return err
			}
		}
		return WriteEntry(out, "etc/passwd", 0o644, []byte(Passwd))
	})
	if err != nil {
		return nil, err
	}
	return Configured(img, func(config *v1.ConfigFile) {
		config.OS, config.Architecture = "linux", arch
		config.Created = v1.Time{Time: time.Unix(0, 0)} // so that the same input gives the same image
		config.Config.Env = []string{defaultPath}
	})
}

// Over makes an image of a base with a static program as its entry point. The rest of what the base's configuration says
// stays, and labels are added. The image reads the program's layer from a file in the directory scratch. The same input
// gives the same image.
func Over(
	base v1.Image,
	scratch, program, binary string,
	labels map[string]string,
) (v1.Image, error) {
	img, err := place(base, scratch, program, binary, func(*tar.Writer) error { return nil })
	if err != nil {
		return nil, err
	}
	return Configured(img, func(config *v1.ConfigFile) {
		if config.Config.Labels == nil {
			config.Config.Labels = map[string]string{}
		}
		maps.Copy(config.Config.Labels, labels)
	})
}

// Configured returns an image with another configuration: change gets a copy of its own.
func Configured(img v1.Image, change func(*v1.ConfigFile)) (v1.Image, error) {
	is, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := is.DeepCopy()
	change(config)
	return mutate.ConfigFile(img, config)
}

// place puts a layer with a program over a base, and makes the program its entry point. The files that under writes lie
// in the layer, too.
func place(
	base v1.Image,
	scratch, program, binary string,
	under func(*tar.Writer) error,
) (v1.Image, error) {
	file := filepath.Join(scratch, program+".layer.tar.gz")
	err := writeLayer(file, func(out *tar.Writer) error {
		if err := under(out); err != nil {
			return err
		}
		return WriteFile(out, path.Join(binDir, program), binary)
	})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.DockerLayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	return Configured(img, func(config *v1.ConfigFile) {
		config.Config.Entrypoint, config.Config.Cmd = []string{"/" + path.Join(binDir, program)}, nil
	})
}

// writeLayer writes a layer of what write writes. Every node copies its image store at start, so a small layer matters
// more than one that unpacks fast. Fast compression already saves most of the size.
func writeLayer(to string, write func(*tar.Writer) error) (err error) {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer file.Close()
	compressed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(compressed)
	if err := write(out); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return file.Close()
}

func copyEntries(out *tar.Writer, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	in := tar.NewReader(file)
	for {
		header, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", archive, err)
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return fmt.Errorf("reading %s: %w", archive, err)
		}
	}
}

// WriteFile streams an executable into the archive.
func WriteFile(out *tar.Writer, at, from string) error { return writeFile(out, at, from, 0o755) }

// WriteDir streams all files of a folder into the archive, in the order of their names, as data below at. The same files
// give the same bytes.
func WriteDir(out *tar.Writer, at, dir string) error {
	return filepath.WalkDir(dir, func(from string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, from)
		if err != nil {
			return err
		}
		return writeFile(out, path.Join(at, filepath.ToSlash(below)), from, 0o644)
	})
}

func writeFile(out *tar.Writer, at, from string, mode int64) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: at, Mode: mode,
		Size: info.Size()}); err != nil {
		return err
	}
	if _, err := io.Copy(out, file); err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	return nil
}

// WriteEntry writes a small file into the archive.
func WriteEntry(out *tar.Writer, name string, mode int64, data []byte) error {
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode,
		Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := out.Write(data)
	return err
}
