package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// A compressed stream can be read as far as it has come, is one frame in the end, and holds no secret.
func TestPackedStream(t *testing.T) {
	w := create(t)
	s, err := w.Stream(bundle.Meta{Kind: bundle.Objects}, "jsonl"+bundle.Packed)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i := range 300 {
		long := strings.Repeat("abcdefgh", 600)
		if err := s.Append(map[string]any{"n": i, "object": map[string]any{"kind": "Secret", "data": map[string]string{"key": "aHVudGVyMg" + long}}}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, `{"n":%d,"object":{"data":{"key":"[REDACTED]"},"kind":"Secret"}}`+"\n", i)
		if i%100 != 0 {
			continue
		}
		if got := read(t, w.View(), w.View().Artifacts(bundle.Query{})[0]); got != want.String() {
			t.Fatalf("after %d lines it reads %q, want %q", i+1, got, want.String())
		}
	}
	if a := w.View().Artifacts(bundle.Query{})[0]; !a.Coverage.First.IsZero() {
		t.Errorf("lines alone cover %+v", a.Coverage)
	}
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	s.Alive(at)
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	a := sealed.Artifacts(bundle.Query{})[0]
	if got := read(t, sealed, a); got != want.String() || !a.Coverage.First.Equal(at) || !a.Coverage.Last.Equal(at) {
		t.Errorf("sealed, it covers %+v and reads %q", a.Coverage, got)
	}
	raw, err := os.ReadFile(filepath.Join(w.Dir(), a.Path))
	if err != nil {
		t.Fatal(err)
	}
	if a.Size != int64(len(raw)) || len(raw)*5 > want.Len() {
		t.Errorf("%d bytes are on disk and %d in the manifest, of %d", len(raw), a.Size, want.Len())
	}
	d, err := zstd.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if all, err := io.ReadAll(d); err != nil || string(all) != want.String() {
		t.Errorf("the file alone reads %d bytes, %v", len(all), err)
	}
}

// A sealed stream without its end is an error, not a shorter stream.
func TestPackedStreamThatWasCut(t *testing.T) {
	w := create(t)
	s, err := w.Stream(bundle.Meta{Kind: bundle.Objects}, "jsonl"+bundle.Packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append("a line"); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	a := sealed.Artifacts(bundle.Query{})[0]
	a.Size -= 5
	r, err := sealed.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("it reads %q, %v, want %v", b, err, io.ErrUnexpectedEOF)
	}
}

// A compressed stream that nothing was written to is empty.
func TestPackedStreamOfNothing(t *testing.T) {
	w := create(t)
	if _, err := w.Stream(bundle.Meta{Kind: bundle.Objects}, "jsonl"+bundle.Packed); err != nil {
		t.Fatal(err)
	}
	if got := read(t, w.View(), w.View().Artifacts(bundle.Query{})[0]); got != "" {
		t.Errorf("live, it reads %q", got)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, sealed, sealed.Artifacts(bundle.Query{})[0]); got != "" {
		t.Errorf("sealed, it reads %q", got)
	}
}
