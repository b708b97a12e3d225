package check

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// AsDump is the name under which a view remembers an artifact as a *goroutine.Dump.
const AsDump = "dump"

// dump reads a dump, which may be cut short.
func dump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	if a.Missing {
		return nil, errors.New(captureError(a))
	}
	return remember(v, a, AsDump,
		func(_ *goroutine.Dump, r io.Reader) (*goroutine.Dump, error) { return goroutine.Read(r) })
}

// completeDump reads a dump, and returns an error if the dump is cut short.
func completeDump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	d, err := dump(v, a)
	if err == nil && d.Truncated {
		err = cutShort(a)
	}
	return d, err
}

func cutShort(a bundle.Artifact) error { return fmt.Errorf("%s is cut short", a.Path) }

func text(g goroutine.Group) string {
	var b strings.Builder
	_ = g.Write(&b) // a strings.Builder never fails
	return strings.TrimSpace(b.String())
}

func top(g goroutine.Group) string {
	if len(g.Frames) == 0 {
		return "an empty stack"
	}
	return g.Frames[0].Func
}

// firstAndLast returns the first two and the last two of notes, with the number of those left out in between.
func firstAndLast(notes []string) []string {
	if len(notes) <= 4 {
		return notes
	}
	left := fmt.Sprintf("… and %d more", len(notes)-4)
	return slices.Concat(notes[:2], []string{left}, notes[len(notes)-2:])
}
