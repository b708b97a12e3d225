package objects

import (
	"cmp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// RecorderLag is how much later than a writer the recorder may see the same change, on a busy host.
const RecorderLag = 5 * time.Second

// RecordedWorld holds the recorded objects by which a standstill is judged.
type RecordedWorld struct {
	All         []*Recorded            // the records of all its resources, each once
	used        [][]*Recorded          // the records of each resource, in the order of Quiet.Resources
	disturbed   []Written              // the writes that disturb the standstill, in order of time
	terminating func(at time.Time) int // how many pods are terminating
}

// World reads the records of the resources that have to stand still; doubt says why they can't be used.
func (c Quiet) World(q *question.Question) (out RecordedWorld, doubt error) {
	c = c.WithDefaults()
	shared, doubt := recordsOf(q.View, bundle.Shared)
	own, more := recordsOf(q.View, q.Arm)
	for _, r := range c.Resources {
		of := following(shared, r)
		if len(of) == 0 {
			of = following(own, r)
		}
		if len(of) == 0 {
			return out, cmp.Or(doubt, more, nobodyFollowed(r, q.Arm))
		}
		out.used = append(out.used, of)
	}
	out.All = question.Union(nil, slices.Concat(out.used...)...)
	out.disturbed, out.terminating = c.disturbances(out.All, out.used, otherArms(q.View, q.Arm))
	return out, nil
}

// Caused reports whether another writer changed the world shortly before a write. A change counts from within before
// the write to RecorderLag after it; own reports whether the writer made a change. If no change is found, doubt says
// why there may still have been one; nil if there was none.
func (w RecordedWorld) Caused(
	at time.Time,
	within time.Duration,
	own func(Written) bool,
) (is bool, doubt error) {
	span := bundle.Window{Start: at.Add(-within), End: at.Add(RecorderLag)}
	if slices.ContainsFunc(w.disturbed, func(d Written) bool { return question.Contains(span, d.At) && !own(d) }) {
		return true, nil
	}
	return false, anyUncovered(w.used, bundle.Window{Start: span.Start, End: at}, 0)
}
