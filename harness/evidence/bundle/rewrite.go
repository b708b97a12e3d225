package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/zstd"
)

// Redacted says that evidence was redacted, and what it was made from. A run has it in its index, and each of its
// bundles in its world.
type Redacted struct {
	From    string `json:"from"`    // SHA-256 of the original: of a run's index.json, or of a bundle's manifest.json
	Relapse string `json:"relapse"` // the version of relapse that redacted it
}

// String names the original, for sentences about what was made from it.
func (r Redacted) String() string {
	return fmt.Sprintf(
		"it is redacted: made by relapse %s from evidence with the SHA-256 %s",
		r.Relapse,
		r.From,
	)
}

// Change says how Rewrite changes a bundle.
type Change interface {
	// Keep reports whether an artifact stays. One that doesn't is gone from the manifest, too.
	Keep(a Artifact) bool
	// Word returns what stands for a word or a sentence of the manifest.
	Word(text string) string
	// Document returns the new content of the timeline, the plan or the world.
	Document(name string, content []byte) ([]byte, error)
	// Artifact copies an artifact's content, unpacked, from r to w.
	Artifact(a Artifact, w io.Writer, r io.Reader) error
}

// Rewrite writes a changed copy of the bundle to a new directory and seals it. What is written is redacted like
// everything that a Writer takes, by this version's rules. An artifact whose file is gone stays listed, and missing.
func (s *Sealed) Rewrite(to string, c Change) error {
	if err := os.MkdirAll(filepath.Join(to, artifactsDir), 0o755); err != nil {
		return fmt.Errorf("creating bundle %s: %w", to, err)
	}
	m := manifest{Schema: ManifestSchema, Files: []file{}, Artifacts: []Artifact{}}
	for _, name := range []string{TimelineFile, PlanFile, WorldFile} {
		was, err := readOptional(s.dir, name)
		if err != nil {
			return err
		}
		if was == nil {
			continue
		}
		is, err := c.Document(name, was)
		if err != nil {
			return fmt.Errorf("rewriting %s: %w", name, err)
		}
		size, sum, err := writeNew(filepath.Join(to, name), func(w io.Writer) error {
			return redactAll(w, bytes.NewReader(is))
		})
		if err != nil {
			return fmt.Errorf("rewriting %s: %w", name, err)
		}
		m.Files = append(m.Files, file{name, size, sum})
	}
	for _, a := range s.artifacts {
		if !c.Keep(a) {
			continue
		}
		is, err := s.rewrite(a, to, c)
		if err != nil {
			return fmt.Errorf("rewriting %s: %w", a.Path, err)
		}
		m.Artifacts = append(m.Artifacts, is)
	}
	slices.SortStableFunc(m.Artifacts, func(a, b Artifact) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Path, b.Path))
	})
	b, err := encodeManifest(m)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", ManifestFile, err)
	}
	return renameio.WriteFile(filepath.Join(to, ManifestFile), b, 0o644)
}

// rewrite writes an artifact's changed content to the bundle in to, and returns how the manifest there lists it.
func (s *Sealed) rewrite(a Artifact, to string, c Change) (Artifact, error) {
	is := a
	is.Arm, is.Node, is.Component, is.Mark = c.Word(a.Arm), c.Word(a.Node), c.Word(a.Component), c.Word(a.Mark)
	is.Error = c.Word(a.Error)
	if a.Coverage != nil {
		covers := *a.Coverage
		covers.Gaps = slices.Clone(covers.Gaps)
		for i := range covers.Gaps {
			covers.Gaps[i].Reason = c.Word(covers.Gaps[i].Reason)
		}
		is.Coverage = &covers
	}
	if a.Path == "" {
		return is, nil
	}
	is.Path = shortPath(a)
	if a.Missing {
		return is, nil
	}
	r, err := openArtifact(s.dir, a, 0, false)
	if err != nil {
		return is, err
	}
	defer r.Close()
	is.Size, is.SHA256, err = writeNew(filepath.Join(to, filepath.FromSlash(is.Path)), func(w io.Writer) error {
		if !strings.HasSuffix(is.Path, Packed) {
			return changed(w, a, r, c)
		}
		pack, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		return errors.Join(changed(pack, a, r, c), pack.Close())
	})
	return is, err
}

// changed copies an artifact's content to w, first changed and then redacted.
func changed(w io.Writer, a Artifact, r io.Reader, c Change) error {
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := c.Artifact(a, in, r)
		in.CloseWithError(err)
		done <- err
	}()
	err := redactAll(w, out)
	out.CloseWithError(err) // so that Artifact ends, too
	return cmp.Or(err, <-done)
}

// shortPath returns an artifact's path without the names that a Writer puts into it for people: the number, the kind
// and the extension.
func shortPath(a Artifact) string {
	name := filepath.Base(a.Path)
	number, _, _ := strings.Cut(name, "-")
	ext := filepath.Ext(name)
	if ext == Packed || ext == ".gz" {
		ext = filepath.Ext(strings.TrimSuffix(name, ext)) + ext
	}
	return artifactsDir + "/" + number + "-" + string(a.Kind) + ext
}

// writeNew writes a new file and returns its size and its SHA-256.
func writeNew(path string, write func(io.Writer) error) (int64, string, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, "", err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return 0, "", err
	}
	return hashFile(path)
}
