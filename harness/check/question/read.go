package question

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Stream holds what the artifacts of one kind say about a window.
type Stream[T any] struct {
	Records []T
	Paths   []string
	Doubt   error     // why the artifacts don't cover the window; nil if they do
	Last    time.Time // up to when the source was watched
}

// Read decodes the line-oriented artifacts of a kind. It keeps records outside the window: the caller decides.
// The stream's Doubt says what keeps the artifacts from covering the window.
func Read[T any](q *Question, kind bundle.Kind) Stream[T] {
	return ReadWith(q, bundle.Query{Kind: kind, Arm: q.Arm}, Records[T])
}

// ReadWith does what Read does for the artifacts that a query selects, with the given decoder.
func ReadWith[T any](
	q *Question,
	of bundle.Query,
	decode func(bundle.View, bundle.Artifact) ([]T, error),
) Stream[T] {
	return ReadCounting(q, of, decode, nil)
}

// ReadCounting does what ReadWith does if only some records count: only the artifacts that have such a record must
// cover the window. If none has, all artifacts must cover it. The records of one component say nothing about another.
func ReadCounting[T any](
	q *Question,
	of bundle.Query,
	decode func(bundle.View, bundle.Artifact) ([]T, error),
	counts func(T) bool,
) Stream[T] {
	var s Stream[T]
	arts := q.View.Artifacts(of)
	if len(arts) == 0 {
		s.Doubt = check.Doubt(check.NotRecorded, "no %s was recorded for %s", of.Kind, of.Arm)
		return s
	}
	var readable, counting []bundle.Artifact
	for _, a := range arts {
		if a.Missing || a.Error != "" {
			s.Doubt = fmt.Errorf("%s of %s: %w", of.Kind, of.Arm, CaptureError(a))
			continue
		}
		s.Paths = append(s.Paths, a.Path)
		readable = append(readable, a)
		all, err := decode(q.View, a)
		if err != nil {
			s.Doubt = err
		}
		if counts != nil && slices.ContainsFunc(all, counts) {
			counting = append(counting, a)
		}
		s.Records = append(s.Records, all...)
	}
	used, source := readable, byInstance
	switch {
	case len(counting) > 0:
		used = counting
	case counts != nil:
		source = byPath
	}
	for _, a := range used {
		if a.Coverage != nil {
			s.Last = LaterOf(s.Last, a.Coverage.Last)
		}
	}
	if open := notCovering(used, q.Window, source); s.Doubt == nil && len(open) > 0 {
		s.Doubt = check.Doubt(
			check.Gap,
			"%s of %s does not cover %s%s",
			of.Kind,
			of.Arm,
			Span(q.Window),
			DescribeGaps(open, q.Window),
		)
	}
	return s
}

// byInstance tells the component on one node from the same one on another: none can stand in for
// another.
func byInstance(a bundle.Artifact) string { return a.Node + "/" + a.Component }
func byPath(a bundle.Artifact) string     { return a.Path }

// notCovering returns the artifacts of those sources that have no artifact covering the window.
func notCovering(
	arts []bundle.Artifact,
	w bundle.Window,
	source func(bundle.Artifact) string,
) []bundle.Artifact {
	covered := map[string]bool{}
	for _, a := range arts {
		covered[source(a)] = covered[source(a)] || a.Coverage.Covers(w.Start, w.End, Slack(w))
	}
	return slices.DeleteFunc(
		slices.Clone(arts),
		func(a bundle.Artifact) bool { return covered[source(a)] },
	)
}

// Records decodes all lines of an artifact.
func Records[T any](v bundle.View, a bundle.Artifact) ([]T, error) {
	type lines struct {
		records []T
		n       int
	}
	is := reflect.TypeFor[T]()
	all, err := Remember(v, a, "lines of "+is.PkgPath()+"."+is.Name(), func(out lines, r io.Reader) (lines, error) {
		sc := bufio.NewScanner(r)
		sc.Buffer(make([]byte, 64<<10), 16<<20)
		for sc.Scan() {
			out.n++
			var rec T
			if err := json.Unmarshal(sc.Bytes(), &rec); err != nil {
				return out, fmt.Errorf("line %d: %w", out.n, err)
			}
			out.records = append(out.records, rec)
		}
		return out, sc.Err()
	})
	return all.records, err
}

