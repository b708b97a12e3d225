package nodeimage_test

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

func TestCleanTakesOnlyWhatIsLeft(t *testing.T) {
	e := newFake()
	s, _ := newStore(t, e)
	build := func(name, key, store string) fakeContainer {
		return fakeContainer{id: name, name: name,
			labels: map[string]string{"dev.relapse.build": key, "dev.relapse.store": store}}
	}
	e.containers = []fakeContainer{
		build("relapse-node-image-dead-1", "dead", s.ID()),
		build("relapse-node-image-alive-1", "alive", s.ID()),
		build("relapse-node-image-dead-2", "dead", "another"),
		build("some-cluster-worker", "", s.ID()),      // a node of an assembled image
		build("some-cluster-worker2", "dead", s.ID()), // one whose labels lie
	}
	dead, err := s.Scratch("dead")
	if err != nil {
		t.Fatal(err)
	}
	alive, err := s.Scratch("alive")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.Lock(t.Context(), "alive")
	if err != nil {
		t.Fatal(err)
	}

	removed, err := s.Clean(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []nodeimage.Leftover{
		{Kind: "container", Name: "relapse-node-image-dead-1", Key: "dead"},
		{Kind: "scratch", Name: dead, Key: "dead"},
	}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if len(e.containers) != 4 {
		t.Errorf("containers after: %v", e.containers)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("dead scratch is still there: %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("a living assembly lost its scratch: %v", err)
	}

	unlock()
	if removed, err = s.Clean(t.Context()); err != nil || len(removed) != 2 {
		t.Errorf("after its lock was free: removed %v, error %v", removed, err)
	}
	if left, err := s.Leftovers(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left %v, error %v", left, err)
	}
}

func TestPruneKeepsWhatItIsTold(t *testing.T) {
	e := newFake()
	s, _ := newStore(t, e)
	ours := func(id, layer, version string) fakeImage {
		return fakeImage{ID: id, Labels: map[string]string{
			"dev.relapse.cache": "node-image", "dev.relapse.node-image": layer, "dev.relapse.key": id + "key",
			"dev.relapse.version": version,
		}}
	}
	e.images = map[string]fakeImage{
		"relapse/node-base:1":   ours("id1", "base", ""),
		"relapse/node:v1.34.4":  ours("id2", "node", "v1.34.4"),
		"relapse/node:v1.33.0":  ours("id3", "node", "v1.33.0"),
		"mine/built-on-it:1":    ours("id4", "node", "v1.33.0"),
		"kindest/node:v1.34.11": {ID: "id5"},
	}
	all, err := s.List(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("listed %v, error %v", all, err)
	}
	removed, err := s.Prune(t.Context(), "relapse/node:v1.34.4", "id1")
	if err != nil {
		t.Fatal(err)
	}
	want := []nodeimage.Entry{{Ref: "relapse/node:v1.33.0", ID: "id3", Layer: "node", Key: "id3key", Size: 7}}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if len(e.images) != 4 {
		t.Errorf("images after: %v", e.images)
	}
}

// What Get would find is told without a pull.
func TestHas(t *testing.T) {
	e := newFake()
	s, _ := newStore(t, e)
	e.registry = map[string]fakeImage{pinned: {ID: "sha256:aa", Version: "v1.34.9"}}
	e.images = map[string]fakeImage{
		"mine/node:1": {ID: "sha256:bb"},
		"relapse/node:v1.34.4-0123": {ID: "sha256:cc", Labels: map[string]string{
			"dev.relapse.cache": "node-image", "dev.relapse.node-image": "node", "dev.relapse.key": "0123"}},
	}
	for _, c := range []struct{ version, mode, want string }{
		{"v1.34.4", nodeimage.Auto, "assembled"},
		{"v1.34.4", nodeimage.Assembled, "assembled"},
		{"v1.34.4", nodeimage.Official, ""},
		{"v1.34.5", nodeimage.Auto, ""},
		{"v1.33.0", nodeimage.Auto, ""},
		{"v1.34.4", "mine/node:1", "given"},
		{"v1.34.4", "mine/node:2", ""},
	} {
		if got, err := s.Has(t.Context(), c.version, c.mode); got != c.want || err != nil {
			t.Errorf("%s of %s: %q, %v, want %q", c.mode, c.version, got, err, c.want)
		}
	}
	e.images[pinned] = e.registry[pinned]
	for _, mode := range []string{nodeimage.Auto, nodeimage.Official} {
		if got, err := s.Has(t.Context(), "v1.34.4", mode); got != "official" || err != nil {
			t.Errorf("%s with the official image: %q, %v", mode, got, err)
		}
	}
}

func TestKeysFollowTheirInputs(t *testing.T) {
	bins := binaries(t)
	node := func(base, version string) string {
		t.Helper()
		key, err := nodeimage.NodeKey(base, version, bins)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := node("b", "v1.34.4")
	if again := node("b", "v1.34.4"); again != first {
		t.Errorf("the same inputs give %s and %s", first, again)
	}
	seen := map[string]string{first: "first"}
	note := func(what, key string) {
		t.Helper()
		if other, ok := seen[key]; ok {
			t.Errorf("%s gives the key of %s", what, other)
		}
		seen[key] = what
	}
	note("another base", node("c", "v1.34.4"))
	note("another version", node("b", "v1.34.5"))
	for _, c := range nodeimage.Components {
		if err := os.WriteFile(bins[c], []byte("changed "+c), 0o755); err != nil {
			t.Fatal(err)
		}
		note("changed "+c, node("b", "v1.34.4"))
	}

	files := t.TempDir()
	base := func(arch string) string {
		t.Helper()
		key, err := nodeimage.BaseKey(files, arch)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	note("a base", base("amd64"))
	note("another architecture", base("arm64"))
	if err := os.WriteFile(filepath.Join(files, "entrypoint"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	note("another file of kind's", base("amd64"))
}

// binaries writes a stand-in for every component; kubeadm answers as it would.
func binaries(t *testing.T) map[string]string {
	t.Helper()
	dir, bins := t.TempDir(), map[string]string{}
	for _, c := range nodeimage.Components {
		content := "#!/bin/sh\n# " + c + "\n"
		if c == "kubeadm" {
			content += `for c in kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do echo "images.test/$c:$5"; done
echo images.test/coredns/coredns:v1.12.1
echo images.test/pause:3.10.1
echo images.test/etcd:3.6.5-0
`
		}
		bins[c] = filepath.Join(dir, c)
		if err := os.WriteFile(bins[c], []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bins
}

func TestComponentImages(t *testing.T) {
	bins := binaries(t)
	names, err := nodeimage.ImageNames(t.Context(), bins["kubeadm"], "v1.34.4")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"kube-apiserver":          "images.test/kube-apiserver:v1.34.4",
		"kube-controller-manager": "images.test/kube-controller-manager:v1.34.4",
		"kube-scheduler":          "images.test/kube-scheduler:v1.34.4", "kube-proxy": "images.test/kube-proxy:v1.34.4",
		"pause": "images.test/pause:3.10.1", "etcd": "images.test/etcd:3.6.5-0",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("names (-want +got):\n%s", diff)
	}
	userland := filepath.Join(t.TempDir(), "userland.tar")
	file, err := os.Create(userland)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	if err := w.WriteHeader(&tar.Header{Name: "usr/sbin/iptables", Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	file.Close()
	archive := filepath.Join(t.TempDir(), "images.tar")
	if err := nodeimage.WriteImages(archive, names, bins, userland, "amd64"); err != nil {
		t.Fatal(err)
	}
	for component, ref := range names {
		tag, err := name.NewTag(ref)
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(archive, &tag)
		if err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS != "linux" || config.Architecture != "amd64" {
			t.Errorf("%s is for %s/%s", ref, config.OS, config.Architecture)
		}
		wantFiles := []string{"etc/passwd", "usr/local/bin/" + component}
		if component == "kube-proxy" {
			wantFiles = append([]string{"usr/sbin/iptables"}, wantFiles...)
		}
		var files []string
		content := mutate.Extract(img)
		in := tar.NewReader(content)
		for {
			h, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, h.Name)
		}
		content.Close()
		if diff := cmp.Diff(wantFiles, files); diff != "" {
			t.Errorf("%s holds (-want +got):\n%s", ref, diff)
		}
	}
}

func TestImageNamesNeedsEveryComponent(t *testing.T) {
	kubeadm := filepath.Join(t.TempDir(), "kubeadm")
	if err := os.WriteFile(kubeadm, []byte("#!/bin/sh\necho images.test/kube-apiserver:$5\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := nodeimage.ImageNames(t.Context(), kubeadm, "v1.34.4")
	if err == nil || !strings.Contains(err.Error(), "no kube-controller-manager in") {
		t.Errorf("got %v", err)
	}
}
