package carry

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Source is something to pack.
type Source struct {
	Name string // in the archive, with slashes
	Path string // of a file, or of a folder whose files are all packed
}

// Pack writes an archive with everything in sources. It fills in the manifest's format, platform and files, and returns
// the manifest.
func Pack(ctx context.Context, w io.Writer, m Manifest, sources []Source) (Manifest, error) {
	m.Format, m.Platform = format, Platform()
	for _, s := range sources {
		files, err := s.files(ctx)
		if err != nil {
			return m, err
		}
		m.Files = append(m.Files, files...)
	}
	return m, write(ctx, w, m)
}

// write writes the manifest and the files that it lists.
func write(ctx context.Context, w io.Writer, m Manifest) (err error) {
	packed, err := zstd.NewWriter(w)
	if err != nil {
		return err
	}
	out := tar.NewWriter(packed)
	defer func() { err = errors.Join(err, packed.Close()) }()
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	if err := out.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := f.write(ctx, out); err != nil {
			return fmt.Errorf("packing %s: %w", f.path, err)
		}
	}
	return out.Close()
}

// files lists and measures the files of a source.
func (s Source) files(ctx context.Context) (out []File, err error) {
	err = filepath.WalkDir(s.Path, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("packing %s: it is no regular file", at)
		}
		rel, err := filepath.Rel(s.Path, at)
		if err != nil {
			return err
		}
		f := File{Name: path.Join(s.Name, filepath.ToSlash(rel)), path: at}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f.Executable = info.Mode()&0o100 != 0
		if f.Size, f.SHA256, err = f.read(ctx, io.Discard); err != nil {
			return fmt.Errorf("hashing %s: %w", at, err)
		}
		out = append(out, f)
		return nil
	})
	return out, err
}

// read copies the file to w, and returns its size and its SHA-256.
func (f File) read(ctx context.Context, w io.Writer) (size int64, sum string, err error) {
	in, err := os.Open(f.path)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(w, h), &reader{ctx, in})
	return size, hex.EncodeToString(h.Sum(nil)), err
}

func (f File) write(ctx context.Context, out *tar.Writer) error {
	if err := out.WriteHeader(&tar.Header{Name: f.Name, Mode: int64(f.mode()), Size: f.Size}); err != nil {
		return err
	}
	size, sum, err := f.read(ctx, out)
	if err == nil && (size != f.Size || sum != f.SHA256) {
		err = errors.New("it was changed while it was packed")
	}
	return err
}

func (f File) mode() fs.FileMode {
	if f.Executable {
		return 0o755
	}
	return 0o644
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context
	io.Reader
}

// Read returns the context's cause once it has ended.
func (r *reader) Read(to []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(to)
}
