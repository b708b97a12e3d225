package cache

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func diskOf(dir string) (Disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Disk{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return Disk{Folder: dir, Free: int64(st.Bavail) * st.Bsize, Size: int64(st.Blocks) * st.Bsize}, nil
}
