package release_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/release"
)

const version = "v1.33.13"

// program builds a program that says of itself that it is a component of that version, and returns its bytes.
func program(t *testing.T, name, version string) []byte {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":                   "module example.org/kubernetes\n\ngo 1.24\n",
		"cmd/" + name + "/main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"Kubernetes " + version + "\\n\") }\n",
	} {
		at := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "program", "./cmd/"+name)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func sum(raw []byte) string {
	s := sha256.Sum256(raw)
	return hex.EncodeToString(s[:])
}

// mirror is a registry and a file server on one port of loopback.
type mirror struct {
	*httptest.Server
	images http.Handler
	files  map[string][]byte
	bend   func(w http.ResponseWriter, r *http.Request) bool // answers in place of both, if it returns true

	mu    sync.Mutex
	asked []string
}

func serve(t *testing.T) *mirror {
	m := &mirror{files: map[string][]byte{}}
	m.images = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.asked = append(m.asked, r.Method+" "+r.URL.Path)
		m.mu.Unlock()
		raw, ok := m.files[r.URL.Path]
		switch {
		case m.bend != nil && m.bend(w, r):
		case strings.HasPrefix(r.URL.Path, "/v2/"):
			m.images.ServeHTTP(w, r)
		case ok:
			_, _ = w.Write(raw)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// file publishes a program as a file with its SHA-256.
func (m *mirror) file(name string, raw []byte) {
	at := fmt.Sprintf("/release/%s/bin/linux/%s/%s", version, runtime.GOARCH, name)
	m.files[at], m.files[at+".sha256"] = raw, []byte(sum(raw)+"\n")
}

// image publishes a program in an image, and returns the digest of its tag.
func (m *mirror) image(t *testing.T, ref, name, arch string, raw []byte) string {
	t.Helper()
	var blob bytes.Buffer
	w := tar.NewWriter(&blob)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "usr/local/bin/" + name, Mode: 0o755, Size: int64(len(raw))})
	_, failed := w.Write(raw)
	if err := errors.Join(err, failed, w.Close()); err != nil {
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
	if img, err = mutate.ConfigFile(img, &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers", DiffIDs: diffIDs(t, layer)}}); err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
		Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	tag := m.tag(t, ref)
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func diffIDs(t *testing.T, l v1.Layer) []v1.Hash {
	id, err := l.DiffID()
	if err != nil {
		t.Fatal(err)
	}
	return []v1.Hash{id}
}

func (m *mirror) tag(t *testing.T, ref string) name.Tag {
	tag, err := name.NewTag(strings.TrimPrefix(m.URL, "http://")+"/"+ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

// requests returns what was asked for so far, from a method on.
func (m *mirror) requests(method string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.asked), func(s string) bool { return !strings.HasPrefix(s, method+" ") })
}

func publisher(t *testing.T, url string, limit time.Duration) *release.Publisher {
	t.Helper()
	p, err := release.New(release.Options{Mirror: url, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func store(t *testing.T) *cache.Store {
	t.Helper()
	s, err := cache.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A program is taken from its image, or from its file if no image has it. What is known of it is kept with it, and a
// second run asks nobody.
func TestAProgramIsHadAsPublished(t *testing.T) {
	m, s := serve(t), store(t)
	api, kubelet := program(t, "kube-apiserver", version), program(t, "kubelet", version)
	digest := m.image(t, "kube-apiserver:"+version, "kube-apiserver", runtime.GOARCH, api)
	m.file("kubelet", kubelet)
	moved := "/elsewhere/kubelet" // files lie behind a redirect
	at := fmt.Sprintf("/release/%s/bin/linux/%s/kubelet", version, runtime.GOARCH)
	m.files[moved] = m.files[at]
	m.bend = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == at {
			http.Redirect(w, r, moved, http.StatusFound)
		}
		return r.URL.Path == at
	}
	host := strings.TrimPrefix(m.URL, "http://")
	for _, c := range []struct {
		name, from string
		raw        []byte
	}{
		{"kube-apiserver", host + "/kube-apiserver:" + version + "@" + digest, api},
		{"kubelet", m.URL + at, kubelet},
	} {
		got, err := publisher(t, m.URL, 0).Get(t.Context(), s, c.name, version)
		if err != nil {
			t.Fatal(err)
		}
		has, err := os.ReadFile(got.Path)
		if err != nil || !bytes.Equal(has, c.raw) || got.SHA256 != sum(c.raw) || got.From != c.from || got.Go != runtime.Version() {
			t.Errorf("%s: got %+v (%v), want %s", c.name, got, err, c.from)
		}
		before := len(m.requests("GET"))
		again, err := publisher(t, m.URL, 0).Get(t.Context(), s, c.name, version)
		if err != nil || again != got || len(m.requests("GET")) != before {
			t.Errorf("%s: got %+v (%v) and %d requests, want it from the cache: %+v", c.name, again, err, len(m.requests("GET"))-before, got)
		}
		if err := os.WriteFile(got.Path, []byte("changed"), 0o755); err != nil {
			t.Fatal(err)
		}
		if again, err = publisher(t, m.URL, 0).Get(t.Context(), s, c.name, version); err != nil || again != got {
			t.Errorf("%s: got %+v (%v) after it was changed in the cache, want it anew: %+v", c.name, again, err, got)
		}
	}
}

// Whatever is wrong with what a server has, is refused with its address.
func TestWhatServersGetWrong(t *testing.T) {
	api, older := program(t, "kube-apiserver", version), program(t, "kube-apiserver", "v1.33.12")
	ref, other := "kube-apiserver:"+version, map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	at := fmt.Sprintf("/release/%s/bin/linux/%s/kube-apiserver", version, runtime.GOARCH)
	cut := func(w http.ResponseWriter, r *http.Request, raw []byte) bool { // the server then breaks the connection off
		if r.Method != http.MethodGet || len(raw) < 1000 {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
		_, _ = w.Write(raw[:500])
		return true
	}
	for _, c := range []struct {
		name  string
		serve func(m *mirror)
		want  []string
	}{
		{"nothing", func(*mirror) {}, []string{
			"kube-apiserver v1.33.13 for linux/" + runtime.GOARCH + " can't be had as published: getting image HOST/" + ref + ": ",
			"; getting URL" + at + ".sha256: it answers 404 Not Found"}},
		{"a bad sum", func(m *mirror) {
			m.file("kube-apiserver", api)
			m.files[at+".sha256"] = []byte(strings.Repeat("0", 64))
		}, []string{"getting URL" + at + ": it has SHA-256 " + sum(api) + ", and URL" + at + ".sha256 says 0000"}},
		{"a page for a sum", func(m *mirror) {
			m.file("kube-apiserver", api)
			m.files[at+".sha256"] = []byte("<html>log in")
		}, []string{"getting URL" + at + `.sha256: it has no SHA-256: "<html>log in"`}},
		{"a truncated file", func(m *mirror) {
			m.file("kube-apiserver", api)
			m.files[at+".sha256"] = []byte(sum(api))
			m.bend = func(w http.ResponseWriter, r *http.Request) bool {
				return r.URL.Path == at && cut(w, r, api)
			}
		}, []string{"getting URL" + at + ": unexpected EOF"}},
		{"a truncated layer", func(m *mirror) {
			m.image(t, ref, "kube-apiserver", runtime.GOARCH, api)
			m.bend = func(w http.ResponseWriter, r *http.Request) bool {
				whole := httptest.NewRecorder()
				m.images.ServeHTTP(whole, r)
				return strings.Contains(r.URL.Path, "/blobs/") && cut(w, r, whole.Body.Bytes())
			}
		}, []string{"getting image HOST/" + ref + ": ", "unexpected EOF"}},
		{"another layer", func(m *mirror) {
			m.image(t, ref, "kube-apiserver", runtime.GOARCH, api)
			m.bend = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}
				_, _ = w.Write(older)
				return true
			}
		}, []string{"getting image HOST/" + ref + ": ", "error verifying"}},
		{"another architecture", func(m *mirror) { m.image(t, ref, "kube-apiserver", other, api) },
			[]string{"getting image HOST/" + ref + ": ", "no child with platform linux/" + runtime.GOARCH + " in index"}},
		{"another architecture, without an index", func(m *mirror) { m.mislabelled(t, ref, other) },
			[]string{"getting image HOST/" + ref + ": it is for linux/" + other + ": want linux/" + runtime.GOARCH}},
		{"another version", func(m *mirror) { m.image(t, ref, "kube-apiserver", runtime.GOARCH, older) },
			[]string{"the program of HOST/" + ref + "@sha256:", `it says that it is "v1.33.12"  (want v1.33.13)`}},
		{"another program", func(m *mirror) { m.file("kube-apiserver", program(t, "kubelet", version)) },
			[]string{"the program of URL" + at + ": it is the program kubelet (example.org/kubernetes/cmd/kubelet): want a kube-apiserver"}},
		{"no program", func(m *mirror) { m.image(t, ref, "kube-scheduler", runtime.GOARCH, api) },
			[]string{"getting image HOST/" + ref + ": it has none: want it at one of /usr/local/bin/kube-apiserver"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := serve(t)
			c.serve(m)
			s := store(t)
			_, err := publisher(t, m.URL, 0).Get(t.Context(), s, "kube-apiserver", version)
			var refused *release.Error
			if !errors.As(err, &refused) || !strings.Contains(refused.Hint(), "--build builds it from its source; --mirror URL") {
				t.Fatalf("got %v, want an Error with its next step", err)
			}
			for _, want := range c.want {
				want = strings.NewReplacer("HOST", strings.TrimPrefix(m.URL, "http://"), "URL", m.URL).Replace(want)
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant %s", err, want)
				}
			}
			if kept, err := s.List(); err != nil || len(kept) > 0 {
				t.Errorf("the cache keeps %v (%v)", kept, err)
			}
		})
	}
}

// mislabelled publishes an image for an architecture without an index that would say which.
func (m *mirror) mislabelled(t *testing.T, ref, arch string) {
	t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(m.tag(t, ref), img); err != nil { // no index: the tag is of one image
		t.Fatal(err)
	}
}

// A host that says nothing costs the limit once, however much is asked of it.
func TestASilentHostIsAskedOnce(t *testing.T) {
	m := serve(t)
	silence, over := context.WithCancel(context.Background())
	t.Cleanup(over)
	m.bend = func(http.ResponseWriter, *http.Request) bool { <-silence.Done(); return true }
	const limit = 2 * time.Second // on a busy machine the request takes a while to arrive, too
	p, s := publisher(t, m.URL, limit), store(t)
	began := time.Now()
	for _, name := range []string{"kube-apiserver", "kube-scheduler", "kubelet"} {
		_, err := p.Get(t.Context(), s, name, version)
		if err == nil || !strings.Contains(err.Error(), "isn't asked again in this run: it didn't answer in time") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if took := time.Since(began); took < limit || len(m.requests("GET")) > 0 || len(m.requests("HEAD")) != 1 {
		t.Errorf("it took %s and %d requests, want one", took, len(m.requests("GET"))+len(m.requests("HEAD")))
	}
}

// An answer that begins and never goes on is given up.
func TestAnAnswerThatStopsIsGivenUp(t *testing.T) {
	m := serve(t)
	silence, over := context.WithCancel(context.Background())
	t.Cleanup(over)
	m.file("kubelet", []byte("whatever"))
	m.bend = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/kubelet") {
			return false
		}
		_, _ = w.Write([]byte("what"))
		w.(http.Flusher).Flush()
		<-silence.Done()
		return true
	}
	_, err := publisher(t, m.URL, 2*time.Second).Get(t.Context(), store(t), "kubelet", version)
	if err == nil || !strings.Contains(err.Error(), "its answer broke off: nothing came any more") {
		t.Errorf("got %v", err)
	}
}

func TestAHostThatRefusesIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = publisher(t, "http://"+l.Addr().String(), 0).Get(t.Context(), store(t), "kubelet", version)
	if err == nil || !strings.Contains(err.Error(), `Get "http://`+l.Addr().String()+"/release/"+version) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestMirrorsThatCantBeAsked(t *testing.T) {
	for mirror, want := range map[string]string{
		"mirror.example.org":            `the mirror "mirror.example.org" has no host`,
		"ftp://mirror.example.org":      "or it isn't one of HTTP (want a URL such as https://mirror.example.org/k8s)",
		"https://me:secret@example.org": "the mirror https://me:xxxxx@example.org has credentials in its address (want them in the engine's: docker login example.org)",
	} {
		if _, err := release.New(release.Options{Mirror: mirror}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %s", mirror, err, want)
		}
	}
}
