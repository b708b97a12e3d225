package logs

import (
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// unseenEnds returns the ends of a container in a window that only the count of restarts shows. A status shows only the
// last end, and there may have been several ends between two statuses. free are the logs that are of no end that a status
// shows.
//
// An unseen end gets a log that belongs to no other end, and that ends in the time between the two statuses. Without
// such a log, nobody knows how the container ended.
func unseenEnds(
	all []bundle.ContainerStatus,
	container string,
	w bundle.Window,
	free []*ContainerLog,
) (out []ContainerEnd) {
	all = slices.DeleteFunc(
		slices.Clone(all),
		func(r bundle.ContainerStatus) bool { return r.Container != container },
	)
	slices.SortStableFunc(
		all,
		func(a, b bundle.ContainerStatus) int { return a.Time.Compare(b.Time) },
	)
	pods := map[string]*restarts{}
	for _, r := range all {
		p, ok := pods[r.Pod]
		switch {
		case !ok && !r.Time.After(w.Start): // what it counts ended before the window
			pods[r.Pod] = newRestarts(r)
			continue
		case !ok: // a pod that is new in the window: all that it counts ended since the window began
			p = &restarts{known: map[string]bool{}, last: w.Start}
		case endsBy(r) < p.count: // another pod of that name, as when a static pod was replaced, counts anew
			p = &restarts{known: map[string]bool{}, last: p.last}
		}
		pods[r.Pod] = p
		from, upTo := p.last, r.Time
		if r.LastFinished.After(from) {
			upTo = r.LastFinished
		}
		for range p.unseen(r) {
			e := ContainerEnd{Container: container, At: upTo, unseen: true}
			if i := slices.IndexFunc(free, func(l *ContainerLog) bool {
				return !l.last.Before(from) && l.last.Before(upTo)
			}); i >= 0 {
				e.log, e.At = free[i], free[i].last
				free = slices.Delete(free, i, i+1)
			}
			if question.Contains(w, e.At) || e.log == nil && from.Before(w.End) && !upTo.Before(w.Start) {
				out = append(out, e)
			}
		}
	}
	return out
}

// restarts follows the count of restarts of a pod's container.
type restarts struct {
	first  int32           // ends until the first status, by the count of restarts; 0 for a pod that is new in the window
	known  map[string]bool // ids of the containers whose end a status showed, the first status included
	before int             // how many of known the first status showed
	told   int             // unseen ends so far
	count  int32           // ends by the latest status
	last   time.Time       // the time of the latest status
}

func newRestarts(r bundle.ContainerStatus) *restarts {
	out := &restarts{first: endsBy(r), known: map[string]bool{}, count: endsBy(r), last: r.Time}
	if r.LastID != "" {
		out.known[r.LastID], out.before = true, 1
	}
	return out
}

// unseen returns how many more ends the next status, r, counts that no status shows.
func (s *restarts) unseen(r bundle.ContainerStatus) int {
	s.last, s.count = r.Time, endsBy(r)
	if r.LastID != "" {
		s.known[r.LastID] = true
	}
	more := int(endsBy(r)-s.first) - (len(s.known) - s.before) - s.told
	s.told += max(0, more)
	return max(0, more)
}

// endsBy returns how many containers of a pod have ended, by a status. Each restart needs an end, and a container that
// waits to be started again has ended, too.
func endsBy(r bundle.ContainerStatus) int32 {
	if r.State == "waiting" && r.ID != "" && r.ID == r.LastID {
		return r.RestartCount + 1
	}
	return r.RestartCount
}
