package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// window bounds the memory that a compressed stream may ask for.
const window = 128 << 20

// compressions lists the formats that compress a single stream, by the bytes that they begin with.
var compressions = []struct {
	magic string
	open  func(io.Reader) (io.Reader, error)
}{
	{"\x1f\x8b", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, error) {
		d, err := zstd.NewReader(
			r,
			zstd.WithDecoderMaxWindow(window),
			zstd.WithDecoderConcurrency(1),
		)
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}},
	{"\xfd7zXZ\x00", func(r io.Reader) (io.Reader, error) {
		in := bufio.NewReaderSize(r, tarBlock)
		head, _ := in.Peek(40) // an error shows again when xz reads on
		if n := xzDictionary(head); n > window {
			return nil, fmt.Errorf("it asks for %d bytes of memory, over %d", n, window)
		}
		return xz.NewReader(in)
	}},
	{"BZh", func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
}

// xzDictionary returns the bytes of memory that the first block of an xz stream asks for; 0 if head doesn't tell.
func xzDictionary(head []byte) int64 {
	const streamHeader, lzma2 = 12, 0x21
	if len(head) < streamHeader+2 {
		return 0
	}
	flags, rest := head[streamHeader+1], head[streamHeader+2:]
	for range flags>>6&1 + flags>>7 { // skip the sizes of the block, where its header has them
		_, n := binary.Uvarint(rest)
		rest = rest[max(n, 0):]
	}
	if len(rest) < 3 || rest[0] != lzma2 || rest[2] > 40 {
		return 0
	}
	return (2 | int64(rest[2]&1)) << (rest[2]/2 + 11)
}

// content recognizes the format of an entry by its first bytes, and unpacks or visits the entry.
func (w *walker) content(e Entry, at *os.File, depth int) {
	in := bufio.NewReaderSize(e.Reader, 64<<10)
	e.Reader = in
	head, _ := in.Peek(tarBlock) // a short or failed read shows again below
	if depth > w.limits.Depth {
		w.problem(e.Path, "archives lie in archives over %d deep: not read", w.limits.Depth)
		return
	}
	if w.asIs != nil && w.asIs(e.Path) {
		w.file(e)
		return
	}
	for _, c := range compressions {
		if !bytes.HasPrefix(head, []byte(c.magic)) {
			continue
		}
		r, err := c.open(in)
		if err != nil {
			w.problem(e.Path, "it begins like a compressed file and isn't one: %s", err)
			return
		}
		if c, ok := r.(io.Closer); ok {
			defer c.Close()
		}
		e.Reader = w.unpacked(r)
		w.content(e, nil, depth+1)
		return
	}
	if isEncoded(head) {
		e.Reader = w.unpacked(base64.NewDecoder(base64.StdEncoding, letters{in}))
		w.content(e, nil, depth+1)
		return
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")):
		w.zip(e, at, depth)
	case isTar(head):
		w.tar(e, depth)
	default:
		w.file(e)
	}
}

const tarBlock = 512

// isTar reports whether b begins with a header of tar. It tells by the checksum, because old forms of tar have no other
// mark.
func isTar(b []byte) bool {
	if len(b) < tarBlock || b[0] == 0 {
		return false
	}
	sum, want, digits := 0, 0, 0
	for i, c := range b[:tarBlock] {
		if i >= 148 && i < 156 {
			if c >= '0' && c <= '7' {
				want, digits = want*8+int(c-'0'), digits+1
			}
			c = ' '
		}
		sum += int(c)
	}
	return digits >= 4 && sum == want
}

func (w *walker) tar(e Entry, depth int) {
	r := tar.NewReader(e.Reader)
	for w.ctx.Err() == nil {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			w.problem(e.Path, "it ends early: %s", err)
			return
		}
		at := path.Join(e.Path, path.Clean("/"+h.Name))
		switch {
		case !local(h.Name):
			w.problem(e.Path, "the name %q leaves the folder: not read", h.Name)
		case h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink:
			to := h.Linkname
			if h.Typeflag == tar.TypeSymlink {
				to = path.Join(path.Dir(h.Name), to)
			}
			if path.IsAbs(h.Linkname) || !local(to) {
				w.problem(
					at,
					"it is a link to %q, which leaves the folder: not followed",
					h.Linkname,
				)
			}
		case h.Typeflag == tar.TypeReg:
			w.content(Entry{at, h.ModTime, r}, nil, depth+1)
		case h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeXGlobalHeader:
			w.problem(at, "it is a special file: not read")
		}
	}
}

// local reports whether a name in an archive stays below the folder that it would be unpacked to.
func local(name string) bool { return filepath.IsLocal(filepath.FromSlash(path.Clean(name))) }

// zip reads the files of a zip archive. If at is nil, it copies the archive to a temporary file first: the list of
// files is at the end of a zip archive, so it needs random access.
func (w *walker) zip(e Entry, at *os.File, depth int) {
	if at == nil {
		f, err := w.spool(e.Reader)
		if err != nil {
			w.problem(e.Path, "keeping the zip archive in a temporary file: %s", err)
			return
		}
		defer f.Close()
		at = f
	}
	info, err := at.Stat()
	if err != nil {
		w.problem(e.Path, "%s", err)
		return
	}
	w.in = max(w.in, info.Size())
	r, err := zip.NewReader(at, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		w.problem(e.Path, "%s", err)
		return
	}
	for _, f := range r.File {
		name := path.Join(e.Path, path.Clean("/"+f.Name))
		switch mode := f.Mode(); {
		case w.ctx.Err() != nil:
			return
		case !local(f.Name):
			w.problem(e.Path, "the name %q leaves the folder: not read", f.Name)
		case mode.IsDir():
		case !mode.IsRegular():
			w.problem(name, "it is a link or a special file: not read")
		default:
			c, err := f.Open()
			if err != nil {
				w.problem(name, "%s", err)
				continue
			}
			w.content(Entry{name, f.Modified, w.unpacked(c)}, nil, depth+1)
			c.Close()
		}
	}
}

// spool copies r to a temporary file and removes the file's name, so that nothing is left after Close.
func (w *walker) spool(r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "relapse-zip-*")
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, io.LimitReader(r, w.limits.Spool+1))
	if err == nil && n > w.limits.Spool {
		err = fmt.Errorf("it is over %d bytes long", w.limits.Spool)
	}
	if err = errors.Join(err, os.Remove(f.Name())); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
