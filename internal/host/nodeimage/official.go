package nodeimage

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// pin is an image by digest, and where the digest was read.
type pin struct{ ref, source string }

// officialImages has one image per minor, as the release notes of kind v0.33.0 list them; v1.37.0 is also the default
// in kind's pkg/apis/config/defaults. Digests of other releases of kind aren't mixed in: a node image goes with one
// release of kind.
var officialImages = map[string]pin{
	"v1.37": {
		"kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5",
		"kind v0.33.0, default image",
	},
	"v1.36": {
		"kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed",
		"kind v0.33.0, release notes",
	},
	"v1.35": {
		"kindest/node:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0",
		"kind v0.33.0, release notes",
	},
	"v1.34": {
		"kindest/node:v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d",
		"kind v0.33.0, release notes",
	},
}

const (
	// answerTime is how long a registry may take to name the image before the
	// engine's pull is given up.
	answerTime = 10 * time.Second
	// pullTime bounds a pull whose registry did answer.
	pullTime = 15 * time.Minute
)

// UnavailableError says why an image can't be had. In mode Auto, an image is then assembled instead.
type UnavailableError struct {
	ref string // or the minor, where no image is known for it
	err error
}

// Error names the image and the cause.
func (e *UnavailableError) Error() string { return fmt.Sprintf("node image %s: %v", e.ref, e.err) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.err }

// Official returns the official image of a minor ("v1.34"), and pulls it if it isn't in the engine. The image is pinned
// by digest, so a local tag of the same name doesn't count. False comes with an *UnavailableError, or with another
// error where something else went wrong.
func (s *Store) Official(ctx context.Context, minor string) (Image, bool, error) {
	minor, err := minorOf(minor)
	if err != nil {
		return Image{}, false, err
	}
	p, ok := s.official[minor]
	if !ok {
		return Image{}, false, &UnavailableError{ref: minor,
			err: errors.New("no official image is pinned for this minor")}
	}
	img, err := s.have(ctx, p.ref)
	if err != nil {
		return Image{}, false, err
	}
	if got, err := minorOf(img.Version); err != nil || got != minor {
		return Image{}, false, fmt.Errorf(
			"node image %s holds Kubernetes %s, wanted %s",
			p.ref,
			img.Version,
			minor,
		)
	}
	img.Origin = OriginOfficial
	img.What = append([]string{fmt.Sprintf("official image %s (digest from %s)", p.ref, p.source)}, img.What...)
	return img, true, nil
}

// Given returns the image that the user named, and pulls it if it isn't in the engine. The image must be a node image:
// /kind/version is read from it.
func (s *Store) Given(ctx context.Context, ref string) (Image, error) {
	img, err := s.have(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	img.Origin = OriginGiven
	img.What = append([]string{"image given by the user: " + ref}, img.What...)
	return img, nil
}

// have returns the image with the reference ref, and pulls it if it isn't in the engine.
func (s *Store) have(ctx context.Context, ref string) (Image, error) {
	id, cached, err := s.imageID(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	if !cached {
		if err := s.pull(ctx, ref); err != nil {
			return Image{}, err
		}
		var there bool
		if id, there, err = s.imageID(ctx, ref); err != nil {
			return Image{}, err
		} else if !there {
			return Image{}, fmt.Errorf(
				"node image %s: the engine pulled it and doesn't know it",
				ref,
			)
		}
	}
	version, err := s.kindVersion(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	return Image{
		Ref:     ref,
		ID:      id,
		Version: version,
		Cached:  cached,
		What: []string{
			"Kubernetes " + version + ", by the image's /kind/version",
			"engine image " + id,
		},
	}, nil
}

// imageID returns the engine's id of an image, or false if the image isn't there.
func (s *Store) imageID(ctx context.Context, ref string) (string, bool, error) {
	out, err := s.engine.Output(ctx, "image", "inspect", "--format", "{{.Id}}", ref)
	if err == nil {
		id := strings.TrimSpace(string(out))
		return id, id != "", nil
	}
	if isNotFound(err) {
		return "", false, nil
	}
	return "", false, fmt.Errorf("looking for image %s: %w", ref, err)
}

// isNotFound reports whether an error is the engine's "there is none".
func isNotFound(err error) bool {
	msg := strings.ToLower(err.Error())
	return strings.Contains(msg, "no such image") || strings.Contains(msg, "no such container") ||
		strings.Contains(msg, "not found") || strings.Contains(msg, "no such object")
}

// errSilent is the cause of the cancelling of a pull to which the registry gave no answer.
var errSilent = fmt.Errorf("no answer from the registry within %s", answerTime)

// pull pulls ref. The engine prints its first line once the registry has named the image. So a host without a registry
// is known after answerTime, and not after the engine's own minutes of retries.
func (s *Store) pull(ctx context.Context, ref string) error {
	s.say("pulling " + ref)
	bounded, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	bounded, giveUp := context.WithCancelCause(bounded)
	defer giveUp(nil)
	silence := time.AfterFunc(answerTime, func() { giveUp(errSilent) })
	defer silence.Stop()
	err := s.engine.Stream(bounded, nil, &firstWrite{do: func() { silence.Stop() }}, "pull", ref)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case context.Cause(bounded) == errSilent:
		return &UnavailableError{ref: ref, err: errSilent}
	default:
		return &UnavailableError{ref: ref, err: err}
	}
}

// firstWrite calls do at the first write and drops what is written.
type firstWrite struct {
	once sync.Once
	do   func()
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(w.do)
	return len(p), nil
}

// kindVersion reads /kind/version out of an image, without running it.
func (s *Store) kindVersion(ctx context.Context, ref string) (_ string, err error) {
	unlock, err := s.lock(ctx, inspectKey)
	if err != nil {
		return "", err
	}
	defer unlock()
	id, err := s.create(ctx, inspectKey, ref, "/kind/version")
	if err != nil {
		return "", fmt.Errorf("reading /kind/version of %s: %w", ref, err)
	}
	defer func() { err = errors.Join(err, s.removeContainer(ctx, id)) }()
	archive, err := s.engine.Output(ctx, "cp", id+":/kind/version", "-")
	if err != nil {
		return "", fmt.Errorf(
			"reading /kind/version of %s (is it a kind node image?): %w",
			ref,
			err,
		)
	}
	files := tar.NewReader(bytes.NewReader(archive))
	if _, err := files.Next(); err != nil {
		return "", fmt.Errorf("reading /kind/version of %s: %w", ref, err)
	}
	content, err := io.ReadAll(files)
	if err != nil {
		return "", fmt.Errorf("reading /kind/version of %s: %w", ref, err)
	}
	version := strings.TrimSpace(string(content))
	if !exactVersion.MatchString(version) {
		return "", fmt.Errorf("reading /kind/version of %s: %q isn't a version", ref, version)
	}
	return version, nil
}
