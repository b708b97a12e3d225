package goroutines

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/heap"
)

// retention is the memory below a function that a heap profile shows in use.
type retention struct {
	Bytes, objects int64
	stacks         []heap.Stack // the stack with most bytes first
}

// Profiles has what each heap profile of a window shows, in order of time.
type Profiles struct {
	question.Captured
	In []retention
}

// Least returns what the profile with the least memory shows.
func (p Profiles) Least() retention { return slices.MinFunc(p.In, byBytes) }

// LargestRetention returns what the profile with the most memory shows.
func (p Profiles) LargestRetention() retention { return slices.MaxFunc(p.In, byBytes) }

func byBytes(a, b retention) int { return cmp.Compare(a.Bytes, b.Bytes) }

// ProfilesOf returns, for each heap profile of the window, how much memory is in use that was allocated below a
// function; all memory if function is "".
func ProfilesOf(q *question.Question, function string) (out Profiles) {
	out.Each(q, bundle.Heap, "profile", func(a bundle.Artifact) error {
		kept, err := RetainedIn(q.View, a, function)
		if err == nil {
			out.In = append(out.In, kept)
		}
		return err
	})
	return out
}

// RetainedIn returns what ProfilesOf returns, for one heap profile.
func RetainedIn(v bundle.View, a bundle.Artifact, function string) (retention, error) {
	if a.Missing {
		return retention{}, errors.New(question.CaptureError(a))
	}
	return question.Remember(v, a, "retained in "+function, func(out retention, r io.Reader) (_ retention, err error) {
		out.Bytes, out.objects, out.stacks, err = heap.Retained(r, function)
		return out, err
	})
}

// LargestSaid describes the retained total, and the place that allocated most of it.
func (r retention) LargestSaid() string {
	if len(r.stacks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s in %d objects, of which %s were allocated in\n\t%s", question.Mebibytes(r.Bytes), r.objects,
		question.Mebibytes(r.stacks[0].Bytes),
		strings.Join(r.stacks[0].Frames, "\n\t"))
}

// coarse is the smallest growth of one place that counts, in bytes. The runtime samples one allocation in 512 KiB, so
// one more sample says nothing.
const coarse = 1 << 20

// GrowthSince adds up the growth of all places that grew by at least coarse, and says which grew most. The growth of a
// place is what every one of the last profiles has above the most in any profile before.
func GrowthSince(before, last []retention, except []string) (all, most int64, where string) {
	for place, more := range question.Lasting(before, last, func(r retention) map[string]int64 { return r.places(except) }) {
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
