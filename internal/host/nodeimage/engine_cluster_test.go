//go:build cluster

package nodeimage_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

func realEngine(t *testing.T) *docker.Client {
	t.Helper()
	e, err := docker.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// serve starts an image registry on loopback with one image that has content
// at path, and gives the image's reference by tag and by digest.
func serve(t *testing.T, e *docker.Client, path, content string) (tagged, digested string) {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	var layerTar bytes.Buffer
	w := tar.NewWriter(&layerTar)
	if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, content)
	w.Close()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layerTar.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	// A fresh creation time: the engine mustn't know the image from an earlier run.
	if img, err = mutate.CreatedAt(img, v1.Time{Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	tagged = strings.TrimPrefix(server.URL, "http://") + "/kindest/node:v1.34.9"
	tag, err := name.NewTag(tagged)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
	sum, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	digested = tagged + "@" + sum.String()
	t.Cleanup(func() {
		for _, ref := range []string{tagged, tag.Context().Digest(sum.String()).String()} {
			_, _ = e.Output(context.Background(), "image", "rm", ref) // whichever the test pulled
		}
	})
	return tagged, digested
}

func TestPullFromARegistry(t *testing.T) {
	e := realEngine(t)
	s, said := newStore(t, e)
	tagged, digested := serve(t, e, "kind/version", "v1.34.9\n")
	s.Pin("v1.34", digested)
	for _, cached := range []bool{false, true} {
		img, err := s.Get(t.Context(), nodeimage.Request{Version: "v1.34.4", Mode: nodeimage.Auto})
		if err != nil {
			t.Fatal(err)
		}
		if img.Ref != digested || img.Origin != nodeimage.OriginOfficial || img.Version != "v1.34.9" ||
			img.Cached != cached || !strings.HasPrefix(img.ID, "sha256:") {
			t.Errorf("got %+v, want %s, cached: %v", img, digested, cached)
		}
	}
	if got := strings.Join(*said, "\n"); strings.Count(got, "pulling "+digested) != 1 {
		t.Errorf("said %q, want one pull", got)
	}
	img, err := s.Get(t.Context(), nodeimage.Request{Version: "v1.34.4", Mode: tagged})
	if err != nil || img.Origin != nodeimage.OriginGiven || img.Version != "v1.34.9" {
		t.Errorf("given: got %+v, %v", img, err)
	}
	if left, err := s.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestPullOfAWrongDigestIsRefused(t *testing.T) {
	e := realEngine(t)
	s, _ := newStore(t, e)
	tagged, _ := serve(t, e, "kind/version", "v1.34.9\n")
	s.Pin("v1.34", tagged+"@sha256:"+strings.Repeat("0", 64))
	_, ok, err := s.Official(t.Context(), "v1.34")
	var u *nodeimage.UnavailableError
	if ok || !errors.As(err, &u) {
		t.Errorf("got %v, %v; want it unavailable", ok, err)
	}
}

func TestPulledImageWithoutKindVersion(t *testing.T) {
	e := realEngine(t)
	s, _ := newStore(t, e)
	tagged, _ := serve(t, e, "etc/other", "x")
	_, err := s.Given(t.Context(), tagged)
	if err == nil || !strings.Contains(err.Error(), "is it a kind node image?") {
		t.Errorf("got %v", err)
	}
	if left, err := s.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// It needs root, debootstrap and a Debian mirror, and takes about a minute and
// a half. Components are stand-ins: the image is looked into, not booted.
func TestAssembleOnTheRealEngine(t *testing.T) {
	e := realEngine(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := nodeimage.New(t.TempDir(), e, func(line string) {
		if strings.HasPrefix(line, "bootstrapping ") {
			time.AfterFunc(3*time.Second, cancel) // in the midst of it, which takes half a minute at least
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	bins := binaries(t)
	// Content of this run only, or the engine may have the image already.
	if err := os.WriteFile(bins["etcd"], fmt.Appendf(nil, "etcd %d", time.Now().UnixNano()), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Base(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a base whose bootstrap is cut off: got %v, want it cancelled", err)
	}
	if left, err := s.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("after a cancelled bootstrap: left %v, %v", left, err)
	}

	id, err := s.Base(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request := nodeimage.Request{Version: "v1.34.4", Mode: nodeimage.Assembled, Binaries: bins}
	img, err := s.Assemble(t.Context(), request, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = e.Output(context.Background(), "image", "rm", img.Ref) })
	if img.Cached || img.Origin != nodeimage.OriginAssembled {
		t.Errorf("got %+v", img)
	}
	again, err := s.Assemble(t.Context(), request, "")
	if err != nil || !again.Cached || again.ID != img.ID {
		t.Errorf("the second time: got %+v, %v; want %s, cached", again, err, img.ID)
	}
	given, err := s.Given(t.Context(), img.Ref)
	if err != nil || given.Version != "v1.34.4" {
		t.Errorf("its own version: got %+v, %v", given, err)
	}
	inspect(t, e, img.Ref)
	if left, err := s.Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// inspect checks the parts of an image that kind and the collectors rely on.
func inspect(t *testing.T, e *docker.Client, ref string) {
	t.Helper()
	out, err := e.Output(t.Context(), "image", "inspect", "--format",
		`{{.Config.StopSignal}} {{json .Config.Entrypoint}} [{{index .Config.Labels "dev.relapse.build"}}] {{index .Config.Labels "dev.relapse.cache"}}`, ref)
	if want := `SIGRTMIN+3 ["/usr/local/bin/entrypoint","/sbin/init"] [] node-image`; err != nil ||
		strings.TrimSpace(string(out)) != want {
		t.Errorf("config is %q, %v; want %q", out, err, want)
	}
	out, err = e.Output(t.Context(), "run", "--rm", "--network", "none", "--entrypoint", "/bin/sh", ref, "-ec", `
		test -x /usr/bin/kubelet -a -x /usr/bin/kubeadm -a -x /usr/bin/kubectl
		curl --version >/dev/null; jq --version >/dev/null; journalctl --version >/dev/null
		test ! -e /relapse
		grep -q 'sandbox_image = "images.test/pause:3.10.1"' /etc/containerd/config.toml
		jq -e '.hooks.createContainer[0].path and (.process | has("rlimits") | not)' /etc/containerd/cri-base.json
		/opt/cni/bin/ptp --help 2>&1 | head -n 1 >/dev/null
		containerd >/tmp/log 2>&1 & until ctr version >/dev/null 2>&1; do sleep 0.1; done
		ctr -n k8s.io images ls -q | sort`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"kube-apiserver:v1.34.4", "kube-proxy:v1.34.4", "etcd:3.6.5-0", "pause:3.10.1"} {
		if !strings.Contains(string(out), "images.test/"+c+"\n") {
			t.Errorf("no image %s in %q", c, out)
		}
	}
}
