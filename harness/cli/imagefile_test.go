package cli

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The image has the program, a user, a folder for temporary files and nothing else, and is the same each time.
func TestImageOfARelease(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	var made [2][]byte
	file := filepath.Join(dir, "relapse.tar")
	for i := range made {
		var said bytes.Buffer
		if code := Run(t.Context(), []string{"docs", "image", program, "arm64", "ghcr.io/kube-relapse/relapse:v9.9.9", file}, &said, &said); code != 0 {
			t.Fatalf("it exits with %d: %s", code, &said)
		}
		var err error
		if made[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("the same program gives another image")
	}
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Architecture != "arm64" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/relapse"}) {
		t.Errorf("the image is %+v, %v", config, err)
	}
	if files, want := filesOf(t, img), []string{"etc/passwd", "tmp", "usr/local/bin/relapse"}; !slices.Equal(files, want) {
		t.Errorf("it has %q, want %q", files, want)
	}
	var said bytes.Buffer
	if code := Run(t.Context(), []string{"docs", "image", program, "arm64", "no tag", file}, &said, &said); code != 64 || !strings.Contains(said.String(), "hint: name it like") {
		t.Errorf("a bad tag exits with %d: %s", code, &said)
	}
}

// filesOf returns what an image's merged layers have.
func filesOf(t *testing.T, img v1.Image) (files []string) {
	t.Helper()
	layers := mutate.Extract(img)
	defer layers.Close()
	for in := tar.NewReader(layers); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(files)
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, strings.TrimSuffix(h.Name, "/"))
	}
}

// baseOf writes a base image for an architecture with some files, as docker save does.
func baseOf(t *testing.T, arch string, files ...string) string {
	t.Helper()
	var blob bytes.Buffer
	out := tar.NewWriter(&blob)
	for _, f := range files {
		name, target, link := strings.Cut(f, "->")
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755}
		if link {
			h.Typeflag, h.Linkname = tar.TypeSymlink, target
		}
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(blob.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{must(t, layer.DiffID)}},
		Config: v1.Config{Env: []string{"PATH=/usr/local/go/bin:/bin", "GOTOOLCHAIN=local"}, Cmd: []string{"bash"}, WorkingDir: "/go"}})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("example.org/base:1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "base.tar")
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(err)
	}
	return file
}

func must[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	v, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The image for runs is its base and the program, and a base that lacks something of what a run needs is refused.
func TestImageForRunsOfARelease(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	has := []string{"bin->usr/bin", "usr/bin/git", "usr/bin/sh->dash", "usr/bin/dash", "usr/local/go/bin/go", "etc/ssl/certs/ca-certificates.crt"}
	file := filepath.Join(dir, "relapse.tar")
	write := func(base string) (int, string) {
		var said bytes.Buffer
		code := Run(t.Context(), []string{"docs", "image", program, "arm64", "ghcr.io/kube-relapse/relapse:v9.9.9", file, "--base", base}, &said, &said)
		return code, said.String()
	}
	base := baseOf(t, "arm64", has...)
	var made [2][]byte
	for i := range made {
		if code, said := write(base); code != 0 {
			t.Fatalf("it exits with %d: %s", code, said)
		}
		var err error
		if made[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("the same program and base give another image")
	}
	img := must(t, func() (v1.Image, error) { return tarball.ImageFromPath(file, nil) })
	config := must(t, img.ConfigFile).Config
	if !slices.Equal(config.Entrypoint, []string{"/usr/local/bin/relapse"}) || len(config.Cmd) > 0 || config.WorkingDir != "/go" ||
		!slices.Equal(config.Env, []string{"PATH=/usr/local/go/bin:/bin", "GOTOOLCHAIN=local"}) {
		t.Errorf("it is started as %+v, want relapse in what the base says", config)
	}
	digest := must(t, must(t, func() (v1.Image, error) { return tarball.ImageFromPath(base, nil) }).Digest).String()
	if got := config.Labels["org.opencontainers.image.base.digest"]; got != digest {
		t.Errorf("it names the base %q, want %s", got, digest)
	}
	want := []string{"usr/local/bin/relapse"}
	for _, f := range has {
		path, _, _ := strings.Cut(f, "->")
		want = append(want, path)
	}
	slices.Sort(want)
	if files := filesOf(t, img); !slices.Equal(files, want) {
		t.Errorf("it has %q, want %q", files, want)
	}
	for _, c := range []struct{ name, base, want string }{
		{"without git", baseOf(t, "arm64", slices.Concat(has[:1], has[2:])...), "lacks what a run needs: git\nhint: docker.io/library/golang"},
		{"with Go beside its PATH", baseOf(t, "arm64", append(slices.Clone(has[:4]), "opt/go", has[5])...), "lacks what a run needs: go\n"},
		{"with a link to nothing", baseOf(t, "arm64", append(slices.Clone(has[:3]), has[4:]...)...), "lacks what a run needs: sh\n"},
		{"of another platform", baseOf(t, "amd64", has...), "is for linux/amd64, and the programs for linux/arm64\nhint: BASE=FILE"},
		{"of no image", program, "want one image, as docker save writes it"},
		{"of no name", "NO NAME", "reading the base image's name: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, said := write(c.base); code != 64 || !strings.Contains(said, c.want) {
				t.Errorf("it exits with %d: %s\nwant %q", code, said, c.want)
			}
		})
	}
}
