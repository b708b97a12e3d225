package logs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// ContainerEnd describes how a container ended. Its time is zero while the container runs.
type ContainerEnd struct {
	Container string
	ID        string
	At        time.Time
	Reason    string // as the container's runtime gives it: Error, OOMKilled
	Code      int32  // the exit code

	unseen bool          // the restart count shows one more end, but nobody saw how the container ended
	log    *ContainerLog // the log that the container left, nil if none was recorded
}

// Describe says how and when the container ended.
func (e ContainerEnd) Describe() string {
	if e.unseen {
		return fmt.Sprintf(
			"%s ended by %s, as the count of restarts tells",
			e.Container,
			question.Clock(e.At),
		)
	}
	return fmt.Sprintf(
		"%s (%s) ended at %s with reason %s, exit code %d",
		e.Container,
		ShortID(e.ID),
		question.Clock(e.At),
		e.Reason,
		e.Code,
	)
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
func endsOf(
	all []bundle.ContainerStatus,
	container string,
	w bundle.Window,
) (out []ContainerEnd) {
	seen := map[string]bool{}
	for _, r := range all {
		e := ContainerEnd{
			Container: container,
			ID:        r.LastID,
			At:        r.LastFinished,
			Reason:    r.LastReason,
			Code:      r.LastExitCode,
		}
		// The kubelet tells the time of an end in whole seconds.
		if r.Container != container || e.ID == "" || seen[e.ID] || e.At.Before(w.Start.Truncate(time.Second)) ||
			e.At.After(w.End) {
			continue
		}
		seen[e.ID] = true
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b ContainerEnd) int { return a.At.Compare(b.At) })
	return out
}
