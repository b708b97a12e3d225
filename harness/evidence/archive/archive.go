// Package archive reads evidence that somebody else collected: a file, a folder, standard input, and archives inside
// any of these. It recognizes a format by a file's contents, never by its name. Everything is streamed, and no file is
// unpacked onto the disk under the name that it has in an archive. A hostile or broken file is reported as a Problem
// and left out; everything else is still read.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Entry is one file that Walk found. Its contents can be read only during the visit.
type Entry struct {
	Path    string // the path through all archives: bundle.tgz/nodes/a.zip/kubelet.log
	ModTime time.Time
	io.Reader
}

// Problem names a file or an archive that was not read, or not to its end, and says why.
type Problem struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Limits bounds what a hostile archive can cost.
type Limits struct {
	Depth   int   // how many archives may lie inside each other
	Entries int   // files in total
	Total   int64 // bytes unpacked in total
	Ratio   int64 // bytes that may be unpacked for each byte of an input, in addition to Free
	Free    int64
	Spool   int64 // bytes of a zip archive inside another archive, which has to be copied to a temporary file
}

// Default holds limits with room for bundles of some gigabytes.
var Default = Limits{
	Depth:   6,
	Entries: 1 << 20,
	Total:   64 << 30,
	Ratio:   400,
	Free:    64 << 20,
	Spool:   2 << 30,
}

// Options configures Walk. Zero Limits stand for Default.
type Options struct {
	Stdin  io.Reader
	Limits Limits
	AsIs   func(path string) bool // reports files to visit without unpacking them; nil for none
}

// Walk calls visit for every file of paths, in their order. An error that visit returns for a file becomes a Problem of
// that file. Walk itself fails only if a path can't be opened at all, or with the error of ctx.
func Walk(
	ctx context.Context,
	paths []string,
	o Options,
	visit func(Entry) error,
) ([]Problem, error) {
	if o.Limits == (Limits{}) {
		o.Limits = Default
	}
	w := &walker{ctx: ctx, limits: o.Limits, asIs: o.AsIs, visit: visit}
	for _, p := range paths {
		if err := w.path(p, o.Stdin); err != nil {
			return w.problems, fmt.Errorf("reading %s: %w", p, err)
		}
		if err := ctx.Err(); err != nil {
			return w.problems, err
		}
	}
	return w.problems, nil
}

type walker struct {
	ctx      context.Context
	limits   Limits
	asIs     func(string) bool
	visit    func(Entry) error
	problems []Problem
	entries  int
	in, out  int64 // bytes read from the current input, and bytes unpacked from it
	total    int64 // bytes unpacked from all inputs
}

func (w *walker) problem(at, format string, args ...any) {
	w.problems = append(w.problems, Problem{at, fmt.Sprintf(format, args...)})
}

// path reads one of the paths that the user gave, which may be a link.
func (w *walker) path(p string, stdin io.Reader) error {
	if p == Stdin {
		w.input(Entry{"stdin", time.Time{}, stdin}, nil)
		return nil
	}
	info, err := os.Stat(p)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return w.folder(p)
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{
			Op:   "open",
			Path: p,
			Err:  errors.New("it is neither a file nor a folder"),
		}
	}
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	w.input(Entry{p, info.ModTime(), f}, f)
	return nil
}

// folder reads all files below dir. Links are not followed: a target inside dir is read where it lies.
func (w *walker) folder(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		at := path.Join(filepath.ToSlash(dir), name)
		switch {
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		case err != nil:
			w.problem(at, "%s", err)
		case d.Type()&fs.ModeSymlink != 0:
			if _, err := root.Stat(name); err != nil {
				w.problem(
					at,
					"it is a link that leaves the folder or leads nowhere: not followed",
				)
			}
		case d.IsDir():
		case !d.Type().IsRegular():
			w.problem(at, "it is a special file: not read")
		default:
			f, err := root.Open(name)
			if err != nil {
				w.problem(at, "%s", err)
				return nil
			}
			defer f.Close()
			e := Entry{Path: at, Reader: f}
			if info, err := d.Info(); err == nil {
				e.ModTime = info.ModTime()
			}
			w.input(e, f)
		}
		return nil
	})
}

// input reads one file that the user gave. at is the file if it allows random access, else nil.
func (w *walker) input(e Entry, at *os.File) {
	w.in, w.out = 0, 0
	e.Reader = counting{e.Reader, func(n int) error { w.in += int64(n); return w.ctx.Err() }}
	w.content(e, at, 0)
}

// errBomb ends the reading of an input that unpacks to too many bytes.
var errBomb = errors.New("it unpacks to too much")

// unpacked returns r, the content of an archive or a compressed stream, and counts the bytes read from it. Too many
// bytes end the reading with errBomb.
func (w *walker) unpacked(r io.Reader) io.Reader {
	return counting{r, func(n int) error {
		w.out += int64(n)
		w.total += int64(n)
		switch {
		case w.out > w.limits.Free+w.limits.Ratio*w.in:
			return fmt.Errorf(
				"%w: %d bytes of %d are %d by now, over %d times as many",
				errBomb,
				w.in,
				w.in,
				w.out,
				w.limits.Ratio,
			)
		case w.total > w.limits.Total:
			return fmt.Errorf("%w: over %d bytes in all", errBomb, w.limits.Total)
		}
		return w.ctx.Err()
	}}
}

type counting struct {
	io.Reader
	count func(int) error
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if over := c.count(n); over != nil {
		return n, over
	}
	return n, err
}

// file passes a file to the visitor.
func (w *walker) file(e Entry) {
	if w.entries++; w.entries > w.limits.Entries {
		if w.entries == w.limits.Entries+1 {
			w.problem(
				e.Path,
				"there are over %d files: this one and the rest are not read",
				w.limits.Entries,
			)
		}
		return
	}
	if err := w.visit(e); err != nil {
		w.problem(e.Path, "%s", err)
	}
}
