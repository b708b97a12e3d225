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
	layers := mutate.Extract(img)
	defer layers.Close()
	var files []string
	for in := tar.NewReader(layers); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, strings.TrimSuffix(h.Name, "/"))
	}
	slices.Sort(files)
	if want := []string{"etc/passwd", "tmp", "usr/local/bin/relapse"}; !slices.Equal(files, want) {
		t.Errorf("it has %q, want %q", files, want)
	}
	var said bytes.Buffer
	if code := Run(t.Context(), []string{"docs", "image", program, "arm64", "no tag", file}, &said, &said); code != 64 || !strings.Contains(said.String(), "hint: name it like") {
		t.Errorf("a bad tag exits with %d: %s", code, &said)
	}
}
