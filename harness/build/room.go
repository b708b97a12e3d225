package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// rough says how much disk a program's build was seen to need, where this host has no record of one: the first of a
// version, a later one, for which Go has most packages, and each further program that is built with it.
type rough struct{ first, later, more int64 }

var (
	// roughly has rough figures by module. Nobody knows how much the build of another one needs.
	roughly      = map[string]rough{kubernetes: {4 << 30, 1 << 30, 1 << 29}}
	roughFixture = rough{first: 300 << 20, later: 300 << 20}
)

// of returns the figures for so many programs in one build.
func (r rough) of(programs int) rough {
	more := int64(programs-1) * r.more
	return rough{first: r.first + more, later: r.later + more}
}

func (r rough) bytes(fresh bool) int64 {
	if fresh {
		return r.first
	}
	return r.later
}

// Room is how much disk that what is missing needs.
type Room struct {
	Bytes   int64    // of all builds of which it is known
	Largest Part     // the build that needs most
	Rough   bool     // a part of Bytes is no figure of this host
	Unknown []string // what needs nobody knows how much
}

// Room returns how much disk that what is missing needs.
func (f *Forecast) Room() (r Room) {
	for _, p := range f.Missing {
		if p.Bytes == 0 {
			r.Unknown = append(r.Unknown, p.What)
			continue
		}
		r.Bytes += p.Bytes
		r.Rough = r.Rough || p.Rough
		if p.Bytes > r.Largest.Bytes {
			r.Largest = p
		}
	}
	return r
}

// String says how much it is, and what isn't known of it.
func (r Room) String() string {
	if r.Bytes == 0 {
		return "how much disk building needs is unknown"
	}
	said := "building needs about " + cache.FormatSize(r.Bytes) + " of disk"
	if r.Rough {
		said += ", by a rough figure"
	}
	if len(r.Unknown) > 0 {
		said += fmt.Sprintf(
			", and more for %s, of which that is unknown",
			strings.Join(r.Unknown, ", "),
		)
	}
	return said
}

// RoomError says that builds can't fit on the disk, or into what the cache may take up.
type RoomError struct {
	Need, Have string
	Bound      bool // what the cache may take up is too little for a single build
}

// Error says what is needed and what there is.
func (e *RoomError) Error() string { return e.Need + ", and " + e.Have }

// Fit says how much disk that what is missing needs and how much there is, "" if nothing is missing. It refuses builds of
// which is known that they don't fit. max is how much the cache may take up once a build is done.
func (f *Forecast) Fit(max int64) (said string, err error) {
	if len(f.Missing) == 0 {
		return "", nil
	}
	r := f.Room()
	disk, err := f.builder.Cache.Disk()
	if err != nil {
		return fmt.Sprintf("%s, and how much there is, too: %v", r, err), nil
	}
	used, err := f.builder.Cache.Used()
	if err != nil {
		return "", err
	}
	if r.Largest.Bytes > max {
		return "", &RoomError{Bound: true, Need: fmt.Sprintf("building %s needs about %s of disk", r.Largest.What,
			cache.FormatSize(r.Largest.Bytes)), Have: "the cache may take up " + cache.FormatSize(max)}
	}
	// While the largest one is built, the cache has what it may keep of the others.
	if min(r.Bytes, max-min(used, max)+r.Largest.Bytes) > disk.Free {
		return "", &RoomError{Need: r.String(), Have: disk.String()}
	}
	return fmt.Sprintf(
		"%s; %s, and the cache keeps at most %s",
		r,
		disk,
		cache.FormatSize(max),
	), nil
}

// Hold keeps Prune from the builds that the cache has, until the cache is closed.
func (f *Forecast) Hold(ctx context.Context) error {
	for _, e := range f.entries {
		if f.builder.Cache.Has(e.kind, e.key) {
			if _, _, err := f.builder.Cache.Find(ctx, e.kind, e.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Needs reports whether one of the builds is an entry of the cache.
func (f *Forecast) Needs(kind, key string) bool { return slices.Contains(f.entries, entry{kind, key}) }
