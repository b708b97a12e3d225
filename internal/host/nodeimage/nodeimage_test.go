package nodeimage_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

const pinned = "kindest/node:v1.34.9@sha256:0000"

func newStore(t *testing.T, e image.Engine) (*nodeimage.Store, *[]string) {
	t.Helper()
	var said []string
	s, err := nodeimage.New(t.TempDir(), e, func(line string) { said = append(said, line) })
	if err != nil {
		t.Fatal(err)
	}
	s.Pin("v1.34", pinned)
	return s, &said
}

func TestGetFindsAnImage(t *testing.T) {
	node := fakeImage{ID: "sha256:aa", Version: "v1.34.9"}
	for _, tt := range []struct {
		name, mode, version string
		local, registry     map[string]fakeImage
		want                nodeimage.Image
		wantErr             string
	}{
		{
			name: "official and local", mode: nodeimage.Auto, version: "v1.34.4",
			local: map[string]fakeImage{pinned: node},
			want:  nodeimage.Image{Ref: pinned, ID: "sha256:aa", Origin: "official", Version: "v1.34.9", Cached: true},
		},
		{
			name: "official and pulled", mode: nodeimage.Official, version: "v1.34.4",
			registry: map[string]fakeImage{pinned: node},
			want:     nodeimage.Image{Ref: pinned, ID: "sha256:aa", Origin: "official", Version: "v1.34.9"},
		},
		{
			name: "given", mode: "mine/node:1", version: "v1.34.4",
			local: map[string]fakeImage{"mine/node:1": {ID: "sha256:bb", Version: "v1.30.0"}},
			want:  nodeimage.Image{Ref: "mine/node:1", ID: "sha256:bb", Origin: "given", Version: "v1.30.0", Cached: true},
		},
		{
			name: "given and not a node image", mode: "busybox", version: "v1.34.4",
			local:   map[string]fakeImage{"busybox": {ID: "sha256:cc"}},
			wantErr: "reading /kind/version of busybox (is it a kind node image?)",
		},
		{
			name: "given and nonsense inside", mode: "odd", version: "v1.34.4",
			local:   map[string]fakeImage{"odd": {ID: "sha256:cc", Version: "latest"}},
			wantErr: `"latest" isn't a version`,
		},
		{
			name: "official of another minor than pinned for", mode: nodeimage.Auto, version: "v1.34.4",
			local:   map[string]fakeImage{pinned: {ID: "sha256:dd", Version: "v1.33.1"}},
			wantErr: "holds Kubernetes v1.33.1, wanted v1.34",
		},
		{
			name: "a local tag without the digest isn't the pinned image", mode: nodeimage.Official, version: "v1.34.4",
			local:   map[string]fakeImage{"kindest/node:v1.34.9": node},
			wantErr: "manifest for " + pinned + " is unknown",
		},
		{
			name: "no official image", mode: nodeimage.Official, version: "v1.22.2",
			wantErr: "node image v1.22: no official image is pinned for this minor",
		},
		{
			name: "not a version", mode: nodeimage.Auto, version: "newest",
			wantErr: `parsing Kubernetes version "newest"`,
		},
		{
			name: "assembled without binaries", mode: nodeimage.Assembled, version: "v1.34.4",
			wantErr: "assembling a node image: binaries: kubelet isn't given; kubeadm isn't given",
		},
		{
			name: "assembled from half a version", mode: nodeimage.Assembled, version: "1.34",
			wantErr: `version "1.34" isn't of the form v1.34.4`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newFake()
			for ref, img := range tt.local {
				e.images[ref] = img
			}
			e.registry = tt.registry
			s, _ := newStore(t, e)
			got, err := s.Get(t.Context(), nodeimage.Request{Version: tt.version, Mode: tt.mode})
			if len(e.containers) > 0 {
				t.Errorf("containers left: %v", e.containers)
			}
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got.What) == 0 || !strings.Contains(strings.Join(got.What, "\n"), tt.want.Version) {
				t.Errorf("What doesn't say what it is: %q", got.What)
			}
			got.What = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("image (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAutoFallsBackToAssembling(t *testing.T) {
	s, said := newStore(t, newFake()) // a registry that doesn't have it
	_, err := s.Get(t.Context(), nodeimage.Request{Version: "v1.34.4", Mode: nodeimage.Auto})
	if err == nil || !strings.Contains(err.Error(), "assembling a node image: binaries:") {
		t.Errorf("got error %v, want the assembly's", err)
	}
	line := strings.Join(*said, "\n")
	for _, want := range []string{pinned, "is unknown", "assembling a node image instead"} {
		if !strings.Contains(line, want) {
			t.Errorf("said %q, want %q in it", line, want)
		}
	}
}

func TestSilentRegistryIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.pull = func(ctx context.Context, _ io.Writer, _ string) error { <-ctx.Done(); return ctx.Err() }
		s, _ := newStore(t, e)
		start := time.Now()
		_, ok, err := s.Official(t.Context(), "v1.34")
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("gave up after %s, want 10s", took)
		}
		var u *nodeimage.UnavailableError
		if ok || !errors.As(err, &u) || !strings.Contains(err.Error(), "no answer from the registry within 10s") {
			t.Errorf("got %v, %v", ok, err)
		}
	})
}

func TestSlowPullIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFake()
		e.pull = func(ctx context.Context, out io.Writer, ref string) error {
			io.WriteString(out, "Pulling from kindest/node\n")
			select {
			case <-time.After(5 * time.Minute):
				e.images[ref] = fakeImage{ID: "sha256:aa", Version: "v1.34.9"}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s, _ := newStore(t, e)
		if _, ok, err := s.Official(t.Context(), "1.34"); !ok || err != nil {
			t.Errorf("got %v, %v", ok, err)
		}
	})
}

func TestCancelledPullIsNotAFallback(t *testing.T) {
	e := newFake()
	ctx, cancel := context.WithCancel(t.Context())
	e.pull = func(ctx context.Context, _ io.Writer, _ string) error { cancel(); <-ctx.Done(); return ctx.Err() }
	s, _ := newStore(t, e)
	_, err := s.Get(ctx, nodeimage.Request{Version: "v1.34.4", Mode: nodeimage.Auto})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
}
