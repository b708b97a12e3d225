// Package release gets components' programs as their projects published them: from their images and from the files
// beside them. It needs no container engine.
//
// What is got is verified: an image's layers by the digests of its manifest, a file by the SHA-256 that stands beside it,
// and either by what the program says of itself. Signatures are left to cosign, see docs/published.md.
package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/internal/sums"
)

// The hosts of the Kubernetes project.
const (
	Images = "https://registry.k8s.io"
	Files  = "https://dl.k8s.io"
)

// MirrorEnv is the environment variable that names a mirror of both hosts.
const MirrorEnv = "RELAPSE_MIRROR"

// Publisher gets programs from the hosts that have them. A host that once didn't answer in time isn't asked again.
type Publisher struct {
	images, files *url.URL
	asks          *patience
	client        *http.Client
	greeted       sync.Once
}

// Options say where published programs are.
type Options struct {
	Mirror string        // the URL of a mirror in place of both hosts; "" for the hosts themselves
	Limit  time.Duration // how long a host may take to begin its answer; 0 is 5 s
}

// New returns a Publisher. It asks nobody yet.
func New(o Options) (*Publisher, error) {
	if o.Limit == 0 {
		o.Limit = 5 * time.Second
	}
	p := &Publisher{
		asks: &patience{next: http.DefaultTransport, limit: o.Limit, silent: map[string]bool{}},
	}
	p.client = &http.Client{Transport: p.asks}
	images, files := Images, Files
	if o.Mirror != "" {
		images, files = o.Mirror, o.Mirror
	}
	var err error
	if p.images, err = url.Parse(images); err != nil {
		return nil, fmt.Errorf("reading the mirror's address: %w", err)
	}
	if p.images.Host == "" || p.images.Scheme != "http" && p.images.Scheme != "https" {
		return nil, fmt.Errorf(
			"the mirror %q has no host, or it isn't one of HTTP (want a URL such as https://mirror.example.org/k8s)",
			images,
		)
	}
	if p.images.User != nil { // errors and plans name the address
		return nil, fmt.Errorf(
			"the mirror %s has credentials in its address (want them in the engine's: docker login %s)",
			p.images.Redacted(),
			p.images.Host,
		)
	}
	p.files, err = url.Parse(files)
	return p, err
}

// Program is a published program, in the cache.
type Program struct {
	Path   string `json:"-"`      // until the cache is closed
	From   string `json:"from"`   // the file's URL, or the image with its digest
	SHA256 string `json:"sha256"` // of the program
	Go     string `json:"go"`     // the Go version that built it
}

// Error says why a program can't be had as it was published.
type Error struct {
	Program string // "kube-apiserver v1.34.4 for linux/amd64"
	Err     error
}

// Error names each place that was asked, with what it answered.
func (e *Error) Error() string {
	return fmt.Sprintf(
		"%s can't be had as published: %s",
		e.Program,
		strings.ReplaceAll(e.Err.Error(), "\n", "; "),
	)
}

// Unwrap returns what the places answered.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what to do next.
func (e *Error) Hint() string {
	return "--build builds it from its source; --mirror URL (" + MirrorEnv + ") names another host that has it"
}

// record is the file beside a program in the cache that holds what is known of it.
const record = "release.json"

// Get returns the program of a component at a version, for this machine's architecture: from the cache, from the
// component's image, or else from its file. If none of them has it, the error is an *Error.
func (p *Publisher) Get(
	ctx context.Context,
	store *cache.Store,
	name, version string,
) (Program, error) {
	sum := sha256.Sum256(
		[]byte(
			strings.Join(
				[]string{"1", p.images.String(), p.files.String(), name, version, runtime.GOARCH},
				"\n",
			),
		),
	)
	key := hex.EncodeToString(sum[:16])
	out, err := p.get(ctx, store, key, name, version)
	if errors.Is(err, errChanged) {
		if err := store.Remove("release", key); err != nil {
			return Program{}, err
		}
		out, err = p.get(ctx, store, key, name, version)
	}
	return out, err
}

// errChanged means that a cached program has changed.
var errChanged = errors.New("a cached program was changed")

func (p *Publisher) get(
	ctx context.Context,
	store *cache.Store,
	key, name, version string,
) (out Program, err error) {
	dir, _, err := store.Do(ctx, "release", key, func(ctx context.Context, dir string) error {
		out, err := p.download(ctx, name, version, filepath.Join(dir, name))
		if err != nil && ctx.Err() == nil && !cache.NoRoom(err) { // a full disk says nothing about who publishes it
			return &Error{fmt.Sprintf("%s %s for linux/%s", name, version, runtime.GOARCH), err}
		}
		if err != nil {
			return err
		}
		raw, err := json.Marshal(out)
		return errors.Join(
			err,
			os.WriteFile(filepath.Join(dir, record), raw, 0o644),
			os.WriteFile(
				filepath.Join(dir, cache.NoteFile),
				[]byte(name+" "+version+" as published\n"),
				0o644,
			),
		)
	})
	if err != nil {
		return out, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, record))
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	out.Path = filepath.Join(dir, name)
	has, failed := sums.File(out.Path)
	if err := errors.Join(err, failed); err != nil || has != out.SHA256 {
		return out, fmt.Errorf(
			"%w: %s has SHA-256 %q, and %q was recorded (%v)",
			errChanged,
			out.Path,
			has,
			out.SHA256,
			err,
		)
	}
	return out, nil
}

// download writes a program to the file to, from the first place that has it. The error has what each place answered.
func (p *Publisher) download(
	ctx context.Context,
	name, version, to string,
) (out Program, err error) {
	p.greeted.Do(func() { p.greet(ctx) })
	row, _ := component.Of(name)
	var errs []error
	for _, place := range []struct {
		at string
		of func(ctx context.Context, at, name, to string) (from string, err error)
	}{{row.Image(version), p.fromImage}, {row.File(version, runtime.GOARCH), p.fromFile}} {
		if place.at == "" {
			continue
		}
		if out.From, err = place.of(ctx, place.at, name, to); err == nil {
			if out.SHA256, out.Go, err = verify(ctx, to, row, version); err == nil {
				return out, nil
			}
			err = fmt.Errorf("the program of %s: %s", out.From, strings.ReplaceAll(err.Error(), to, "it")) // to is renamed
		}
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return out, errors.New("nobody publishes a program of that name")
	}
	return out, errors.Join(errs...)
}

// verify returns the SHA-256 of a program and the Go version that built it. It refuses another program than the
// component's at that version.
func verify(
	ctx context.Context,
	file string,
	row component.Component,
	version string,
) (sum, goVersion string, err error) {
	p, err := build.Inspect(ctx, file, row.Name)
	if err != nil {
		return "", "", err
	}
	if row.Kubernetes && p.Version != version {
		return "", "", fmt.Errorf(
			"it says that it is %q %s (want %s)",
			p.Version,
			p.Doubt,
			version,
		)
	}
	sum, err = sums.File(file)
	return sum, p.Go, err
}

// greet asks all hosts at once whether they answer, so that those that don't cost the limit once and not each.
func (p *Publisher) greet(ctx context.Context) {
	var all sync.WaitGroup
	for _, at := range slices.Compact([]string{p.images.String(), p.files.String()}) {
		if r, err := http.NewRequestWithContext(ctx, http.MethodHead, at, nil); err == nil {
			all.Go(func() {
				if answer, err := p.asks.RoundTrip(r); err == nil { // who doesn't answer is remembered
					_ = answer.Body.Close()
				}
			})
		}
	}
	all.Wait()
}
