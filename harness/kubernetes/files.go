package kubernetes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/build/image"
)

// Places in a container where bundles lie as files, unless a registry has them.
const (
	storageDir  = "/bundles"        // the volume, with a folder for each run
	heldDir     = workDir + "/held" // in the pod itself, until the bundle is fetched
	fetchedFile = "fetched"         // whoever fetched the bundle from there makes it there
)

// keptIn returns the folder in which a run's pods leave their bundles; "" if a registry has them.
func keptIn(run string, storage string, held bool) string {
	switch {
	case storage != "":
		return path.Join(storageDir, run)
	case held:
		return heldDir
	}
	return ""
}

// bundleLayer returns the one archive in which a bundle travels, whichever way it goes.
func bundleLayer(dir string) (v1.Layer, error) {
	return layerOf(
		types.OCILayer,
		func(out *tar.Writer) error { return image.WriteDir(out, "", dir) },
	)
}

// archiveName is the file of a bundle. Its digest is in it: two pods of one trial don't write into one file.
func archiveName(trial, digest string) string {
	return trial + "-" + strings.ReplaceAll(digest, ":", "-") + ".tar.gz"
}

// keep leaves the archive of a sealed bundle in a folder, and then the report, which names the archive by its digest.
// Without the report there is no bundle. Either file is there whole, or not at all.
func keep(folder, bundleDir string, report *Report) error {
	layer, err := bundleLayer(bundleDir)
	if err != nil {
		return err
	}
	digest, err := layer.Digest()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	in, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := renameio.NewPendingFile(
		filepath.Join(folder, archiveName(report.Trial, digest.String())),
		renameio.WithPermissions(0o644),
	)
	if err != nil {
		return err
	}
	defer out.Cleanup() //nolint:errcheck // after CloseAtomicallyReplace nothing is left to do
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.CloseAtomicallyReplace(); err != nil {
		return err
	}
	whole := *report
	whole.Bundle = digest.String()
	raw, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(folder, report.Trial+".json"), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	report.Bundle = whole.Bundle
	return nil
}

// fetchedEvery is the time between two looks whether the bundle was fetched.
const fetchedEvery = time.Second

// untilFetched waits in the pod until the bundle was fetched, at most for a time.
func untilFetched(ctx context.Context, at string, limit time.Duration) error {
	over := time.After(limit)
	for {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return fmt.Errorf("nobody fetched the bundle within %s", limit)
		case <-time.After(fetchedEvery):
		}
	}
}

// files are bundles that lie as files where a pod runs.
type files struct {
	exec           Exec
	namespace, pod string
	folder         string
}

// reports returns the report of each trial that has a bundle there.
func (f files) reports(ctx context.Context) (map[string]Report, error) {
	var out bytes.Buffer
	script := `for f in "$0"/*.json; do [ ! -e "$f" ] || cat "$f" || exit 1; done`
	if err := f.exec(ctx, f.namespace, f.pod, []string{"sh", "-c", script, f.folder}, &out); err != nil {
		return nil, err
	}
	all := map[string]Report{}
	for in := json.NewDecoder(&out); ; {
		var r Report
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf(
				"reading the reports in %s of the pod %s: %w",
				f.folder,
				f.pod,
				err,
			)
		}
		all[r.Trial] = r
	}
}

// pull unpacks a bundle into a folder that doesn't exist yet. What doesn't have the digest is an error, also if all of it
// could be unpacked: a bundle whose last files are missing may be whole by its manifest.
func (f files) pull(ctx context.Context, trial, digest, to string) error {
	at := path.Join(f.folder, archiveName(trial, digest))
	in, out := io.Pipe()
	go func() {
		out.CloseWithError(f.exec(ctx, f.namespace, f.pod, []string{"cat", at}, out))
	}()
	defer in.Close()
	sum := sha256.New()
	raw := io.TeeReader(in, sum)
	err := gunzip(raw, to)
	if _, rest := io.Copy(io.Discard, raw); err == nil {
		err = rest
	}
	if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); err == nil && got != digest {
		err = fmt.Errorf("it is cut short or damaged: it has the digest %s, want %s", got, digest)
	}
	if err != nil {
		return fmt.Errorf("fetching %s from the pod %s: %w", at, f.pod, err)
	}
	return nil
}

// pullPartial unpacks what a trial had seen into a folder that doesn't exist yet.
func (f files) pullPartial(ctx context.Context, trial, to string) error {
	at := path.Join(f.folder, partialName(trial))
	var all bytes.Buffer
	if err := f.exec(ctx, f.namespace, f.pod, []string{"sh", "-c", `[ ! -e "$0" ] || cat "$0"`, at}, &all); err != nil {
		return err
	}
	if all.Len() == 0 {
		return fmt.Errorf("%s of the pod %s: %w", at, f.pod, errAbsent)
	}
	if err := gunzip(&all, to); err != nil {
		return fmt.Errorf("fetching %s from the pod %s: %w", at, f.pod, err)
	}
	return nil
}

func gunzip(in io.Reader, to string) error {
	out, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	return errors.Join(unpack(out, to, os.O_EXCL), out.Close())
}

// release lets a pod end that waits for its bundle to be fetched.
func (f files) release(ctx context.Context) error {
	return f.exec(
		ctx,
		f.namespace,
		f.pod,
		[]string{"touch", path.Join(f.folder, fetchedFile)},
		io.Discard,
	)
}

// discard removes the folder with all bundles.
func (f files) discard(ctx context.Context) error {
	return f.exec(ctx, f.namespace, f.pod, []string{"rm", "-r", "-f", f.folder}, io.Discard)
}
