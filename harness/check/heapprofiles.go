package check

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/heap"
)

// retention is what a heap profile says of what was allocated under a function.
type retention struct {
	bytes, objects int64
	stacks         []heap.Stack // the one with most bytes first
}

// profiles are the heap profiles of a window, in order of time.
type profiles struct {
	captured
	in []retention
}

func (p profiles) least() retention { return slices.MinFunc(p.in, byBytes) }
func (p profiles) most() retention  { return slices.MaxFunc(p.in, byBytes) }

func byBytes(a, b retention) int { return cmp.Compare(a.bytes, b.bytes) }

// profiles reads the heap profiles of a window.
func (c *RetainedHeap) profiles(v bundle.View, cell string, w bundle.Window) (out profiles) {
	out.each(v, bundle.Heap, cell, w, "profile", func(a bundle.Artifact) error {
		kept, err := retainedIn(v, a, c.Func)
		if err == nil {
			out.in = append(out.in, kept)
		}
		return err
	})
	return out
}

// retainedIn reads what a heap profile shows in use below a function, or in all if there is none.
func retainedIn(v bundle.View, a bundle.Artifact, function string) (retention, error) {
	if a.Missing {
		return retention{}, errors.New(broken(a))
	}
	kept, err := v.Remember(a, "retained in "+function, func(_ any, r io.Reader) (any, error) {
		var out retention
		var err error
		out.bytes, out.objects, out.stacks, err = heap.Retained(r, function)
		return out, err
	})
	if err != nil {
		return retention{}, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return kept.(retention), nil
}

// largestSaid is all that is retained, and the place that has most of it.
func (r retention) largestSaid() string {
	if len(r.stacks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s in %d objects, of which %s were allocated in\n\t%s", mebi(r.bytes), r.objects, mebi(r.stacks[0].Bytes),
		strings.Join(r.stacks[0].Frames, "\n\t"))
}
