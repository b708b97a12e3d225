package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// end is how a container ended; its time is zero while it runs.
type end struct {
	container string
	id        string
	at        time.Time
	reason    string
	code      int32
}

// killed reports whether it was a kill for memory, or one by the same signal: the kubelet doesn't always learn that it was for memory.
func (e end) killed() bool { return e.reason == "OOMKilled" || e.code == 137 }

func (e end) said() string {
	return fmt.Sprintf("%s (%s) ended at %s with reason %s, exit code %d", e.container, brief(e.id), clock(e.at), e.reason, e.code)
}

// endOf finds how the container that ran when a window began came to its end, even where that was seen after the window: an API server can't report its
// own end. doubt says why it can't be told.
func endOf(all []bundle.ContainerStatus, container string, w bundle.Window) (e end, doubt string) {
	all = slices.DeleteFunc(slices.Clone(all), func(r bundle.ContainerStatus) bool { return r.Container != container })
	slices.SortStableFunc(all, func(a, b bundle.ContainerStatus) int { return a.Time.Compare(b.Time) })
	var ran *bundle.ContainerStatus // the newest by the window's beginning, or the first one soon after
	for i, r := range all {
		if r.Time.After(w.Start) && (ran != nil || r.Time.After(w.Start.Add(slack(w)))) {
			break
		}
		ran = &all[i]
	}
	switch {
	case ran == nil:
		return e, fmt.Sprintf("no status of %s was recorded by %s", container, clock(w.Start))
	case ran.State != "running":
		return e, fmt.Sprintf("%s was %s at %s", container, ran.State, clock(w.Start))
	}
	e = end{container: container, id: ran.ID}
	for _, r := range all {
		if !r.Time.After(ran.Time) || r.Pod != ran.Pod {
			continue
		}
		switch {
		case r.LastID == e.id: // says when it was, which its end's own status doesn't
			e.reason, e.code = r.LastReason, r.LastExitCode
			if e.at = r.LastFinished; e.at.IsZero() {
				e.at = r.Time
			}
			return e, ""
		case r.ID == e.id && r.State == "terminated":
			e.at, e.reason, e.code = r.Time, r.Reason, r.ExitCode
		case r.ID != e.id && e.at.IsZero():
			return e, fmt.Sprintf("%s was another container at %s, and how the one before ended was not seen", container, clock(r.Time))
		}
	}
	return e, ""
}

// brief is a container's id as people compare it.
func brief(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		id = bare
	}
	return fmt.Sprintf("%.12s", id)
}

// statuses reads the records of containers. A container can't come back once it is gone: that it is still there at the end of a window shows that it was
// there all along, so a gap before that doesn't matter.
func statuses(q *question) stream[bundle.ContainerStatus] {
	w := q.window
	word := lastWord(q.view.Artifacts(bundle.Query{Kind: bundle.Statuses, Cell: q.cell}))
	if !word.Before(w.End.Add(-slack(w))) {
		w = bundle.Window{Start: word, End: word}
	}
	return read[bundle.ContainerStatus](q.view, bundle.Statuses, q.cell, w)
}

// lastWord is the latest moment for which streams speak; zero if there is none.
func lastWord(arts []bundle.Artifact) time.Time {
	var out time.Time
	for _, a := range arts {
		if a.Missing || a.Error != "" || a.Coverage == nil {
			continue
		}
		last := a.Coverage.Last
		for _, g := range a.Coverage.Gaps {
			if !g.To.Before(last) && g.From.Before(last) {
				last = g.From
			}
		}
		out = later(out, last)
	}
	return out
}
