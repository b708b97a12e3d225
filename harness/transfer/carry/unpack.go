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
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

const (
	manifestLimit = 64 << 20  // bytes
	windowLimit   = 128 << 20 // bytes of memory that an archive may ask for
)

// Unpack unpacks an archive into an empty folder, below which each file has its name. It verifies the platform, each
// file's size and sum, and that nothing is missing, so that the folder is as it was packed if there is no error. What is
// wrong with the archive itself is an *Error.
func Unpack(ctx context.Context, r io.Reader, dir string) (m Manifest, err error) {
	packed, err := zstd.NewReader(&reader{ctx, r}, zstd.WithDecoderMaxWindow(windowLimit))
	if err != nil {
		return m, err
	}
	defer packed.Close()
	in := tar.NewReader(packed)
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	head, err := in.Next()
	if err != nil {
		return m, refused("it is no archive of relapse cache export, or it was cut off: %w", err)
	}
	if head.Name != manifestName || head.Size > manifestLimit {
		return m, refused(
			"it is no archive of relapse cache export: its first file is %q, expected %s",
			head.Name,
			manifestName,
		)
	}
	if err := json.NewDecoder(in).Decode(&m); err != nil {
		return m, refused("the archive's manifest can't be read: %w", err)
	}
	if err := m.validate(); err != nil {
		return m, err
	}
	for _, f := range m.Files {
		if err := f.unpack(in, dir); err != nil {
			return m, err
		}
	}
	if more, err := in.Next(); err == nil {
		return m, refused("the archive has %q, which its manifest doesn't list", more.Name)
	} else if !errors.Is(err, io.EOF) {
		return m, refused("the archive was changed or cut off behind its last file: %w", err)
	}
	return m, nil
}

// unpack writes the archive's next file, which has to be this one.
func (f File) unpack(in *tar.Reader, dir string) (err error) {
	head, err := in.Next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refused(
			"the archive was cut off: %s is missing, expected %d bytes with SHA-256 %s",
			f.Name,
			f.Size,
			f.SHA256,
		)
	case err != nil:
		return refused("the archive was changed where %s was expected: %w", f.Name, err)
	case head.Name != f.Name || head.Typeflag != tar.TypeReg || head.Size != f.Size:
		return refused(
			"the archive has %q of %d bytes, expected %s of %d bytes",
			head.Name,
			head.Size,
			f.Name,
			f.Size,
		)
	}
	to := filepath.Join(dir, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.mode())
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	sum := hex.EncodeToString(h.Sum(nil))
	written := (*fs.PathError)(nil)
	switch {
	case errors.As(err, &written): // this host's disk, and not the archive
		return fmt.Errorf("unpacking %s: %w", f.Name, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refused(
			"the archive was cut off in %s: expected %d bytes with SHA-256 %s",
			f.Name,
			f.Size,
			f.SHA256,
		)
	case err != nil:
		return refused("the archive was changed in %s: %w", f.Name, err)
	case sum != f.SHA256:
		return refused(
			"the archive was changed in %s: it has SHA-256 %s, expected %s",
			f.Name,
			sum,
			f.SHA256,
		)
	}
	return nil
}
