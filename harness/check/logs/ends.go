package logs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// end describes how a container ended. Its time is zero while the container runs.
type end struct {
	container string
	ID        string
	At        time.Time
	reason    string
	code      int32

	unseen bool     // the restart count shows one more end, but nobody saw how the container ended
	log    *leftLog // for an unseen end: the log that the container may have left, else nil
}

// Killed reports whether the container was killed for its memory, or by the same signal. The kubelet doesn't always
// learn that memory was the reason.
func (e end) Killed() bool { return e.reason == "OOMKilled" || e.code == 137 }

// Describe says how and when the container ended.
func (e end) Describe() string {
	if e.unseen {
		return fmt.Sprintf("%s ended by %s, as the count of restarts tells", e.container, question.Clock(e.At))
	}
	return fmt.Sprintf("%s (%s) ended at %s with reason %s, exit code %d", e.container, ShortID(e.ID), question.Clock(e.At),
		e.reason, e.code)
}

// EndOf finds how the container that ran when a window began ended, even if the end was only seen after the window: an
// API server can't report its own end. doubt says why the answer isn't known.
func EndOf(all []bundle.ContainerStatus, container string, w bundle.Window) (e end, doubt string) {
	all = slices.DeleteFunc(slices.Clone(all), func(r bundle.ContainerStatus) bool { return r.Container != container })
	slices.SortStableFunc(all, func(a, b bundle.ContainerStatus) int { return a.Time.Compare(b.Time) })
	var ran *bundle.ContainerStatus // the newest status when the window began, or the first one soon after
	for i, r := range all {
		if r.Time.After(w.Start) && (ran != nil || r.Time.After(w.Start.Add(question.Slack(w)))) {
			break
		}
		ran = &all[i]
	}
	switch {
	case ran == nil:
		return e, fmt.Sprintf("no status of %s was recorded by %s", container, question.Clock(w.Start))
	case ran.State != "running":
		return e, fmt.Sprintf("%s was %s at %s", container, ran.State, question.Clock(w.Start))
	}
	e = end{container: container, ID: ran.ID}
	for _, r := range all {
		if !r.Time.After(ran.Time) || r.Pod != ran.Pod {
			continue
		}
		switch {
		case r.LastID == e.ID: // only the next container's status says when this one ended
			e.reason, e.code = r.LastReason, r.LastExitCode
			if e.At = r.LastFinished; e.At.IsZero() {
				e.At = r.Time
			}
			return e, ""
		case r.ID == e.ID && r.State == "terminated":
			e.At, e.reason, e.code = r.Time, r.Reason, r.ExitCode
		case r.ID != e.ID && e.At.IsZero():
			return e, fmt.Sprintf("%s was another container at %s, and how the one before ended was not seen",
				container, question.Clock(r.Time))
		}
	}
	return e, ""
}

// ShortID returns the first 12 characters of a container's id, without the scheme of its runtime.
func ShortID(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		id = bare
	}
	return fmt.Sprintf("%.12s", id)
}

// ReadStatuses reads the records of container statuses. A container can't come back once it is gone. So a container
// that is still there at the end of a window was there all along, and a gap in the records before that doesn't matter.
func ReadStatuses(q *question.Question) question.Stream[bundle.ContainerStatus] {
	w := q.Window
	word := lastWord(q.View.Artifacts(bundle.Query{Kind: bundle.Statuses, Arm: q.Arm}))
	if !word.Before(w.End.Add(-question.Slack(w))) {
		w = bundle.Window{Start: word, End: word}
	}
	return question.Read[bundle.ContainerStatus](q.Over(w), bundle.Statuses)
}

// lastWord returns the latest time that the streams cover, or zero if they cover none. A gap at the end of a stream
// isn't covered.
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
		out = question.LaterOf(out, last)
	}
	return out
}

// endsOf returns the ends of a container in a window, in order of time, each once. The time of an end comes from the
// statuses recorded after it.
func endsOf(all []bundle.ContainerStatus, container string, w bundle.Window) (out []end) {
	seen := map[string]bool{}
	for _, r := range all {
		e := end{container: container, ID: r.LastID, At: r.LastFinished, reason: r.LastReason, code: r.LastExitCode}
		// The kubelet tells the time of an end in whole seconds.
		if r.Container != container || e.ID == "" || seen[e.ID] || e.At.Before(w.Start.Truncate(time.Second)) ||
			e.At.After(w.End) {
			continue
		}
		seen[e.ID] = true
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b end) int { return a.At.Compare(b.At) })
	return out
}
