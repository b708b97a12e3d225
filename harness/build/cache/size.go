package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// EnvMaxDisk is the environment variable that says how much disk a store may take up, such as 15GiB.
const EnvMaxDisk = "RELAPSE_MAX_DISK"

// defaultMaxDisk has room for what Go keeps of about ten versions of one Kubernetes component, the node images' parts
// and some hundred programs.
const defaultMaxDisk = 20 << 30

// ParseSize reads a size on disk, such as 15GiB, 15Gi or 500MB, and returns it in bytes. It refuses what is below 1 MiB:
// somebody forgot the unit.
func ParseSize(text string) (int64, error) {
	q, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	if err != nil {
		return 0, errors.New("it is no size (want one such as 15GiB or 500MiB)")
	}
	if q.Value() < 1<<20 {
		return 0, errors.New("it is less than 1 MiB (want a size with its unit, such as 15GiB or 500MiB)")
	}
	return q.Value(), nil
}

// FormatSize returns a size as people read it, such as 1.6 GiB.
func FormatSize(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%.0f MiB", math.Ceil(float64(bytes)/(1<<20)))
}

// MaxDisk returns how much disk a store may take up if nothing else was said: $RELAPSE_MAX_DISK, or 20 GiB.
func MaxDisk() (int64, error) {
	text := os.Getenv(EnvMaxDisk)
	if text == "" {
		return defaultMaxDisk, nil
	}
	n, err := ParseSize(text)
	if err != nil {
		return 0, fmt.Errorf("%s is %q: %w", EnvMaxDisk, text, err)
	}
	return n, nil
}

// block is what file systems give out at the least, so that many small files take up more than their lengths.
const block = 4 << 10

// Size returns how much disk the files below dir take up. It leaves out what somebody else removes meanwhile.
func Size(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		fi, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		n += (fi.Size() + block - 1) / block * block
		return nil
	})
	return n, err
}

// Used returns how much disk the store's whole folder takes up, Go's cache and unfinished entries included.
func (s *Store) Used() (int64, error) {
	n, err := Size(s.dir)
	if err != nil {
		return 0, fmt.Errorf("measuring the cache %s: %w", s.dir, err)
	}
	return n, nil
}
