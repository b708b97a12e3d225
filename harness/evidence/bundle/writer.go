package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/event"
)

// The files of a bundle that are no artifacts.
const (
	ManifestFile = "manifest.json"
	TimelineFile = "timeline.jsonl"
	PlanFile     = "plan.json"
	WorldFile    = "world.json"
	artifactsDir = "artifacts"
)

// ErrSealed is the error of writing to a sealed bundle or to a closed stream.
var ErrSealed = errors.New("it is sealed or closed")

// Writer is the only way into a bundle. Everything that goes through it is redacted. It is safe for concurrent use.
type Writer struct {
	dir string

	busy   sync.WaitGroup // snapshots that are being written, which Seal waits for
	memory memory

	mu       sync.Mutex
	seq      int
	entries  []*entry
	events   []event.Event
	timeline *os.File
	world    World
	sealed   bool
	err      error // the first loss that no caller was told about; Seal returns it
}

// entry is an artifact, and the stream behind it while one is open.
type entry struct {
	artifact Artifact
	stream   *Stream
}

// Create makes a new bundle in dir, which must be absent or empty.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(filepath.Join(dir), 0o755); err != nil {
		return nil, fmt.Errorf("creating bundle %s: %w", dir, err)
	}
	have, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("creating bundle %s: %w", dir, err)
	}
	if len(have) > 0 {
		return nil, fmt.Errorf(
			"creating bundle %s: the directory is not empty (it holds %s)",
			dir,
			have[0].Name(),
		)
	}
	if err := os.Mkdir(filepath.Join(dir, artifactsDir), 0o755); err != nil {
		return nil, fmt.Errorf("creating bundle %s: %w", dir, err)
	}
	f, err := os.OpenFile(
		filepath.Join(dir, TimelineFile),
		os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY,
		0o644,
	)
	if err != nil {
		return nil, fmt.Errorf("creating bundle %s: %w", dir, err)
	}
	return &Writer{dir: dir, timeline: f}, nil
}

// Dir returns the bundle's directory.
func (w *Writer) Dir() string { return w.dir }

