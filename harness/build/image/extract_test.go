package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/image"
)

// archive writes an image of one layer for each list of entries, which are path=content, or path->target for a link.
func archive(t *testing.T, entrypoint []string, layers ...[]string) string {
	t.Helper()
	img := empty.Image
	for _, entries := range layers {
		var blob bytes.Buffer
		w := tar.NewWriter(&blob)
		for _, e := range entries {
			h := &tar.Header{Typeflag: tar.TypeReg, Mode: 0o755}
			var content string
			var link bool
			if h.Name, h.Linkname, link = strings.Cut(e, "->"); link {
				h.Typeflag = tar.TypeSymlink
			} else {
				h.Name, content, _ = strings.Cut(e, "=")
				h.Linkname, h.Size = "", int64(len(content))
			}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(blob.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			t.Fatal(err)
		}
	}
	img, err := mutate.Config(img, v1.Config{Entrypoint: entrypoint})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("example.org/dev:1")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(to, tag, img); err != nil {
		t.Fatal(err)
	}
	return to
}

func programs(t *testing.T) *cache.Store {
	t.Helper()
	s, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAProgramIsTakenOutOfAnArchive(t *testing.T) {
	for _, c := range []struct {
		name    string
		start   []string
		layers  [][]string
		places  []string
		at, has string
	}{
		{name: "Kubernetes' own", start: []string{"/go-runner"}, layers: [][]string{{"go-runner=runner"}, {"usr/local/bin/kubelet=kubelet"}}, at: "/usr/local/bin/kubelet", has: "kubelet"},
		{name: "ko's", start: []string{"/ko-app/kubelet"}, layers: [][]string{{"ko-app/kubelet=ko", "usr/bin/kubelet=other"}}, at: "/ko-app/kubelet", has: "ko"},
		{name: "at the root", layers: [][]string{{"kubelet=root"}}, at: "/kubelet", has: "root"},
		{name: "by another name", start: []string{"/hyperkube"}, layers: [][]string{{"hyperkube=all"}}, at: "/hyperkube", has: "all"},
		{name: "replaced by a later layer", layers: [][]string{{"usr/bin/kubelet=old"}, {"usr/bin/kubelet=new"}}, at: "/usr/bin/kubelet", has: "new"},
		{name: "through links", layers: [][]string{{"bin->usr/bin", "usr/bin/kubelet->../../opt/k", "opt/k=linked"}}, at: "/usr/bin/kubelet", has: "linked"},
		{name: "through a linked folder", layers: [][]string{{"bin->opt", "opt/kubelet=folder"}}, places: []string{"/bin/kubelet"}, at: "/bin/kubelet", has: "folder"},
		{name: "a node image's", layers: [][]string{{"kubelet=other", "usr/bin/kubelet=node"}}, places: []string{image.KubeletPlace}, at: "/usr/bin/kubelet", has: "node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := archive(t, c.start, c.layers...)
			got, err := image.Extract(t.Context(), programs(t), nil, file, "kubelet", c.places...)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(got.Path)
			if err != nil || string(b) != c.has || got.At != c.at || got.How != "from the archive image.tar" || !strings.HasPrefix(got.ID, "sha256:") {
				t.Errorf("got %+v with %q (%v), want %q at %s", got, b, err, c.has, c.at)
			}
			if info, err := os.Stat(got.Path); err != nil || info.Mode().Perm()&0o111 == 0 {
				t.Errorf("it is not executable: %v %v", info, err)
			}
		})
	}
}

func TestImagesWithoutTheProgramAreRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(text, []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, image, want string }{
		{"nowhere", archive(t, nil, []string{"bin/sh=shell"}), "it has none: want it at one of /usr/local/bin/kubelet, /usr/bin/kubelet, /bin/kubelet, /kubelet, /ko-app/kubelet, /app/kubelet"},
		{"empty", archive(t, nil, []string{"kubelet="}), "it is empty"},
		{"a loop", archive(t, nil, []string{"kubelet->/kubelet"}), "it has none: want it at one of"},
		{"no archive", text, "reading the archive (want one image, as `docker save` writes it): "},
		{"a reference without an engine", "example.org/dev:1", "it is no archive, and there is no engine to ask"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := image.Extract(t.Context(), programs(t), nil, c.image, "kubelet"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// copier is an engine that has one image with one file.
type copier struct {
	has, file string
	commands  []string
}

func (c *copier) Output(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := c.Stream(ctx, nil, &out, args...)
	return out.Bytes(), err
}

func (c *copier) Stream(_ context.Context, _ io.Reader, out io.Writer, args ...string) error {
	c.commands = append(c.commands, args[0])
	fail := func(said string) error {
		return fmt.Errorf("running `docker %s`: exit status 1: %s", strings.Join(args, " "), said)
	}
	switch args[0] {
	case "image":
		if args[len(args)-1] != c.has {
			return fail("Error: No such image: " + args[len(args)-1])
		}
		_, err := io.WriteString(out, `{"Id":"sha256:1234","Config":{"Entrypoint":["/go-runner"]}}`)
		return err
	case "pull":
		if args[len(args)-1] != "example.org/remote:1" {
			return fail("connection refused")
		}
		c.has = args[len(args)-1]
	case "cp":
		if !strings.HasSuffix(args[len(args)-2], ":"+c.file) {
			return fail("Error: No such container:path: " + args[len(args)-2])
		}
		w := tar.NewWriter(out)
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "kubelet", Size: 7, Mode: 0o755})
		if err == nil {
			_, err = io.WriteString(w, "program")
		}
		if err == nil {
			err = w.Close()
		}
		return err
	}
	return nil
}

func TestAProgramIsTakenOutOfAnImageOfTheEngine(t *testing.T) {
	for _, c := range []struct{ name, image, file, how, want, commands string }{
		{"known", "example.org/dev:1", "/usr/bin/kubelet", "which the engine had", "", "image create cp cp rm"},
		{"pulled", "example.org/remote:1", "/usr/local/bin/kubelet", "which was pulled", "", "image pull image create cp rm"},
		{"not to be had", "example.org/none:1", "", "", "it is no archive and the engine doesn't have it, and pulling it: ", "image pull"},
		{"without it", "example.org/dev:1", "/nowhere", "", "it has none: want it at one of /usr/local/bin/kubelet", "image create cp cp cp cp cp cp cp rm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eng := &copier{has: "example.org/dev:1", file: c.file}
			got, err := image.Extract(t.Context(), programs(t), eng, c.image, "kubelet")
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			} else if b, rerr := os.ReadFile(got.Path); err != nil || rerr != nil || string(b) != "program" || got.At != c.file || got.How != c.how {
				t.Errorf("got %+v, %v with %q", got, err, b)
			}
			if did := strings.Join(eng.commands, " "); did != c.commands {
				t.Errorf("the engine was told %q, want %q", did, c.commands)
			}
		})
	}
}