// Remember is bundle.View's Remember with a type: grow adds what is new in the artifact to the value from the last
// read. The error names the artifact. If the name as stands for a value of another type already, that is an error: two
// readers chose the same name without knowing of each other.
func Remember[T any](v bundle.View, a bundle.Artifact, as string,
	grow func(before T, r io.Reader) (T, error)) (all T, err error) {
	got, err := v.Remember(a, as, func(before any, r io.Reader) (any, error) {
		was, ok := before.(T)
		if before != nil && !ok {
			return nil, fmt.Errorf("%q is remembered as %T", as, before)
		}
		return grow(was, r)
	})
	if err != nil {
		return all, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	all, ok := got.(T)
	if !ok {
		return all, fmt.Errorf("reading %s: %q is remembered as %T", a.Path, as, got)
	}
	return all, nil
}

// Document decodes an artifact that is one JSON value. what stands for the artifact in an error if there is no file to
// name.
func Document[T any](v bundle.View, a bundle.Artifact, what string) (out T, err error) {
	if a.Missing || a.Error != "" {
		return out, fmt.Errorf("%s: %w", what, CaptureError(a))
	}
	rc, err := v.Open(a)
	if err != nil {
		return out, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	defer rc.Close()
	raw, err := io.ReadAll(rc)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return out, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return out, nil
}

// Captured sums up the snapshots of one kind in a window.
type Captured struct {
	Last    time.Time // when the last readable snapshot was taken
	Missing error     // why some snapshots can't be relied on; nil if all can
	Notes   []string  // about failed captures, and whatever a reader adds
	Failed  time.Time // when the last capture failed; zero if none did
	Paths   []string  // paths of the readable snapshots
}

// Each calls read with each snapshot of the window, in order of time. A failed capture only
// sets Failed and leads to a note: it shows neither presence nor absence. A snapshot that read
// refuses sets Missing: the file is missing, damaged or cut short, and could have shown anything.
func (c *Captured) Each(
	q *Question,
	kind bundle.Kind,
	noun string,
	read func(bundle.Artifact) error,
) {
	for _, a := range q.View.Artifacts(bundle.Query{Kind: kind, Arm: q.Arm, From: q.Window.Start, To: q.Window.End}) {
		if a.Error != "" {
			c.Failed = a.Time
			c.Notes = append(
				c.Notes,
				fmt.Sprintf("the %s of %s failed: %s", noun, Clock(a.Time), a.Error),
			)
			continue
		}
		if err := read(a); err != nil {
			c.Missing = err
			continue
		}
		c.Last, c.Paths = a.Time, append(c.Paths, a.Path)
	}
}

// CaptureError says why an artifact can't be read.
func CaptureError(a bundle.Artifact) error {
	if a.Missing {
		return check.Doubt(check.Unreadable, "the file %s is missing", a.Path)
	}
	return check.Doubt(check.Unreadable, "the capture failed: %s", a.Error)
}

// DescribeGaps says what each artifact covers, and which gaps it has in the window.
func DescribeGaps(arts []bundle.Artifact, w bundle.Window) string {
	var out []string
	for _, a := range arts {
		if a.Coverage == nil {
			continue
		}
		out = append(out, fmt.Sprintf(" (covers %s)", Between(a.Coverage.First, a.Coverage.Last)))
		for _, g := range a.Coverage.Gaps {
			if g.From.Before(w.End) && g.To.After(w.Start) {
				out = append(out, fmt.Sprintf(" (gap %s: %s)", Between(g.From, g.To), g.Reason))
			}
		}
	}
	return strings.Join(out, "")
}

// Union appends to all the elements of more that it doesn't have yet.
func Union[T comparable](all []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// LoadOf returns the summary that the load of the given name wrote, and the path of the summary.
func LoadOf(q *Question, name string) (found bundle.Load, path string, err error) {
	for _, a := range q.View.Artifacts(bundle.Query{Kind: bundle.LoadSummary, Arm: q.Arm}) {
		one, err := Document[bundle.Load](q.View, a, "a load's summary")
		if err != nil {
			return found, "", err
		}
		if one.Name == name {
			found, path = one, a.Path
		}
	}
	if path == "" {
		return found, "", check.Doubt(check.NotRecorded, "no load %s summed up what it did", name)
	}
	return found, path, nil
}
