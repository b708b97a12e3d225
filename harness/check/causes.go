package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// seenLate is how much later than a writer the recorder may see the same change, on a busy host.
const seenLate = 5 * time.Second

// world holds the recorded objects by which a standstill is judged.
type world struct {
	all         []*recorded            // the records of all its resources, each once
	used        [][]*recorded          // the records of each resource, in the order of Quiet.Resources
	disturbed   []written              // the writes that disturb the standstill, in order of time
	terminating func(at time.Time) int // how many pods are terminating
}

// world reads the records of the resources that have to stand still; doubt says why they can't be used.
func (c Quiet) world(q *question) (out world, doubt string) {
	c = c.filled()
	shared, doubt := recordsOf(q.view, bundle.Shared)
	own, more := recordsOf(q.view, q.arm)
	for _, r := range c.Resources {
		of := following(shared, r)
		if len(of) == 0 {
			of = following(own, r)
		}
		if len(of) == 0 {
			return out, cmp.Or(doubt, more, fmt.Sprintf("nobody followed %s for %s", r, q.arm))
		}
		out.used = append(out.used, of)
	}
	out.all = union(nil, slices.Concat(out.used...)...)
	out.disturbed, out.terminating = c.disturbances(out.all, out.used, otherArms(q.view, q.arm))
	return out, ""
}

// caused reports whether another writer changed the world shortly before a write. A change counts from within before
// the write to seenLate after it; own reports whether the writer made a change. If no change is found, doubt says why
// there may still have been one; "" if there was none.
func (w world) caused(at time.Time, within time.Duration, own func(written) bool) (is bool, doubt string) {
	span := bundle.Window{Start: at.Add(-within), End: at.Add(seenLate)}
	if slices.ContainsFunc(w.disturbed, func(d written) bool { return contains(span, d.at) && !own(d) }) {
		return true, ""
	}
	return false, anyUncovered(w.used, bundle.Window{Start: span.Start, End: at}, 0)
}
