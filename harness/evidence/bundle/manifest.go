package bundle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/evidence/stored"
)

// ManifestSchema is the value of a manifest's schema field.
const ManifestSchema = "relapse.dev/bundle/v1alpha1"

// manifest lists every file of a bundle except the manifest itself. Sum is the SHA-256 of the manifest's JSON with an
// empty Sum, so that a changed manifest is noticed, too.
type manifest struct {
	Schema    string     `json:"schema"`
	Sum       string     `json:"sum"`
	Files     []file     `json:"files"` // timeline, plan, world
	Artifacts []Artifact `json:"artifacts"`
}

type file struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// DamageError says that a directory isn't a complete, unchanged, sealed bundle. A damaged bundle gets no verdict.
type DamageError struct {
	Dir      string
	Problems []string
}

// Error returns one message with all problems.
func (e *DamageError) Error() string {
	return fmt.Sprintf("bundle %s is damaged: %s", e.Dir, strings.Join(e.Problems, "; "))
}

// encodeManifest returns m as JSON in its one canonical form, with Sum filled in.
func encodeManifest(m manifest) ([]byte, error) {
	m.Sum = ""
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	m.Sum = hex.EncodeToString(sum[:])
	b, err = json.MarshalIndent(m, "", " ")
	return append(b, '\n'), err
}

// writeManifest writes the manifest, which is the last step of Seal.
func (w *Writer) writeManifest() error {
	m := manifest{Schema: ManifestSchema, Files: []file{}, Artifacts: []Artifact{}}
	for _, name := range []string{TimelineFile, PlanFile, WorldFile} {
		size, sum, err := hashFile(filepath.Join(w.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a trial that failed early may have neither plan nor world
		}
		if err != nil {
			return fmt.Errorf("sealing bundle %s: %w", w.dir, err)
		}
		m.Files = append(m.Files, file{name, size, sum})
	}
	for _, e := range w.entries {
		m.Artifacts = append(m.Artifacts, e.artifact)
	}
	slices.SortStableFunc(m.Artifacts, func(a, b Artifact) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Path, b.Path))
	})
	b, err := encodeManifest(m)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", ManifestFile, err)
	}
	if err := renameio.WriteFile(filepath.Join(w.dir, ManifestFile), b, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", ManifestFile, err)
	}
	return nil
}

func hashFile(path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return 0, "", fmt.Errorf("reading %s: %w", path, err)
	}
	return n, hex.EncodeToString(h.Sum(nil)), nil
}

// readManifest reads the manifest in dir and checks that it was not changed. The text says what is wrong, "" if nothing
// is.
func readManifest(dir string) (manifest, string) {
	var m manifest
	path := filepath.Join(dir, ManifestFile)
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return m, "it has no " + ManifestFile + ", so it was never sealed"
	} else if err != nil || !info.Mode().IsRegular() {
		return m, ManifestFile + " is no regular file"
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return m, fmt.Sprintf("reading %s: %v", ManifestFile, err)
	}
	today, err := stored.Convert(stored.Manifest, b)
	if err != nil {
		return m, err.Error()
	}
	dec := json.NewDecoder(bytes.NewReader(today))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, fmt.Sprintf("%s is broken: %v", ManifestFile, err)
	}
	if m.Schema != ManifestSchema {
		return m, fmt.Sprintf("%s has schema %q, want %q", ManifestFile, m.Schema, ManifestSchema)
	}
	if sumOf(b, m.Sum) != m.Sum {
		return m, ManifestFile + " is broken: it is not as it was written"
	}
	return m, ""
}

// sumOf returns the sum that a manifest must have. It is computed from the bytes that were read, because an earlier
// version wrote other words than this version would write today.
func sumOf(b []byte, sum string) string {
	b = bytes.Replace(b, []byte(`"sum": "`+sum+`"`), []byte(`"sum": ""`), 1)
	again := sha256.Sum256(bytes.TrimSuffix(b, []byte("\n")))
	return hex.EncodeToString(again[:])
}
