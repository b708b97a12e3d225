package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Disk is the file system that a folder lies on.
type Disk struct {
	Folder     string
	Free, Size int64 // in bytes; Free is what this user may still write
}

// String says how full it is.
func (d Disk) String() string {
	return fmt.Sprintf(
		"the disk of %s has %s of %s free",
		d.Folder,
		FormatSize(d.Free),
		FormatSize(d.Size),
	)
}

// Disk returns the file system of the store.
func (s *Store) Disk() (Disk, error) { return DiskOf(s.dir) }

// DiskOf returns the file system that a folder lies on.
func DiskOf(dir string) (Disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Disk{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	block := int64(st.Bsize)
	return Disk{Folder: dir, Free: int64(st.Bavail) * block, Size: int64(st.Blocks) * block}, nil
}

// SameDisk reports whether two folders are known to lie on one file system. Of a folder that isn't there, the nearest one
// above it counts.
func SameDisk(a, b string) bool {
	var of [2]unix.Stat_t
	for i, dir := range []string{a, b} {
		if err := unix.Stat(Nearest(dir), &of[i]); err != nil {
			return false
		}
	}
	return of[0].Dev == of[1].Dev
}

// FullError says that a file system had no room for what had to be written.
type FullError struct {
	Disk Disk // as it was right afterwards; without a folder if that can't be told
	Err  error
}

// Error says which file system was full, and what becomes of the builds that are done.
func (e *FullError) Error() string {
	disk := "a disk"
	if e.Disk.Folder != "" {
		disk = fmt.Sprintf(
			"the disk of %s (%s of %s are free now)",
			e.Disk.Folder,
			FormatSize(e.Disk.Free),
			FormatSize(e.Disk.Size),
		)
	}
	return fmt.Sprintf(
		"no room was left on %s; finished builds are kept, and the same command goes on from there: %v",
		disk,
		e.Err,
	)
}

// Unwrap returns what failed.
func (e *FullError) Unwrap() error { return e.Err }

// NoRoom reports whether err comes from a file system without room, or from a user's quota of one.
func NoRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Full returns err as a *FullError if it comes from a file system without room, and otherwise as it is. The file system
// is that of the path in err, named by the one of the folders that it lies in, or else the one of the folders that has the
// least left.
func Full(err error, folders ...string) error {
	if !NoRoom(err) || errors.As(err, new(*FullError)) {
		return err
	}
	full := &FullError{Err: err}
	if at := (*fs.PathError)(nil); errors.As(err, &at) && filepath.IsAbs(at.Path) {
		path := Nearest(at.Path)
		if i := slices.IndexFunc(folders, func(dir string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }); i >= 0 {
			path = folders[i]
		}
		folders = []string{path}
	}
	for _, dir := range folders {
		if d, err := DiskOf(dir); err == nil && (full.Disk.Folder == "" || d.Free < full.Disk.Free) {
			full.Disk = d
		}
	}
	return full
}

// Nearest returns the nearest folder upwards of a path that exists.
func Nearest(path string) string {
	for {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}
