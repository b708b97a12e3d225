package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-relapse/relapse/harness/event"
)

// matches reports whether q selects an artifact.
func (q Query) matches(a Artifact) bool {
	same := func(want, have string) bool { return want == "" || want == have }
	return (q.Kind == "" || q.Kind == a.Kind) && same(q.Arm, a.Arm) && same(q.Node, a.Node) &&
		same(q.Component, a.Component) && same(q.Phase, a.Phase) &&
		(q.From.IsZero() || !a.Time.Before(q.From)) && (q.To.IsZero() || !a.Time.After(q.To))
}

func choose(all []Artifact, q Query) []Artifact {
	var out []Artifact
	for _, a := range all {
		if q.matches(a) {
			out = append(out, a)
		}
	}
	return out
}

// openArtifact opens an artifact's file, which must lie below dir. It reads from byte from up to the recorded size, and
// unpacks compressed content. grows says that the file may go on after that size.
func openArtifact(dir string, a Artifact, from int64, grows bool) (io.ReadCloser, error) {
	switch {
	case a.Error != "":
		return nil, fmt.Errorf(
			"opening %s of arm %q: its capture failed: %s",
			a.Kind,
			a.Arm,
			a.Error,
		)
	case a.Missing:
		return nil, fmt.Errorf(
			"opening %s: it is listed in the manifest and not on disk: %w",
			a.Path,
			os.ErrNotExist,
		)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", a.Path, err)
	}
	defer root.Close()
	f, err := root.Open(a.Path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", a.Path, err)
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		f.Close()
		return nil, fmt.Errorf("opening %s: %w", a.Path, err)
	}
	in := io.LimitReader(f, a.Size-from)
	if strings.HasSuffix(a.Path, Packed) {
		r, err := unpack(in, f, grows)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("opening %s: %w", a.Path, err)
		}
		return r, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{in, f}, nil
}

// unpacked reads the content of a compressed stream.
type unpacked struct {
	*zstd.Decoder
	file  io.Closer
	grows bool
}

func unpack(in io.Reader, file io.Closer, grows bool) (*unpacked, error) {
	d, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(64<<20)) // the most memory that a foreign frame can ask for
	return &unpacked{d, file, grows}, err
}

// Read reads the unpacked content. For a stream that still grows, the end of what is on disk is io.EOF.
func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.Decoder.Read(p)
	if u.grows && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// WriteTo copies the content to w. It hides the decoder's own WriteTo, which doesn't know streams that grow.
func (u *unpacked) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{u})
}

// Close releases the file and the decoder's memory.
func (u *unpacked) Close() error {
	u.Decoder.Close()
	return u.file.Close()
}

// live is the View of a bundle that is still being written.
type live struct{ w *Writer }

// View returns a view of the bundle while it grows: every call answers for the moment of the call.
func (w *Writer) View() View { return live{w} }

func (l live) Artifacts(q Query) []Artifact { return choose(l.w.artifacts(), q) }

// Open opens an artifact as it is now: of a stream all complete lines, also those that were written after a was listed.
func (l live) Open(a Artifact) (io.ReadCloser, error) {
	return openArtifact(l.w.dir, l.now(a), 0, true)
}

// Remember implements View.Remember for an artifact that may still grow.
func (l live) Remember(
	a Artifact,
	as string,
	grow func(any, io.Reader) (any, error),
) (any, error) {
	return l.w.memory.remember(l.w.dir, l.now(a), true, as, grow)
}

// now returns the current state of an artifact that was listed earlier.
func (l live) now(a Artifact) Artifact {
	for _, now := range l.w.artifacts() {
		if now.Path == a.Path && a.Path != "" {
			a = now
		}
	}
	return a
}

func (l live) Phase(arm, phase string) (Window, bool) { return phaseOf(l.Timeline(), arm, phase) }

func (l live) Timeline() []event.Event {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return slices.Clone(l.w.events)
}

func (l live) Constant(arm, name string) (int64, bool) { return constantOf(l.World(), arm, name) }

func (l live) World() World {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.world
}

func constantOf(w World, arm, name string) (int64, bool) {
	for _, c := range w.Arms {
		if c.Arm == arm {
			v, ok := c.Constants[name]
			return v, ok
		}
	}
	return 0, false
}

// EndPhase is the message of the phase event that ends the last phase.
const EndPhase = "end"

// phaseOf returns when an arm's phase began and ended; a phase ends where the arm's next phase begins. Without an arm
// the window spans the phase of all arms, from the earliest beginning to the latest end. It returns false if the phase
// never began.
func phaseOf(events []event.Event, arm, phase string) (Window, bool) {
	if arm != "" && arm != Shared {
		return phaseOfArm(events, arm, phase)
	}
	arms := []string{""}
	for _, e := range events {
		if e.Type == event.Phase && !slices.Contains(arms, e.Arm) {
			arms = append(arms, e.Arm)
		}
	}
	if len(arms) > 1 {
		arms = arms[1:] // events without an arm count for each of them already
	}
	var all []Window
	for _, c := range arms {
		if w, ok := phaseOfArm(events, c, phase); ok {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return Window{}, false
	}
	byEnd := func(a, b Window) int {
		return cmp.Or(cmp.Compare(lasts(a), lasts(b)), a.End.Compare(b.End))
	}
	return Window{
		Start: slices.MinFunc(all, func(a, b Window) int { return a.Start.Compare(b.Start) }).Start,
		End:   slices.MaxFunc(all, byEnd).End,
	}, true
}

// lasts returns 1 for a window without an end, which sorts after all others, else 0.
func lasts(w Window) int {
	if w.End.IsZero() {
		return 1
	}
	return 0
}

func phaseOfArm(events []event.Event, arm, phase string) (Window, bool) {
	var w Window
	begun := false
	for _, e := range events {
		if e.Type != event.Phase || (e.Arm != "" && e.Arm != arm) {
			continue
		}
		switch {
		case !begun && e.Message == phase:
			w.Start, begun = e.Time, true
		case begun && e.Message != phase:
			w.End = e.Time
			return w, true
		}
	}
	return w, begun
}

// Until returns the end of the window. While the window lasts, it returns the time of the last event; zero if there is
// none.
func (w Window) Until(events []event.Event) time.Time {
	if !w.End.IsZero() || len(events) == 0 {
		return w.End
	}
	return events[len(events)-1].Time
}

// Assumed returns the value that was used for an unknown constant of an arm's subject.
func Assumed(w World, arm, name string) (int64, bool) {
	for _, c := range w.Arms {
		if c.Arm == arm {
			v, ok := c.Assumed[name]
			return v, ok
		}
	}
	return 0, false
}
