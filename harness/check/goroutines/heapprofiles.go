package goroutines

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/heap"
)

// Retention is the memory below a function that a heap profile shows in use.
type Retention struct {
	Bytes, objects int64
	stacks         []heap.Stack // the stack with most bytes first
}

func byBytes(a, b Retention) int { return cmp.Compare(a.Bytes, b.Bytes) }

// ReadProfiles reads from each heap profile of the window what ReadRetention reads from one.
func ReadProfiles(q *question.Question, function string) (out question.Snapshots[Retention]) {
	out.Each(q, bundle.Heap, "profile", func(a bundle.Artifact) error {
		kept, err := ReadRetention(q.View, a, function)
		if err == nil {
			out.In = append(out.In, kept)
		}
		return err
	})
	return out
}

// ReadRetention reads from a heap profile how much memory allocated below a function is in use, or all memory if
// function is "".
func ReadRetention(v bundle.View, a bundle.Artifact, function string) (Retention, error) {
	if a.Missing {
		return Retention{}, question.CaptureError(a)
	}
	return question.Remember(
		v,
		a,
		"retained in "+function,
		func(out Retention, r io.Reader) (_ Retention, err error) {
			out.Bytes, out.objects, out.stacks, err = heap.Retained(r, function)
			return out, err
		},
	)
}

// Describe says how much memory is in use, and names the place that allocated most of it.
func (r Retention) Describe() string {
	if len(r.stacks) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%s in %d objects, of which %s were allocated in\n\t%s",
		question.Mebibytes(r.Bytes),
		r.objects,
		question.Mebibytes(r.stacks[0].Bytes),
		strings.Join(r.stacks[0].Frames, "\n\t"),
	)
}

// coarse is the smallest growth of one place that counts, in bytes. The runtime samples one allocation in 512 KiB, so
// one more sample says nothing.
const coarse = 1 << 20

// GrowthSince adds up the growth of all places that grew by at least coarse, and says which grew most. The growth of a
// place is what every one of the last profiles has above the most in any profile before.
func GrowthSince(before, last []Retention, except []string) (all, most int64, where string) {
	for place, more := range question.LastingGrowth(before, last, func(r Retention) map[string]int64 { return r.places(except) }) {
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

// places returns the bytes by the stack that allocated them, one function a line. It leaves out stacks with a function
// that except names.
func (r Retention) places(except []string) map[string]int64 {
	out := map[string]int64{}
	for _, s := range r.stacks {
		excepted := slices.ContainsFunc(s.Frames, func(f string) bool {
			return slices.ContainsFunc(
				except,
				func(part string) bool { return strings.Contains(f, part) },
			)
		})
		if !excepted {
			out[strings.Join(s.Frames, "\n\t")] += s.Bytes
		}
	}
	return out
}
