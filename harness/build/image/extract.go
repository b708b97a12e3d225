// Package image extracts a program from a container image, and makes an image from a program.
package image

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// Engine runs a container engine's client.
type Engine interface {
	// Output runs the client and returns its standard output.
	Output(ctx context.Context, args ...string) ([]byte, error)
	// Stream runs the client with in and out, either of which may be nil. Its error contains the client's message.
	Stream(ctx context.Context, in io.Reader, out io.Writer, args ...string) error
}

// KubeletPlace is the path of the kubelet in a node image.
const KubeletPlace = "/usr/bin/kubelet"

// Extracted is a program that was taken out of an image.
type Extracted struct {
	Path string `json:"path"` // path on this machine, until the cache is closed
	At   string `json:"at"`   // path in the image
	ID   string `json:"id"`   // the image's ID, sha256:…
	How  string `json:"how"`  // where the image came from, in words
}

// Extract takes a program out of an image. image is an archive of `docker save`, or a reference, which is pulled if the
// engine doesn't have it. Extract looks only in places; if there are none, it looks where images usually have the
// program, and at what the image starts. eng may be nil for an archive.
func Extract(ctx context.Context, store *cache.Store, eng Engine, image, program string,
	places ...string) (Extracted, error) {
	src, err := openImage(ctx, eng, image)
	if err != nil {
		return Extracted{}, fmt.Errorf("opening image %s: %w", image, err)
	}
	if len(places) == 0 {
		places = usual(program, src.start)
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{"1", src.id, program}, places...), "\n")))
	dir, _, err := store.Do(ctx, "program", hex.EncodeToString(sum[:16]), func(ctx context.Context, dir string) error {
		at, err := src.take(ctx, places, filepath.Join(dir, program))
		if err != nil {
			return err
		}
		note := fmt.Sprintf("%s of image %s\n", at, image)
		return errors.Join(os.WriteFile(filepath.Join(dir, "at"), []byte(at), 0o644),
			os.WriteFile(filepath.Join(dir, cache.NoteFile), []byte(note), 0o644))
	})
	if err != nil {
		return Extracted{}, fmt.Errorf("taking %s out of image %s: %w", program, image, err)
	}
	at, err := os.ReadFile(filepath.Join(dir, "at"))
	if err != nil {
		return Extracted{}, fmt.Errorf("taking %s out of image %s: %w", program, image, err)
	}
	return Extracted{
		Path: filepath.Join(dir, program),
		At:   string(at),
		ID:   src.id,
		How:  src.how,
	}, nil
}

// Take writes to a file the first of places that an archive of an image has, and returns its path in the image.
func Take(ctx context.Context, archive, to string, places ...string) (at string, err error) {
	src, err := openArchive(archive)
	if err != nil {
		return "", err
	}
	return src.take(ctx, places, to)
}

// usual returns the paths where images usually have a program: what the image starts, if it has the program's name; the
// directories of Kubernetes, its distributions and ko; and finally whatever the image starts.
func usual(program string, start []string) []string {
	var out []string
	add := func(at string) {
		if path.IsAbs(at) && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	for _, s := range start {
		if path.Base(s) == program {
			add(s)
		}
	}
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin", "/", "/ko-app", "/app"} {
		add(path.Join(dir, program))
	}
	if len(start) > 0 {
		add(start[0])
	}
	return out
}

// source is an opened image.
type source struct {
	id, how string
	start   []string // its entry point and command
	// take writes to a file the first of places that exists, and returns its path in the image.
	take func(ctx context.Context, places []string, to string) (at string, err error)
}

func openImage(ctx context.Context, eng Engine, image string) (source, error) {
	if info, err := os.Stat(image); err == nil && info.Mode().IsRegular() {
		return openArchive(image)
	}
	if eng == nil {
		return source{}, errors.New("it is no archive, and there is no engine to ask")
	}
	return openReference(ctx, eng, image)
}

func openArchive(file string) (source, error) {
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return source{}, fmt.Errorf(
			"reading the archive (want one image, as `docker save` writes it): %w",
			err,
		)
	}
	id, err := img.ConfigName()
	if err != nil {
		return source{}, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return source{}, err
	}
	return source{
		id:    id.String(),
		how:   "from the archive " + filepath.Base(file),
		start: slices.Concat(config.Config.Entrypoint, config.Config.Cmd),
		take:  func(_ context.Context, places []string, to string) (string, error) { return takeFlat(img, places, to) },
	}, nil
}

func openReference(ctx context.Context, eng Engine, ref string) (source, error) {
	s := source{how: "which the engine had"}
	out, err := eng.Output(ctx, "image", "inspect", "--format", "{{json .}}", ref)
	if err != nil {
		if _, pulling := eng.Output(ctx, "pull", "--quiet", ref); pulling != nil {
			return s, fmt.Errorf(
				"it is no archive and the engine doesn't have it, and pulling it: %w",
				pulling,
			)
		}
		s.how = "which was pulled"
		if out, err = eng.Output(ctx, "image", "inspect", "--format", "{{json .}}", ref); err != nil {
			return s, err
		}
	}
	var info struct {
		ID     string `json:"Id"`
		Config struct{ Entrypoint, Cmd []string }
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return s, fmt.Errorf("reading what the engine says of it: %w", err)
	}
	s.id, s.start = info.ID, slices.Concat(info.Config.Entrypoint, info.Config.Cmd)
	s.take = func(ctx context.Context, places []string, to string) (string, error) {
		return takeCopied(ctx, eng, info.ID, places, to)
	}
	return s, nil
}

// takeCopied copies the program from a container of the image, which is never started.
func takeCopied(
	ctx context.Context,
	eng Engine,
	id string,
	places []string,
	to string,
) (at string, err error) {
	name := "relapse-program-" + strings.ToLower(rand.Text()[:10])
	if _, err := eng.Output(ctx, "create", "--name", name, "--network", "none", id, "/never-started"); err != nil {
		return "", err
	}
	defer func() {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, gone := eng.Output(undo, "rm", "--force", "--volumes", name)
		err = errors.Join(err, gone)
	}()
	for _, at := range places {
		found, err := copyOut(ctx, eng, name+":"+at, to)
		if err != nil || found {
			return at, err
		}
	}
	return "", nowhere(places)
}

// copyOut copies one file out of a container, from the tar stream of the engine's cp command.
func copyOut(ctx context.Context, eng Engine, from, to string) (found bool, err error) {
	r, w := io.Pipe()
	copied := make(chan error, 1)
	go func() {
		err := eng.Stream(ctx, nil, w, "cp", "--follow-link", from, "-")
		copied <- err
		w.CloseWithError(cmp.Or(err, io.EOF))
	}()
	defer func() {
		_, _ = io.Copy(io.Discard, r) // the rest of the stream isn't needed
		r.Close()
		failed := <-copied
		if failed != nil && (strings.Contains(failed.Error(), "Could not find the file") ||
			strings.Contains(failed.Error(), "No such")) {
			found, err = false, nil
			return
		}
		err = cmp.Or(failed, err)
	}()
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if h.Typeflag == tar.TypeReg {
			return true, writeProgram(to, in)
		}
	}
}

func nowhere(places []string) error {
	return fmt.Errorf("it has none: want it at one of %s", strings.Join(places, ", "))
}

// writeProgram writes an executable file. An empty program is an error.
func writeProgram(to string, r io.Reader) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, r)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if n == 0 {
		return errors.New("it is empty")
	}
	return nil
}
