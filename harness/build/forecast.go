package build

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Part is something that is missing, how long it will take to make, and how much disk.
type Part struct {
	What    string
	Takes   time.Duration // as a build like it took on this host; 0 if Unknown
	Unknown string        // why nobody knows how long it takes
	Sought  bool          // the cache was searched for it, and doesn't have it
	Bytes   int64         // of disk that making it needs; 0 if nobody knows
	Rough   bool          // Bytes is no build's of this host
}

// Forecast says what of some builds the cache has, what is missing, and how long and how much disk that will take.
type Forecast struct {
	Cached  int
	Missing []Part // in the order in which they are built
	builder *Builder
	times   times
	since   time.Time       // when the oldest of what Go has compiled was used
	trees   map[string]bool // that Go has compiled packages of by then
	seen    map[string]bool
	entries []entry // of the cache that were asked for, whether they are there or not
	builds  int     // that are missing or can't be looked up
}

// entry is an entry of the cache.
type entry struct{ kind, key string }

// NewForecast returns a forecast without any build. Builds have to be added in the order in which they will be done.
func (b *Builder) NewForecast() (*Forecast, error) {
	all, err := readTimes(b.Cache.Dir())
	return &Forecast{
		builder: b,
		times:   all,
		since:   b.Cache.GoSince(),
		trees:   map[string]bool{},
		seen:    map[string]bool{},
	}, err
}

// Source adds the build of a source.
func (f *Forecast) Source(ctx context.Context, src Source) (err error) {
	defer func() { f.lost(err) }()
	if err := src.validate(); err != nil {
		return err
	}
	tc, key, err := f.builder.keyOf(ctx, src)
	if err != nil {
		return err
	}
	tree := src.tree(tc)
	f.add(
		entry{"build", key},
		src.String(),
		src.programs(),
		tree,
		roughly[src.Module].of(len(src.Packages)),
	)
	return nil
}

// Fixture adds the build of a fixture; see Builder.Fixture.
func (f *Forecast) Fixture(ctx context.Context, root, name string) (err error) {
	defer func() { f.lost(err) }()
	tc, err := f.builder.Toolchain(ctx)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Join(root, "fixtures", name))
	if err != nil {
		return err
	}
	key, _, err := fixtureKey(tc, dir)
	if err != nil {
		return err
	}
	f.add(entry{"fixture", key}, "fixture "+name, "fixture "+name, "", roughFixture)
	return nil
}

// Other adds something that is no build, and of which nobody knows how long it takes.
func (f *Forecast) Other(what, why string) {
	if !f.seen[what] {
		f.seen[what] = true
		f.Missing = append(f.Missing, Part{What: what, Unknown: why})
	}
}

// lost counts a build that can't be looked up because of err, if there is an error.
func (f *Forecast) lost(err error) {
	if err != nil {
		f.builds++
	}
}

// Built reports whether the cache has all builds. Other things may be missing.
func (f *Forecast) Built() bool { return f.builds == 0 }

func (f *Forecast) add(e entry, what, programs, tree string, guess rough) {
	if slices.Contains(f.entries, e) {
		return
	}
	f.entries = append(f.entries, e)
	if f.builder.Cache.Has(e.kind, e.key) {
		f.Cached++
		return
	}
	f.builds++
	fresh := !f.trees[tree] && f.times.fresh(tree, time.Now(), f.since)
	f.trees[tree] = true
	p := Part{What: what, Sought: true, Unknown: unrecorded(tree, fresh)}
	if t, ok := f.times.last(programs, fresh); ok {
		p.Takes, p.Unknown = time.Duration(t.Seconds*float64(time.Second)).Round(time.Second), ""
		p.Bytes = t.Bytes
	}
	if p.Bytes == 0 {
		p.Bytes, p.Rough = guess.bytes(fresh), true
	}
	f.Missing = append(f.Missing, p)
}

// unrecorded says which build is missing from the record of times.
func unrecorded(tree string, fresh bool) string {
	switch {
	case tree == "":
		return "no build of it is recorded on this host"
	case fresh:
		return "no build of it from scratch is recorded on this host"
	}
	return "no build of it after another of its version is recorded on this host"
}

// Takes returns how long all that is missing will take. It is false if that isn't known of a part.
func (f *Forecast) Takes() (total time.Duration, known bool) {
	for _, p := range f.Missing {
		if p.Unknown != "" {
			return 0, false
		}
		total += p.Takes
	}
	return total, true
}

// String says in a phrase what is missing and how long it will take.
func (f *Forecast) String() string {
	if len(f.Missing) == 0 {
		return "all of it is in the cache"
	}
	var names, reasons []string
	known := true
	for _, p := range f.ByReason() {
		names = append(names, p.What)
		if p.Unknown != "" {
			known = false
			reasons = append(reasons, p.Unknown+": "+p.What)
		}
	}
	if known {
		return "missing: " + strings.Join(names, ", ")
	}
	return "how long it takes is unknown (" + strings.Join(reasons, "; ") + ")"
}

// ByReason returns what is missing, and puts into one part, at the first one's place, what nobody knows of for one
// reason.
func (f *Forecast) ByReason() (out []Part) {
	at := map[Part]int{} // a reason's place in out
	for _, p := range f.Missing {
		reason := Part{Unknown: p.Unknown, Sought: p.Sought}
		i, there := at[reason]
		if p.Unknown == "" || !there {
			at[reason] = len(out)
			out = append(out, p)
			continue
		}
		out[i].What += ", " + p.What
	}
	return out
}
