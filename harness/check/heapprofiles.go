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
	return remember(v, a, "retained in "+function, func(out retention, r io.Reader) (_ retention, err error) {
		out.bytes, out.objects, out.stacks, err = heap.Retained(r, function)
		return out, err
	})
}

// largestSaid is all that is retained, and the place that has most of it.
func (r retention) largestSaid() string {
	if len(r.stacks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s in %d objects, of which %s were allocated in\n\t%s", mebi(r.bytes), r.objects, mebi(r.stacks[0].Bytes),
		strings.Join(r.stacks[0].Frames, "\n\t"))
}

// coarse is the least growth of one place that counts: the runtime samples one allocation in 512 KiB, so one sample more says nothing.
const coarse = 1 << 20

// back answers whether the heap is where it was in the baseline, place by place, because buffers that come and go move the total by more than a leak
// does: what is left for good is in every one of the last profiles, above the most that the baseline had of it.
func (c *RetainedHeap) back(q *question, now profiles, limit int64) {
	before, why := q.baseline()
	if why != "" {
		q.Seen += "; " + why
		return
	}
	was := c.profiles(q.view, q.cell, before)
	q.Evidence = slices.Concat(was.paths, q.Evidence)
	q.Differs = few(slices.Concat(was.notes, now.notes))
	doubt := cmp.Or(now.missing, was.missing, restarted(q.view, q.cell, bundle.Window{Start: before.Start, End: q.window.End}))
	switch {
	case doubt != "":
		q.Seen += "; " + doubt
		return
	case len(was.in) == 0:
		q.Seen += "; there is none of the baseline to compare with"
		return
	case len(now.in) < c.Snapshots || !reached(c.LastAfter, now.last, q.began):
		q.Seen += ": too few to answer by"
		return
	}
	all, most, place := grown(was.in, now.in[len(now.in)-c.Snapshots:], c.Except)
	q.Met = Of(all < limit)
	q.Seen += fmt.Sprintf("; each of the last %d has %s more than the %d of the baseline", c.Snapshots, mebi(all), len(was.in))
	if all > 0 {
		q.Detail = fmt.Sprintf("%s more, of which %s were allocated in\n\t%s", mebi(all), mebi(most), place)
	}
	if q.Met == NotMet && len(was.notes) > 0 {
		q.Met, q.Seen = Unknown, q.Seen+"; a profile of the baseline is missing"
	}
}

// grown adds up what the places that grew by enough have more in every one of the last profiles than in any before, and says which has most of it.
func grown(before, last []retention, except []string) (all, most int64, where string) {
	for place, more := range lasting(before, last, func(r retention) map[string]int64 { return r.places(except) }) {
		if more < coarse {
			continue
		}
		all += more
		if more > most || more == most && place < where {
			most, where = more, place
		}
	}
	return all, most, where
}

// places are the bytes by where they were allocated, one function a line.
func (r retention) places(except []string) map[string]int64 {
	out := map[string]int64{}
	for _, s := range r.stacks {
		excepted := slices.ContainsFunc(s.Frames, func(f string) bool {
			return slices.ContainsFunc(except, func(part string) bool { return strings.Contains(f, part) })
		})
		if !excepted {
			out[strings.Join(s.Frames, "\n\t")] += s.Bytes
		}
	}
	return out
}
