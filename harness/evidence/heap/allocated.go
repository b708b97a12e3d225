package heap

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Allocated reads a heap profile and returns how many bytes were allocated below functions whose name contains one of
// under, since the process began, freed again or not. It also returns when the profile was made. The difference of two
// profiles of one process was allocated between their last garbage collections. A profile without alloc_space in bytes
// is an error.
func Allocated(r io.Reader, under []string) (bytes int64, made time.Time, err error) {
	raw, err := profile.Parse(r)
	if err != nil {
		return 0, made, fmt.Errorf("reading heap profile: %w", err)
	}
	space := slices.IndexFunc(raw.SampleType, func(t *profile.ValueType) bool {
		return t.Type == "alloc_space" && t.Unit == "bytes"
	})
	if space < 0 {
		return 0, made, fmt.Errorf(
			"reading heap profile: it has no alloc_space/bytes among its %d types of samples",
			len(raw.SampleType),
		)
	}
	for _, s := range raw.Sample {
		if slices.ContainsFunc(framesOf(s), func(frame string) bool {
			return slices.ContainsFunc(
				under,
				func(part string) bool { return strings.Contains(frame, part) },
			)
		}) {
			bytes += s.Value[space]
		}
	}
	return bytes, time.Unix(0, raw.TimeNanos).UTC(), nil
}
