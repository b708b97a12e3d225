//go:build !linux

package cache

import (
	"errors"
	"fmt"
)

func diskOf(dir string) (Disk, error) {
	return Disk{}, fmt.Errorf("reading the free space of %s: %w", dir, errors.ErrUnsupported)
}