// Write records one snapshot, read from r to its end, whole or not at all. A failure, also one of r, is returned and
// leaves no file; the caller may record it with Fail. A zero m.Time becomes now. ext is the file's extension without
// the dot.
func (w *Writer) Write(m Meta, ext string, r io.Reader) (Artifact, error) {
	m = w.meta(m)
	path, err := w.begin(m, ext)
	if err != nil {
		return Artifact{}, err
	}
	defer w.busy.Done()
	a, err := w.writeFile(m, path, r)
	if err != nil {
		return Artifact{}, fmt.Errorf("writing %s: %w", path, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = append(w.entries, &entry{artifact: a})
	return a, nil
}

// WriteJSON records v as an indented JSON snapshot.
func (w *Writer) WriteJSON(m Meta, v any) (Artifact, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return Artifact{}, fmt.Errorf("encoding %s for the bundle: %w", m.Kind, err)
	}
	return w.Write(m, "json", bytes.NewReader(append(b, '\n')))
}

// Fail records a capture that failed: an artifact without a file, with the error's text.
func (w *Writer) Fail(m Meta, err error) Artifact {
	text := "unknown error"
	if err != nil {
		text = redactString(err.Error())
	}
	a := Artifact{Meta: w.meta(m), Error: text}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed {
		return a // a sealed bundle takes no more records
	}
	w.entries = append(w.entries, &entry{artifact: a})
	return a
}

// Stream opens an artifact that grows line by line, compressed if ext ends in Packed. A zero m.Time becomes now.
func (w *Writer) Stream(m Meta, ext string) (*Stream, error) {
	m = w.meta(m)
	path, err := w.begin(m, ext)
	if err != nil {
		return nil, err
	}
	defer w.busy.Done()
	f, err := os.OpenFile(
		filepath.Join(w.dir, filepath.FromSlash(path)),
		os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY,
		0o644,
	)
	if err != nil {
		return nil, fmt.Errorf("opening stream %s: %w", path, err)
	}
	s := &Stream{file: f, sum: sha256.New(), artifact: Artifact{Meta: m, Path: path}}
	if strings.HasSuffix(ext, Packed) {
		if err := s.packed(); err != nil {
			f.Close()
			return nil, fmt.Errorf("opening stream %s: %w", path, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = append(w.entries, &entry{stream: s})
	return s, nil
}

// meta returns m with its time filled in and its words redacted, because they may come from a server.
func (w *Writer) meta(m Meta) Meta {
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	m.Time = m.Time.Round(0).UTC()
	m.Arm, m.Node, m.Component = redactString(m.Arm), redactString(m.Node), redactString(m.Component)
	m.Mark = redactString(m.Mark)
	return m
}

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// begin returns a new path for an artifact and counts the artifact as busy. The number in front makes the name unique;
// the rest is for people.
func (w *Writer) begin(m Meta, ext string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed {
		return "", fmt.Errorf("recording %s: %w", m.Kind, ErrSealed)
	}
	w.seq++
	w.busy.Add(1)
	name := fmt.Sprintf("%05d", w.seq)
	for _, part := range []string{string(m.Kind), m.Arm, m.Node, m.Component, m.Phase} {
		if part = unsafeName.ReplaceAllString(part, "_"); part != "" && len(name)+len(part) < 180 {
			name += "-" + part
		}
	}
	if ext = unsafeName.ReplaceAllString(ext, "_"); ext != "" {
		name += "." + ext
	}
	return artifactsDir + "/" + name, nil
}

// writeFile copies r, redacted, to a temporary file and renames that file to path when it is complete.
func (w *Writer) writeFile(m Meta, path string, r io.Reader) (Artifact, error) {
	f, err := renameio.NewPendingFile(
		filepath.Join(w.dir, filepath.FromSlash(path)),
		renameio.WithPermissions(0o644),
		renameio.WithTempDir(filepath.Join(w.dir, artifactsDir)),
	)
	if err != nil {
		return Artifact{}, err
	}
	defer f.Cleanup()
	sum := sha256.New()
	out := &counter{w: io.MultiWriter(f, sum)}
	if err := redactAll(out, r); err != nil {
		return Artifact{}, err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return Artifact{}, err
	}
	return Artifact{
		Meta:   m,
		Path:   path,
		Size:   out.n,
		SHA256: hex.EncodeToString(sum.Sum(nil)),
	}, nil
}

// counter counts the bytes that pass.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (w *Writer) recordFailure(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Seal waits for snapshots under way, closes the streams and the timeline, and writes the manifest last. Writing
// afterwards is an error. If anything could not be recorded there is no manifest, and the bundle stays unsealed.
func (w *Writer) Seal() error {
	w.mu.Lock()
	if w.sealed {
		w.mu.Unlock()
		return fmt.Errorf("sealing bundle %s: %w", w.dir, ErrSealed)
	}
	w.sealed = true
	w.mu.Unlock()
	w.busy.Wait()

	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.entries {
		if e.stream != nil {
			if err := e.stream.Close(); err != nil {
				w.recordFailure(err)
			}
			e.artifact = e.stream.snapshot()
			e.stream = nil
		}
	}
	if err := w.timeline.Close(); err != nil {
		w.recordFailure(fmt.Errorf("closing %s: %w", TimelineFile, err))
	}
	if w.err != nil {
		return fmt.Errorf("sealing bundle %s: %w", w.dir, w.err)
	}
	return w.writeManifest()
}

// artifacts returns a copy of all artifacts so far, in order of time.
func (w *Writer) artifacts() []Artifact {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Artifact, 0, len(w.entries))
	for _, e := range w.entries {
		if e.stream != nil {
			out = append(out, e.stream.snapshot())
		} else {
			out = append(out, e.artifact)
		}
	}
	slices.SortStableFunc(out, func(a, b Artifact) int { return a.Time.Compare(b.Time) })
	return out
}
