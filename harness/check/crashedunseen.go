package check

import (
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// unseenEnds are the ends of a container in a window of which only the count of restarts tells: a status shows the last
// end, and between two statuses there may have been several. seen are the others, and left the logs of all containers.
//
// An unseen end gets a log that is no other's: one that ends in the time between the two statuses. Without one it is
// not known how it ended.
func unseenEnds(all []bundle.ContainerStatus, container string, w bundle.Window, seen []end, left []*leftLog) (out []end) {
	all = slices.DeleteFunc(slices.Clone(all), func(r bundle.ContainerStatus) bool { return r.Container != container })
	slices.SortStableFunc(all, func(a, b bundle.ContainerStatus) int { return a.Time.Compare(b.Time) })
	var free []*leftLog
	for _, l := range left {
		if !slices.ContainsFunc(seen, func(e end) bool { return logOf(left, e.at) == l }) {
			free = append(free, l)
		}
	}
	pods := map[string]*restarts{}
	for _, r := range all {
		p, ok := pods[r.Pod]
		if !ok {
			pods[r.Pod] = newRestarts(r)
			continue
		}
		from, upTo := p.last, r.Time
		if r.LastFinished.After(from) {
			upTo = r.LastFinished
		}
		for range p.unseen(r) {
			e := end{container: container, at: upTo, unseen: true}
			if i := slices.IndexFunc(free, func(l *leftLog) bool {
				return !l.last.Before(from) && l.last.Before(upTo)
			}); i >= 0 {
				e.log, e.at = free[i], free[i].last
				free = slices.Delete(free, i, i+1)
			}
			if contains(w, e.at) || e.log == nil && from.Before(w.End) && !upTo.Before(w.Start) {
				out = append(out, e)
			}
		}
	}
	return out
}

// restarts follows the count of restarts of a pod's container.
type restarts struct {
	first  int32           // ends at the first status, as the count tells
	known  map[string]bool // the containers whose end a status showed, at the first one or later
	before int             // those of known at the first status
	told   int             // unseen ends so far
	last   time.Time       // of the latest status
}

func newRestarts(r bundle.ContainerStatus) *restarts {
	out := &restarts{first: endsBy(r), known: map[string]bool{}, last: r.Time}
	if r.LastID != "" {
		out.known[r.LastID], out.before = true, 1
	}
	return out
}

// unseen is how many ends a further status adds of which no status shows anything.
func (s *restarts) unseen(r bundle.ContainerStatus) int {
	s.last = r.Time
	if r.LastID != "" {
		s.known[r.LastID] = true
	}
	more := int(endsBy(r)-s.first) - (len(s.known) - s.before) - s.told
	s.told += max(0, more)
	return max(0, more)
}

// endsBy is how many containers of a pod have ended by a status: each restart needs an end, and one that waits to be
// started again has ended, too.
func endsBy(r bundle.ContainerStatus) int32 {
	if r.State == "waiting" && r.ID != "" && r.ID == r.LastID {
		return r.RestartCount + 1
	}
	return r.RestartCount
}
