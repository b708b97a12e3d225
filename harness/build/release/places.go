package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// fromImage takes a program out of the image at a tag. It returns the image's name with the digest that the tag stands
// for, which is what cosign verifies. Logins are those of the container engine's client.
func (p *Publisher) fromImage(
	ctx context.Context,
	at, program, to string,
) (from string, err error) {
	var options []name.Option
	if p.images.Scheme == "http" {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(strings.TrimSuffix(p.images.Host+p.images.Path, "/")+"/"+at, options...)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("getting image %s: %w", tag, err)
		}
	}()
	want := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	found, err := remote.Get(tag, remote.WithContext(ctx), remote.WithTransport(p.asks), remote.WithPlatform(want),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	if err != nil {
		return "", err
	}
	img, err := found.Image()
	if err != nil {
		return "", err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return "", err
	}
	if has := config.Platform(); has == nil || has.OS != want.OS || has.Architecture != want.Architecture {
		return "", fmt.Errorf("it is for %s: want %s", has, want)
	}
	// The whole of each layer is read, so that its digest is verified.
	archive := to + ".image"
	defer os.Remove(archive) // in the scratch folder of a cache, which is removed if this fails
	if err := tarball.WriteToFile(archive, tag, img); err != nil {
		return "", err
	}
	if _, err := image.Take(ctx, archive, to, "/usr/local/bin/"+program); err != nil {
		return "", err
	}
	return tag.Name() + "@" + found.Digest.String(), nil
}

// sha256Sum matches a SHA-256 in hex.
var sha256Sum = regexp.MustCompile(`^[0-9a-f]{64}\b`)

// fromFile downloads a program and compares it with the SHA-256 that is published beside it. It returns its URL.
func (p *Publisher) fromFile(ctx context.Context, at, _, to string) (from string, err error) {
	from = p.files.JoinPath(at).String()
	var said strings.Builder
	if err := p.read(ctx, from+".sha256", &said); err != nil {
		return "", err
	}
	want := sha256Sum.FindString(said.String())
	if want == "" {
		return "", fmt.Errorf("getting %s.sha256: it has no SHA-256: %.80q", from, said.String())
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if err := errors.Join(p.read(ctx, from, io.MultiWriter(f, sum)), f.Close()); err != nil {
		return "", err
	}
	if has := hex.EncodeToString(sum.Sum(nil)); has != want {
		return "", fmt.Errorf(
			"getting %s: it has SHA-256 %s, and %s.sha256 says %s",
			from,
			has,
			from,
			want,
		)
	}
	return from, nil
}

// read writes to w what is at a URL.
func (p *Publisher) read(ctx context.Context, at string, w io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err // it names the URL
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("getting %s: it answers %s", at, answer.Status)
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("getting %s: %w", at, err)
	}
	return nil
}
