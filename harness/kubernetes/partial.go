package kubernetes

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/build/image"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// A recorder delivers what its trial has seen so far each time that a phase begins, beside the bundle, which comes at the
// end as a whole. If the pod dies late, that much can be looked at. Nothing of it is ever judged: without its bundle a
// trial is lost.

// Partial says what was delivered of a trial that wasn't over. It lies beside the files.
type Partial struct {
	Trial string    `json:"trial"`
	Pod   string    `json:"pod"`   // the one that made the trial
	Phase string    `json:"phase"` // it had just begun
	Time  time.Time `json:"time"`
}

// partialFile is the name of a Partial among the files.
const partialFile = "partial.json"

// PodEnv is a recorder's environment variable with the name of its pod.
const PodEnv = "RELAPSE_POD"

// partialFor is how long one delivery may take: the next one, or the bundle, has all of it again.
const partialFor = time.Minute

// partialTag is the tag of what a trial has seen so far.
func partialTag(run, trial string) string { return bundleTag(run, trial) + "-partial" }

// partialName is the file with what a trial has seen so far, on a volume.
func partialName(trial string) string { return trial + "-partial.tar.gz" }

// whileItGoesOn delivers what a trial has seen so far until end is called. at is the folder of the trial's bundle. A
// delivery that fails is no failure of the trial.
func (r Recorder) whileItGoesOn(ctx context.Context, trial, at string) (end func()) {
	if r.Hold > 0 { // what waits in a pod ends with it
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	begun := make(chan string, 1)
	detach := r.Events.Attach(event.SinkFunc(func(e event.Event) {
		if e.Type != event.Phase || e.Message == bundle.EndPhase { // the bundle is about to follow
			return
		}
		select {
		case <-begun: // only the latest phase is delivered
		default:
		}
		begun <- e.Message
	}))
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := r.deliverPhases(ctx, trial, at, begun); err != nil {
			r.Aside.Say(event.Warning, "what the trial sees isn't delivered before its end: "+err.Error())
		}
	}()
	return func() {
		detach()
		cancel()
		<-over
	}
}

func (r Recorder) deliverPhases(ctx context.Context, trial, at string, begun <-chan string) (err error) {
	tmp, err := os.MkdirTemp("", "partial-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	s := &seen{recorder: r, dir: at, tmp: tmp, had: map[string]version{}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case phase := <-begun:
			r.Events.Settle() // the bundle's timeline comes after us among the sinks, and has the phase then
			about := Partial{Trial: trial, Pod: r.Pod, Phase: phase, Time: time.Now().UTC()}
			if err := s.deliver(ctx, about); err != nil && ctx.Err() == nil {
				r.Aside.Say(event.Note, fmt.Sprintf("what the trial saw before its phase %s isn't delivered: %v", phase, err))
			}
		}
	}
}

// seen is what a trial has seen, as far as it was delivered.
type seen struct {
	recorder Recorder
	dir      string // of the bundle, which grows
	tmp      string // for layers
	had      map[string]version
	layers   []v1.Layer
}

// version tells whether a file of a growing bundle has changed: its streams grow, and its other files are replaced.
type version struct {
	size    int64
	changed time.Time
}

// deliver delivers the files as they are now. To a registry goes a layer with those that are new, and then a manifest of
// all layers so far, of which a later one replaces the files of those before. On a volume, it is one archive.
func (s *seen) deliver(ctx context.Context, about Partial) error {
	ctx, cancel := context.WithTimeout(ctx, partialFor)
	defer cancel()
	now, err := s.look()
	if err != nil {
		return err
	}
	if s.recorder.Folder != "" {
		return s.keep(about, now)
	}
	var changed []string
	for name, v := range now {
		if s.had[name] != v {
			changed = append(changed, name)
		}
	}
	file := filepath.Join(s.tmp, fmt.Sprintf("%d.tar.gz", len(s.layers)))
	layer, err := s.layer(file, about, changed)
	if err != nil {
		return errors.Join(err, os.RemoveAll(file))
	}
	layers := append(slices.Clone(s.layers), layer)
	if err := s.recorder.Registry.pushPartial(ctx, partialTag(s.recorder.Run, about.Trial), layers); err != nil {
		return errors.Join(err, os.RemoveAll(file))
	}
	s.layers, s.had = layers, now
	return nil
}

// look returns the files of the bundle. Those that are still being written have a name that begins with a dot.
func (s *seen) look() (map[string]version, error) {
	now := map[string]version{}
	err := filepath.WalkDir(s.dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // it was replaced meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.dir, at)
		now[filepath.ToSlash(name)] = version{info.Size(), info.ModTime()}
		return err
	})
	return now, err
}

// layer makes a layer of some files, which stays on disk: a file that grows has other bytes the next time.
func (s *seen) layer(at string, about Partial, names []string) (v1.Layer, error) {
	file, err := os.Create(at)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.write(file, about, names), file.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(at, tarball.WithMediaType(types.OCILayer))
}

// keep leaves all files as one archive on the volume. It is there whole, or the one before it is.
func (s *seen) keep(about Partial, now map[string]version) error {
	if err := os.MkdirAll(s.recorder.Folder, 0o755); err != nil {
		return err
	}
	out, err := renameio.NewPendingFile(
		filepath.Join(s.recorder.Folder, partialName(about.Trial)),
		renameio.WithPermissions(0o644),
	)
	if err != nil {
		return err
	}
	defer out.Cleanup() //nolint:errcheck // after CloseAtomicallyReplace nothing is left to do
	var all []string
	for name := range now {
		all = append(all, name)
	}
	if err := s.write(out, about, all); err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}

// write writes an archive of some files as they are now, and of what it is about.
func (s *seen) write(to io.Writer, about Partial, names []string) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(z)
	raw, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if err := image.WriteEntry(out, partialFile, 0o644, raw); err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := writeGrowing(out, name, filepath.Join(s.dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), z.Close())
}

// writeGrowing writes as much of a file as there is, though more is added to it meanwhile.
func writeGrowing(out *tar.Writer, name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size()})
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}
